"""Tollgate itself, started for a test with a policy folder of its own."""

import contextlib
import hashlib
import os
import pathlib
import subprocess
import tempfile
import time
import typing

from harness.process import TARGET, answers_200, free_port, running, wait_until

PROGRAM = TARGET / "release" / "tollgate"


class Started(typing.NamedTuple):
    """A Tollgate that was started: when, its ports on 127.0.0.1 (0 is none), its process and its log."""

    begun: float
    agents: int
    egress: int
    ops: int
    process: subprocess.Popen
    log: pathlib.Path

    def url(self, name):
        """Where clients find a server."""
        return f"http://127.0.0.1:{self.agents}/mcp/{name}"


@contextlib.contextmanager
def tollgate(servers, keys=(), prefix=(), relay=(), effects=(), bounds="", settings="", alone=(), proxy=""):
    """Runs `tollgate serve` in front of `servers`, a dict of name and port on 127.0.0.1.

    Callers are one local user, or an agent for each of `keys` (`tg_…`). `prefix` goes before the command.
    `relay` names what the servers may ask of their clients, as a server's file does under `[relay]`; `effects` are
    tools that do not only read; `bounds` are lines of the servers' `[limits]` and `settings` more tables of
    tollgate.toml; `alone` names the servers beside whose tools Tollgate's own do not stand; `proxy` are rules of
    egress.toml, for which the forward proxy listens. Gives `url(name)`, where clients find the server, and the process.
    """
    with starting(servers, keys, prefix, relay, effects, bounds, settings, alone, proxy) as started:
        wait_until_ready(started)
        yield started.url, started.process


@contextlib.contextmanager
def starting(servers, keys=(), prefix=(), relay=(), effects=(), bounds="", settings="", alone=(), proxy=""):
    """As `tollgate`, without waiting until it is ready; gives what was Started."""
    with tempfile.TemporaryDirectory(prefix="tollgate-test-") as folder:
        home = pathlib.Path(folder)
        ports = free_port(), free_port() if proxy else 0, free_port()
        policy = write_settings(home, keys, settings, ports)
        write_servers(policy, servers, alone, server_tables(relay, effects, bounds), proxy)
        with serving(home, policy, ports, prefix) as started:
            yield started


@contextlib.contextmanager
def forward_proxy(egress, keys, settings="", address="127.0.0.1"):
    """Runs `tollgate serve` as a forward proxy alone, at this address; gives what was Started, once it is ready.

    `egress` is the text of egress.toml, `settings` more tables of tollgate.toml; an agent for each of `keys`.
    """
    with tempfile.TemporaryDirectory(prefix="tollgate-test-") as folder:
        home = pathlib.Path(folder)
        ports = 0, free_port(), free_port()
        policy = write_settings(home, keys, settings, ports, address)
        write(policy / "egress.toml", egress)
        with serving(home, policy, ports) as started:
            wait_until_ready(started)
            yield started


@contextlib.contextmanager
def serving(home, policy, ports, prefix=()):
    """Runs `tollgate serve` with a policy folder; `ports` are those of its listeners agents, egress, ops."""
    log = home / "tollgate.log"
    command = [*prefix, PROGRAM, "serve", "--policy", policy]
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    begun = time.monotonic()
    with running(command, log, env=environment) as process:
        yield Started(begun, *ports, process, log)


def wait_until_ready(started):
    """Returns when what was started answers that it is."""
    ready = f"http://127.0.0.1:{started.ops}/readyz"
    wait_until(lambda: answers_200(ready), started.process, started.log)


def server_tables(relay, effects, bounds):
    """The tables of a server's file."""
    relayed = "".join(f"{name} = true\n" for name in relay)
    tools = "".join(f'\n[tools.{name}]\napproval = "never"\n' for name in effects)
    limits = f"\n[limits]\n{bounds}\n" if bounds else ""
    return (f"\n[relay]\n{relayed}" if relay else "") + limits + tools


def write_settings(home, keys, settings, ports, address="127.0.0.1"):
    """Writes a policy folder with tollgate.toml and keys.toml alone; gives it."""
    policy, state = home / "policy", home / "state"
    for folder in (policy, policy / "servers", state):
        folder.mkdir(mode=0o700)
    identity = "[identity.keys]" if keys else '[identity.local]\nuser = "tester"'
    places = zip([address, address, "127.0.0.1"], ports, strict=True)
    agents, egress, ops = (f"{place}:{port}" if port else "" for place, port in places)
    # What stands elsewhere is, in tests, on a network of their own.
    behind_tls = "true" if address != "127.0.0.1" else "false"
    write(
        policy / "tollgate.toml",
        f"""state_dir = "{state}"

[listen]
agents = "{agents}"
egress = "{egress}"
web = ""
ops = "{ops}"
behind_tls = {behind_tls}

{identity}
{settings}
""",
    )
    if keys:
        write(policy / "keys.toml", "\n".join(key_entry(*item) for item in enumerate(keys)))
    return policy


def write_servers(policy, servers, alone, tables, proxy):
    """Lets everyone call every tool of `servers`, and do what the rules `proxy` allow."""
    for name, port in servers.items():
        server = f'kind = "mcp"\nurl = "http://127.0.0.1:{port}/mcp"\naccess = "everyone"\nread_only = ["*"]\n'
        server += "builtin = false\n" if name in alone else ""
        write(policy / "servers" / f"{name}.toml", server + tables)
    grants = [
        f'[[private]]\nhost = "127.0.0.1"\nport = {port}\nfor = ["server:{name}"]\n'
        for name, port in servers.items()
    ]
    write(policy / "egress.toml", "\n".join([proxy, *grants]))


def key_entry(number, key):
    digest = hashlib.sha256(key.encode()).hexdigest()
    return f"""[[key]]
sha256 = "{digest}"
agent = "agent-{number}"
tenant = "default"
user = "tester"
"""


def write(path, text):
    """Writes a file that only its owner may read."""
    path.touch(mode=0o600)
    path.write_text(text)
