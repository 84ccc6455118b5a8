"""Real clients through the forward proxy: to a site with TLS, plain HTTP and HTTP/2, and to what is refused.

Every client does the steps that it can (`CLIENTS`); `STEPS` says what must come of each. The site runs on loopback,
its names exist only in the policy and in its own name server. A refused CONNECT has its answer in the client's error,
of which most show the status alone; what each shows is printed.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness.process import ROOT, TOOLS, NotReady, accepts, free_port, running, wait_until  # noqa: E402
from harness.tollgate import forward_proxy  # noqa: E402

HOME = TOOLS / "proxy"
PYTHON = HOME / "python" / "bin" / "python"
SOURCES = ROOT / "tests" / "proxy" / "python"
NODE = HOME / "node"

KEY = "tg_" + "proxy" * 9
WRONG = "tg_" + "wrong" * 9
USER = "tester"
SERVED = bytes(range(256)) * 4096
SENT = bytes(range(256)) * 16384


def counted(body):
    """How clients and site tell of a long body."""
    return f"{len(body)} {hashlib.sha256(body).hexdigest()}"


class Step(typing.NamedTuple):
    """What a client does, and a pattern for what it must see: `status text`."""

    verb: str
    url: str
    sees: str
    key: str = KEY


def refused(status, code):
    """What a client shows of a tunnel that is refused: the status, and the code if any."""
    return rf"None (?!.*\((egress|tunnel|identity)\.).*\b{status}\b|None .*\b{status}\b.*\({re.escape(code)}\)"


NOT_ALLOWED = refused(403, "egress.host_not_allowed")
BLOCKED = refused(403, "egress.address_blocked")
UNKNOWN = refused(407, "tunnel.credential_invalid")
# undici reads no body beside a 407.
PLAIN_UNKNOWN = r"407 .*tunnel\.credential_invalid|None .*\b407\b"
STEPS = {
    "https": Step("get", "https://files.test:{tls}/hello", r"200 hello over https and HTTP/1"),
    "large": Step("get", "https://files.test:{tls}/bytes", f"200 {counted(SERVED)}"),
    "upload": Step("post", "https://files.test:{tls}/digest", f"200 {counted(SENT)}"),
    "h2": Step("get", "https://files.test:{h2}/hello", r"200 hello over https and HTTP/2"),
    "http": Step("get", "http://files.test:{plain}/hello", r"200 hello over http and HTTP/1"),
    "http-upload": Step("post", "http://files.test:{plain}/digest", f"200 {counted(SENT)}"),
    # Some clients open a tunnel to a plain server, which `tls = "opaque"` allows.
    "opaque": Step("get", "http://files.test:{opaque}/hello", r"200 hello over http and HTTP/1"),
    "wss": Step("socket", "wss://files.test:{tls}/echo", r"101 TOLLGATE"),
    "ws": Step("socket", "ws://files.test:{plain}/echo", r"101 TOLLGATE"),
    "ws-opaque": Step("socket", "ws://files.test:{opaque}/echo", r"101 TOLLGATE"),
    "clone": Step("clone", "https://files.test:{tls}/git/notes.git", r"200 read me first"),
    "http-clone": Step("clone", "http://files.test:{plain}/git/notes.git", r"200 read me first"),
    "refused": Step("get", "https://elsewhere.test/", NOT_ALLOWED),
    "wss-refused": Step("socket", "wss://elsewhere.test/", NOT_ALLOWED),
    "clone-refused": Step("clone", "https://elsewhere.test/notes.git", NOT_ALLOWED),
    # The name is allowed, and leads to loopback, which nothing grants.
    "private": Step("get", "https://inside.test:{tls}/hello", BLOCKED),
    "http-refused": Step("get", "http://elsewhere.test/", r"403 .*egress\.host_not_allowed"),
    "http-private": Step("get", "http://inside.test:{plain}/hello", r"403 .*egress\.address_blocked"),
    # Tollgate's own address is asked directly, by clients that are told so.
    "own": Step("get", "http://127.0.0.1:{ops}/livez", r"403 .*egress\.own_address.*NO_PROXY"),
    "unknown": Step("get", "https://files.test:{tls}/hello", UNKNOWN, WRONG),
    "wss-unknown": Step("socket", "wss://files.test:{tls}/echo", UNKNOWN, WRONG),
    # As browsers do, it says no more than that there was an error.
    "wss-silent": Step("socket", "wss://elsewhere.test/", r"None TypeError"),
    "wss-silent-unknown": Step("socket", "wss://files.test:{tls}/echo", r"None TypeError", WRONG),
    "clone-unknown": Step("clone", "https://files.test:{tls}/git/notes.git", UNKNOWN, WRONG),
    "http-unknown": Step("get", "http://files.test:{plain}/hello", PLAIN_UNKNOWN, WRONG),
}
TLS = ["https", "large", "upload", "refused", "private", "unknown"]
PLAIN = ["http", "http-upload", "http-refused", "http-private", "own", "http-unknown"]


class Client(typing.NamedTuple):
    """A client: its command, its steps, and the user name in its proxy URL."""

    command: list
    steps: list
    user: str = ""


def python(library):
    return [PYTHON, SOURCES / "client.py", library]


def command(name):
    return [PYTHON, SOURCES / "commands.py", name]


def node(name):
    return ["node", NODE / "client.mjs", name]


CLIENTS = {
    "curl": Client(command("curl"), TLS + PLAIN),
    "curl-proxy-user": Client(command("curl-proxy-user"), TLS + PLAIN, USER),
    "curl-bearer": Client(command("curl-bearer"), TLS),
    "curl-http2": Client(command("curl-http2"), [*TLS, "h2"]),
    # These two leave a credential out whose user name is empty.
    "git": Client(command("git"), ["clone", "http-clone", "clone-refused", "clone-unknown"], USER),
    "requests": Client(python("requests"), TLS + PLAIN, USER),
    "httpx": Client(python("httpx"), TLS + PLAIN),
    "httpx-http2": Client(python("httpx-http2"), [*TLS, "h2"]),
    "aiohttp": Client(python("aiohttp"), [*TLS, *PLAIN, "wss", "ws", "wss-refused", "wss-unknown"]),
    "websockets": Client(python("websockets"), ["wss", "ws-opaque", "wss-refused", "wss-unknown"]),
    # undici opens tunnels for plain requests, too, unless it is told not to; and leaves such a credential out.
    "node-fetch": Client(node("node-fetch"), [*TLS, "opaque"]),
    "undici-fetch": Client(node("undici-fetch"), TLS + PLAIN),
    "undici-environment": Client(node("undici-environment"), [*TLS, "opaque"], USER),
    "undici-request": Client(node("undici-request"), TLS + PLAIN),
    "undici-websocket": Client(node("undici-websocket"), ["wss", "ws-opaque", "wss-silent", "wss-silent-unknown"]),
    "node-http2": Client(node("node-http2"), ["h2", "refused", "private", "unknown"]),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", choices=CLIENTS, help="only this client")
    options = parser.parse_args()
    clients = [options.client] if options.client else list(CLIENTS)
    # Node finds packages from where a script is.
    for script in (ROOT / "tests" / "proxy" / "node").glob("*.mjs"):
        shutil.copy(script, NODE)
    with tempfile.TemporaryDirectory(prefix="tollgate-proxy-") as folder:
        try:
            with contextlib.ExitStack() as stack:
                ports = stack.enter_context(site(pathlib.Path(folder)))
                started = stack.enter_context(forward_proxy(policy(ports), [KEY], names(ports)))
                passed, failed = matrix(clients, started, ports, pathlib.Path(folder))
        except NotReady as fault:
            print(fault)
            passed, failed = 0, 1
    print(f"proxy: {passed} passed, {failed} failed")
    return 1 if failed else 0


@contextlib.contextmanager
def site(folder):
    """Runs the servers that clients go to; gives their ports."""
    repository(folder)
    ports = {name: free_port() for name in ["tls", "plain", "opaque", "names", "h2"]}
    log, log_h2 = folder / "site.log", folder / "site-h2.log"
    listed = [ports[name] for name in ["tls", "plain", "opaque", "names"]]
    with running([PYTHON, SOURCES / "site.py", folder, "127.0.0.1", *listed], log) as process:
        wait_until((folder / "ready").exists, process, log)
        with running(["node", NODE / "site.mjs", folder / "site.pem", ports["h2"]], log_h2) as process_h2:
            wait_until(lambda: accepts(ports["h2"]), process_h2, log_h2)
            yield ports


def repository(folder):
    """A repository with one file, as a web server has it."""
    work, bare = folder / "work", folder / "git" / "notes.git"
    git = ["git", "-c", "user.name=tester", "-c", "user.email=tester@files.test", "-c", "init.defaultBranch=main"]
    subprocess.run([*git, "init", "--quiet", work], check=True)
    (work / "notes.txt").write_text("read me first")
    subprocess.run([*git, "-C", work, "add", "notes.txt"], check=True)
    subprocess.run([*git, "-C", work, "commit", "--quiet", "--message", "notes"], check=True)
    subprocess.run([*git, "clone", "--quiet", "--bare", work, bare], check=True)


def policy(ports):
    """What the proxy allows: the site, at its exact ports; and a name that leads inside, without a grant."""
    rules = []
    for name, extra in [("tls", ""), ("h2", ""), ("plain", 'scheme = "http"'), ("opaque", 'tls = "opaque"')]:
        rules.append(f'[[allow]]\nhost = "files.test:{ports[name]}"\n{extra}\n')
        rules.append(
            f'[[private]]\nhost = "files.test"\nport = {ports[name]}\naddress = "127.0.0.1"\nfor = ["proxy"]\n'
        )
    rules.append(f'[[allow]]\nhost = "inside.test:{ports["tls"]}"\n')
    rules.append(f'[[allow]]\nhost = "inside.test:{ports["plain"]}"\nscheme = "http"\n')
    return "\n".join(rules)


def names(ports):
    return f'[dns]\nservers = ["127.0.0.1:{ports["names"]}"]\n'


def matrix(clients, started, ports, folder):
    """Prints what each client saw; gives how many steps passed and failed."""
    passed = failed = 0
    shown = {}
    print(f"{'client':<20}steps")
    for name in clients:
        outcomes, log = run(CLIENTS[name], started, ports, folder)
        faults = {step: outcomes.get(step, "not reached") for step in CLIENTS[name].steps}
        faults = {step: seen for step, seen in faults.items() if not re.match(STEPS[step].sees, seen, re.S)}
        total = len(CLIENTS[name].steps)
        passed, failed = passed + total - len(faults), failed + len(faults)
        row = " ".join(f"{step}{'!' if step in faults else ''}" for step in CLIENTS[name].steps)
        print(f"{name:<20}{row}", flush=True)
        for step, seen in faults.items():
            print(f"    {step} FAILED: expected `{STEPS[step].sees}`, found `{seen[:600]}`")
        if not outcomes:
            print(log)
        shown[name] = next((outcomes[step] for step in outcomes if step.endswith("refused")), "-")
    print("\nwhat a refused tunnel looks like:")
    for name, text in shown.items():
        print(f"    {name:<20}{text.removeprefix('None ')[:200]}")
    return passed, failed


def run(client, started, ports, folder):
    """Runs a client with the right key, then with a wrong one; gives what it saw at each step, and its log."""
    outcomes, log = {}, ""
    for key in [KEY, WRONG]:
        steps = [
            [name, STEPS[name].verb, STEPS[name].url.format(ops=started.ops, **ports)]
            for name in client.steps
            if STEPS[name].key == key
        ]
        proxy = f"http://{client.user}:{key}@127.0.0.1:{started.egress}"
        job = {"proxy": proxy, "ca": str(folder / "ca.pem"), "folder": str(folder), "steps": steps}
        done = subprocess.run(
            [str(word) for word in [*client.command, json.dumps(job)]],
            capture_output=True,
            text=True,
            timeout=180,
            env=environment(proxy),
            check=False,
        )
        log += done.stderr[-2000:]
        if done.returncode == 0:
            seen = json.loads(done.stdout.splitlines()[-1])
            outcomes |= {step: f"{answer['status']} {answer['text']}" for step, answer in seen.items()}
    return outcomes, log


def environment(proxy):
    """The environment of an agent: the proxy under each of its names, and nothing that goes around it."""
    # Nor other roots than the run's own.
    others = ["proxy", "ca_bundle", "ssl_", "extra_ca"]
    kept = {name: value for name, value in os.environ.items() if not any(word in name.lower() for word in others)}
    # WebSocket clients ask for a proxy of their own scheme first.
    schemes = ["http_proxy", "https_proxy", "ws_proxy", "wss_proxy"]
    variables = {spelt: proxy for name in schemes for spelt in (name, name.upper())}
    return kept | variables | {"GIT_TERMINAL_PROMPT": "0"}


if __name__ == "__main__":
    sys.exit(main())
