"""Official SDK clients through Tollgate to real MCP servers, every client with every server.

Each cell runs the steps of `expected.py`: tools, resources, prompts, completion, logging, what
changed, what a server asks its caller, results that are cut, cancellation. Each step counts. `--direct` leaves Tollgate
out; it shows whether the pair works by itself.
"""

import argparse
import concurrent.futures
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from expected import (  # noqa: E402
    EVERYTHING,
    IMPOSSIBLE,
    LEGACY,
    MODERN,
    OWN,
    RESULT_BYTES,
    TIME,
    TOLLGATE,
    through_tollgate,
)
from harness.process import ROOT, TOOLS, NotReady, accepts, free_port, running, wait_until  # noqa: E402
from harness.tollgate import tollgate  # noqa: E402

HOME = TOOLS / "sdk"
SOURCES = ROOT / "tests" / "sdk" / "python"
TYPESCRIPT = HOME / "typescript"
PYTHON = {name: HOME / f"python-{name}" / "bin" / "python" for name in ["current", "legacy", "servers"]}
REFERENCE_SERVER = TYPESCRIPT / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"

# Name: the newest revision it speaks, its steps, and the command for a port.
SERVERS = {
    "python-current": (MODERN, OWN, lambda port: [PYTHON["current"], SOURCES / "server_current.py", port]),
    "python-legacy": (LEGACY, OWN, lambda port: [PYTHON["legacy"], SOURCES / "server_legacy.py", port]),
    "typescript-current": (MODERN, OWN, lambda port: ["node", TYPESCRIPT / "server_current.mjs", port]),
    "typescript-legacy": (LEGACY, OWN, lambda port: ["node", TYPESCRIPT / "server_legacy.mjs", port]),
    "fastmcp": (MODERN, OWN, lambda port: [PYTHON["servers"], SOURCES / "server_fastmcp.py", port]),
    "everything": (LEGACY, EVERYTHING, lambda port: [
        *("env", f"PORT={port}", "node", "--import", (TYPESCRIPT / "loopback.mjs").as_uri()),
        *(REFERENCE_SERVER, "streamableHttp"),
    ]),
    # It speaks over standard input and output only; mcp-proxy, which knows sessions, serves it.
    "time": (LEGACY, TIME, lambda port: [
        *(HOME / "python-legacy" / "bin" / "mcp-proxy", "--host", "127.0.0.1", "--port", port),
        *("--", PYTHON["servers"], "-m", "mcp_server_time", "--local-timezone", "Etc/UTC"),
    ]),
}  # fmt: skip
# Name: the newest revision it speaks, and the command.
CLIENTS = {
    "python-current": (MODERN, [PYTHON["current"], SOURCES / "client_current.py"]),
    "python-legacy": (LEGACY, [PYTHON["legacy"], SOURCES / "client_legacy.py"]),
    "typescript-current": (MODERN, ["node", TYPESCRIPT / "client_current.mjs"]),
    "typescript-legacy": (LEGACY, ["node", TYPESCRIPT / "client_legacy.mjs"]),
    "rmcp": (MODERN, [HOME / "rmcp" / "debug" / "tollgate-sdk-rmcp"]),
}
# The server that Tollgate is itself, and one whose cut results are read on there.
ITSELF, ALONE = "tollgate", "fastmcp"
# What servers may ask their callers for.
RELAY = ["elicitation", "sampling", "roots"]
# The matrix is one caller to Tollgate, and reads more within a minute than a turn has by itself.
SETTINGS = "[limits]\nturn_bytes = 67108864"
# Clients that run at once. A server counts what its caller cancelled, so that it has one at a time.
AT_ONCE = 3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--direct", action="store_true", help="without Tollgate")
    parser.add_argument("--client", choices=CLIENTS, help="only this client")
    parser.add_argument("--server", choices=[*SERVERS, ITSELF], help="only this server")
    options = parser.parse_args()
    clients = [options.client] if options.client else list(CLIENTS)
    servers = [options.server] if options.server else [*SERVERS, *([] if options.direct else [ITSELF])]
    if options.direct and ITSELF in servers:
        parser.error(f"`{ITSELF}` cannot be left out of itself")
    # Node finds packages from where a script is.
    for script in (ROOT / "tests" / "sdk" / "typescript").glob("*.mjs"):
        shutil.copy(script, TYPESCRIPT)
    try:
        with contextlib.ExitStack() as stack:
            ports = {name: stack.enter_context(serving(name)) for name in servers if name != ITSELF}
            url = lambda name: f"http://127.0.0.1:{ports[name]}/mcp"  # noqa: E731
            if not options.direct:
                bounds = f"result_bytes = {RESULT_BYTES}"
                started = tollgate(ports, relay=RELAY, bounds=bounds, settings=SETTINGS, alone=[ALONE])
                url, _ = stack.enter_context(started)
            passed, failed = matrix(clients, servers, url, options.direct)
    except NotReady as fault:
        print(fault)
        passed, failed = 0, 1
    print(f"sdk: {passed} passed, {failed} failed")
    return 1 if failed else 0


@contextlib.contextmanager
def serving(name):
    """Runs a server and gives its port."""
    _, _, command = SERVERS[name]
    with tempfile.TemporaryDirectory(prefix="tollgate-sdk-") as folder:
        port, log = free_port(), pathlib.Path(folder) / "server.log"
        with running(command(port), log) as process:
            wait_until(lambda: accepts(port), process, log)
            yield port


def matrix(clients, servers, url, is_direct):
    """Prints what becomes of each cell, in order; gives how many steps passed and failed."""
    at_once = threading.Semaphore(AT_ONCE)
    turns = {server: threading.Lock() for server in servers}

    def cell(client, server):
        with turns[server], at_once:
            steps = steps_of(client, server, is_direct)
            return steps, *run(client, url(server), steps)

    cells = [(client, server) for server in servers for client in clients]
    passed = failed = 0
    print(f"{'client':<20}{'server':<20}{'revision':<12}steps")
    with concurrent.futures.ThreadPoolExecutor(len(cells)) as pool:
        for (client, server), outcome in zip(cells, pool.map(cell, *zip(*cells))):
            faults, total = judge(client, server, *outcome)
            passed, failed = passed + total - len(faults), failed + len(faults)
    print("not possible, even without Tollgate:", *IMPOSSIBLE, sep="\n    ")
    return passed, failed


def revision(client, server):
    newest = MODERN if server == ITSELF else SERVERS[server][0]
    return min(CLIENTS[client][0], newest)


def steps_of(client, server, is_direct):
    """The steps of a cell and their parameters."""
    if server == ITSELF:
        steps = TOLLGATE
    else:
        steps = SERVERS[server][1] if is_direct else through_tollgate(SERVERS[server][1], server == ALONE)
    return {
        step: parameters
        for step, parameters in steps.items()
        if not any(rule.covers(server, revision(client, server), step) for rule in IMPOSSIBLE)
    }


def judge(client, server, steps, version, outcomes, log):
    """Prints a cell; gives what failed, and how many steps it has."""
    expected = revision(client, server)
    faults = {step: outcomes.get(step, "not reached") for step in steps}
    # A client that could not connect reports that alone.
    faults = {"connect": outcomes["connect"]} if outcomes.get("connect", "ok") != "ok" else faults
    faults = {step: fault for step, fault in faults.items() if fault != "ok"}
    if version != expected:
        faults["revision"] = f"found {version}, expected {expected}"
    # The revision counts as a step.
    total = len(steps) + 1
    verdict = f"{len(faults)} of {total} FAILED" if faults else f"{total} passed"
    print(f"{client:<20}{server:<20}{version or '-':<12}{verdict}", flush=True)
    for step, fault in faults.items():
        print(f"    {step}: {fault}")
    if not outcomes:
        print(log)
    return faults, total


def run(client, url, steps):
    """Runs a client; gives the revision, what became of each step, and what it wrote to its log."""
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    command = [str(word) for word in [*CLIENTS[client][1], url, json.dumps(list(steps.items()))]]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=180, env=environment, check=False)
    except subprocess.TimeoutExpired:
        return None, {}, "the client did not end"
    try:
        report = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return None, {}, done.stderr[-2000:]
    return report["version"], report["steps"], done.stderr[-2000:]


if __name__ == "__main__":
    sys.exit(main())
