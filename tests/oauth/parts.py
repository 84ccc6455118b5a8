"""The programs of the OAuth tests: provider, server, and Tollgate itself with its policy folder."""

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness.process import ROOT, TARGET, TOOLS, accepts, answers_200, free_port, running, wait_until  # noqa: E402
from harness.tollgate import write  # noqa: E402

HOME = TOOLS / "oauth" / "node"
PROGRAM = pathlib.Path(os.environ.get("TOLLGATE_PROGRAM", TARGET / "release" / "tollgate"))
LIFETIME = 300


def install():
    """Puts the scripts beside the packages: Node finds packages from where a script is."""
    for script in (ROOT / "tests" / "oauth" / "node").glob("*.mjs"):
        shutil.copy(script, HOME)


def environment(**settings):
    """The environment of a program: without proxies, with `settings`."""
    kept = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()}
    return kept | {name: str(value) for name, value in settings.items()}


class Journal:
    """A file of JSON objects, one a line, that a program writes while it runs."""

    def __init__(self, path):
        self.path = pathlib.Path(path)

    def entries(self):
        lines = self.path.read_text().splitlines(keepends=True) if self.path.exists() else []
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def answered(self, **wanted):
        """The requests that were answered; `wanted` are members, `grant_type` one of the parameters."""
        grant_type = wanted.pop("grant_type", None)
        found = [entry for entry in self.entries() if entry.get("phase") == "answered"]
        if grant_type:
            found = [entry for entry in found if entry.get("params", {}).get("grant_type") == grant_type]
        return [entry for entry in found if all(entry.get(name) == value for name, value in wanted.items())]


class Provider:
    """The authorization server. It forgets everything when it is started again."""

    def __init__(self, folder, port=None, **settings):
        self.folder = pathlib.Path(folder)
        self.port = port or free_port()
        self.path = settings.get("ISSUER_PATH", "")
        self.journal = Journal(self.folder / "provider.jsonl")
        self.hold = self.folder / "hold"
        self.settings = settings

    @property
    def issuer(self):
        return f"http://127.0.0.1:{self.port}{self.path}"

    @property
    def metadata(self):
        """Where its metadata is."""
        well_known = "/.well-known/oauth-authorization-server"
        if self.settings.get("METADATA") == "inserted":
            return f"http://127.0.0.1:{self.port}{well_known}{self.path}"
        return f"{self.issuer}{well_known}"

    @contextlib.contextmanager
    def running(self):
        log = self.folder / "provider.log"
        settings = {"PORT": self.port, "JOURNAL": self.journal.path, "HOLD": self.hold, **self.settings}
        command = ["node", "--no-warnings", HOME / "provider.mjs"]
        with running(command, log, env=environment(**settings)) as process:
            wait_until(lambda: accepts(self.port), process, log)
            yield self

    def tokens(self, **wanted):
        """The answers of the token endpoint that hold tokens."""
        found = self.journal.answered(route="token", status=200, **wanted)
        return [entry for entry in found if "access_token" in (entry.get("answer") or {})]


class Server:
    """The MCP server that demands the provider's tokens."""

    def __init__(self, folder, port, provider=None):
        self.folder = pathlib.Path(folder)
        self.port = port
        self.provider = provider
        self.url = f"http://127.0.0.1:{port}/mcp"
        self.journal = Journal(self.folder / f"server-{port}.jsonl")

    @contextlib.contextmanager
    def running(self, **more):
        log = self.folder / f"server-{self.port}.log"
        settings = {"PORT": self.port, "JOURNAL": self.journal.path, **more}
        if self.provider:
            settings |= {"ISSUER": self.provider.issuer, "METADATA": self.provider.metadata}
        with running(["node", HOME / "server.mjs"], log, env=environment(**settings)) as process:
            wait_until(lambda: accepts(self.port), process, log)
            yield self

    def calls(self, tool):
        return [entry for entry in self.journal.entries() if entry.get("tool") == tool]


class Gateway:
    """Tollgate with a policy folder of its own.

    `servers` are the texts of servers' files by name, `grants` private addresses as (host, port, legs); `users` each
    have an agent key. `beside` is a gateway whose database and keyring this one shares; `tls` are its certificate, which
    is a root of its own, and key.
    """

    def __init__(self, folder, name, servers, grants, users=("ann", "bob"), settings="", beside=None, tls=()):
        self.home = pathlib.Path(folder) / name
        self.policy, self.state = self.home / "policy", self.home / "state"
        self.keyring = beside.keyring if beside else self.state / "keyring"
        self.database = beside.database if beside else self.state / "tollgate.db"
        self.log = self.home / "tollgate.log"
        self.agents, self.web, self.ops = free_port(), free_port(), free_port()
        self.tls = tls
        self.public_url = f"https://localhost:{self.web}" if tls else f"http://127.0.0.1:{self.web}"
        self.keys = {user: f"tg_{name}{user}".ljust(46, "k") for user in users}
        self.users = users
        self.starts = 0
        self.said = []
        for place in (self.home, self.policy, self.policy / "servers", self.state):
            place.mkdir(mode=0o700)
        self.settings(settings)
        write(self.policy / "keys.toml", "\n".join(self.entry(user) for user in users))
        for server, text in servers.items():
            write(self.policy / "servers" / f"{server}.toml", text)
        self.grant(grants)

    def settings(self, more=""):
        """Writes tollgate.toml; `more` are further tables."""
        tls = 'tls = {{ cert = "file:{}", key = "file:{}" }}'.format(*self.tls) if self.tls else ""
        write(
            self.policy / "tollgate.toml",
            f"""public_url = "{self.public_url}"
state_dir = "{self.state}"

[listen]
agents = "127.0.0.1:{self.agents}"
egress = ""
web = "127.0.0.1:{self.web}"
ops = "127.0.0.1:{self.ops}"
{tls}

[identity.keys]

[store]
url = "sqlite:{self.database}"

[vault]
keyring = "{self.keyring}"
{more}
""",
        )

    def entry(self, user):
        digest = hashlib.sha256(self.keys[user].encode()).hexdigest()
        return f'[[key]]\nsha256 = "{digest}"\nagent = "agent-{user}"\ntenant = "default"\nuser = "{user}"\n'

    def grant(self, grants):
        """Writes egress.toml: what on loopback may be reached."""
        write(
            self.policy / "egress.toml",
            "\n".join(
                f'[[private]]\nhost = "{host}"\nport = {json.dumps(port)}\nfor = {json.dumps(legs)}\n'
                for host, port, legs in grants
            ),
        )

    @contextlib.contextmanager
    def running(self, waits=True):
        """Runs it until the block ends; gives the process."""
        # Each start writes a log of its own, all of which are kept.
        self.starts += 1
        self.log = self.home / f"tollgate-{self.starts}.log"
        command = [PROGRAM, "serve", "--policy", self.policy]
        with running(command, self.log, env=environment()) as process:
            if waits:
                wait_until(lambda: answers_200(f"http://127.0.0.1:{self.ops}/readyz"), process, self.log)
            yield process

    def run(self, *words, seconds=30):
        """Runs a command of its CLI that works; gives what it wrote."""
        command = [str(word) for word in [PROGRAM, *words, "--policy", self.policy]]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=seconds, env=environment(), check=False, cwd=ROOT
        )
        # A link to sign in is a secret that is told.
        self.said += [] if words[0] == "login" else [done.stdout, done.stderr]
        assert done.returncode == 0, f"{words}: {done.returncode}: {done.stderr}"
        return done

    @property
    def trust(self):
        """The root that its clients trust; None is plain."""
        return self.tls[0] if self.tls else None

    def url(self, server):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.agents}/mcp/{server}"

    def records(self):
        """Everything in the audit files."""
        lines = []
        for file in sorted(self.state.glob("audit/**/*")):
            if file.is_file():
                lines += file.read_text(errors="replace").splitlines()
        return lines


def certificate(folder):
    """Makes a certificate for loopback that is its own root; gives the paths of it and its key."""
    paths = folder / "tls.crt", folder / "tls.key"
    words = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=loopback"
    words += " -addext subjectAltName=IP:127.0.0.1,DNS:localhost"
    command = [*words.split(), "-out", paths[0], "-keyout", paths[1]]
    subprocess.run(command, check=True, capture_output=True)
    paths[1].chmod(0o600)
    return paths


def server_file(url, auth, read_only="hints", **more):
    """The text of a server's file: everyone may use it, its tools that only read run unasked."""
    lines = [f'kind = "mcp"\nurl = "{url}"\naccess = "everyone"\nread_only = {json.dumps(read_only)}']
    lines += [f"{name} = {json.dumps(value)}" for name, value in more.items()]
    lines += ["", "[auth]", *auth, "", '[tools.add]\napproval = "never"']
    return "\n".join(lines) + "\n"
