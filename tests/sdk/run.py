"""Official SDK clients through Tollgate to official SDK servers, every client with every server.

Each cell runs the same steps: list, call, progress, an error result, ping where the era has it, and
a cancellation that must reach the server. Each step counts. `--direct` leaves Tollgate out; it
shows whether the pair of SDKs works by itself.
"""

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness.process import ROOT, TOOLS, NotReady, accepts, free_port, running, wait_until  # noqa: E402
from harness.tollgate import tollgate  # noqa: E402

HOME = TOOLS / "sdk"
PYTHON = ROOT / "tests" / "sdk" / "python"
TYPESCRIPT = HOME / "typescript"

SERVERS = {
    "python-current": [HOME / "python-current" / "bin" / "python", PYTHON / "server_current.py"],
    "python-legacy": [HOME / "python-legacy" / "bin" / "python", PYTHON / "server_legacy.py"],
    "typescript-current": ["node", TYPESCRIPT / "server_current.mjs"],
    "typescript-legacy": ["node", TYPESCRIPT / "server_legacy.mjs"],
}
CLIENTS = {
    "python-current": [HOME / "python-current" / "bin" / "python", PYTHON / "client_current.py"],
    "python-legacy": [HOME / "python-legacy" / "bin" / "python", PYTHON / "client_legacy.py"],
    "typescript-current": ["node", TYPESCRIPT / "client_current.mjs"],
    "typescript-legacy": ["node", TYPESCRIPT / "client_legacy.mjs"],
    "rmcp": [HOME / "rmcp" / "debug" / "tollgate-sdk-rmcp"],
}
MODERN, LEGACY = "2026-07-28", "2025-11-25"
STEPS = {
    MODERN: ["list", "call", "progress", "error", "cancel"],
    LEGACY: ["list", "call", "progress", "error", "ping", "cancel"],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--direct", action="store_true", help="without Tollgate")
    parser.add_argument("--client", choices=CLIENTS, help="only this client")
    parser.add_argument("--server", choices=SERVERS, help="only this server")
    options = parser.parse_args()
    clients = [options.client] if options.client else list(CLIENTS)
    servers = [options.server] if options.server else list(SERVERS)
    # Node finds packages from where a script is.
    for script in (ROOT / "tests" / "sdk" / "typescript").glob("*.mjs"):
        shutil.copy(script, TYPESCRIPT)
    try:
        with contextlib.ExitStack() as stack:
            ports = {name: stack.enter_context(serving(name)) for name in servers}
            url = lambda name: f"http://127.0.0.1:{ports[name]}/mcp"  # noqa: E731
            if not options.direct:
                url, _ = stack.enter_context(tollgate(ports))
            passed, failed = matrix(clients, servers, url)
    except NotReady as fault:
        print(fault)
        passed, failed = 0, 1
    print(f"sdk: {passed} passed, {failed} failed")
    return 1 if failed else 0


@contextlib.contextmanager
def serving(name):
    """Runs an SDK server and gives its port."""
    with tempfile.TemporaryDirectory(prefix="tollgate-sdk-") as folder:
        port, log = free_port(), pathlib.Path(folder) / "server.log"
        with running([*SERVERS[name], port], log) as process:
            wait_until(lambda: accepts(port), process, log)
            yield port


def matrix(clients, servers, url):
    """Prints a line for each cell; gives how many steps passed and failed."""
    passed = failed = 0
    print(f"{'client':<20}{'server':<20}{'revision':<12}steps")
    for client in clients:
        for server in servers:
            is_modern = not client.endswith("legacy") and not server.endswith("legacy")
            expected = MODERN if is_modern else LEGACY
            version, outcomes, log = run(client, url(server))
            faults = {step: outcomes.get(step, "not reached") for step in STEPS[expected]}
            # A client that could not connect reports that alone.
            faults = {"connect": outcomes["connect"]} if outcomes.get("connect", "ok") != "ok" else faults
            faults = {step: fault for step, fault in faults.items() if fault != "ok"}
            if version != expected:
                faults["revision"] = f"found {version}, expected {expected}"
            # The revision counts as a step.
            total = len(STEPS[expected]) + 1
            passed, failed = passed + total - len(faults), failed + len(faults)
            verdict = "FAILED" if faults else " ".join(STEPS[expected])
            print(f"{client:<20}{server:<20}{version or '-':<12}{verdict}", flush=True)
            for step, fault in faults.items():
                print(f"    {step}: {fault}")
            if not outcomes:
                print(log)
    return passed, failed


def run(client, url):
    """Runs a client; gives the revision, what became of each step, and what it wrote to its log."""
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    command = [str(word) for word in [*CLIENTS[client], url]]
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
