"""An agent that is fenced in reaches what Tollgate allows, and nothing else.

`veth`: the agent is in a network namespace whose only route leads to Tollgate's side, where deploy/link.nft holds the link. `uid`: it shares the loopback
interface with Tollgate, and deploy/fence.nft holds its uid. Everything happens in namespaces that are made here and go
with the test: no address in them leads anywhere else, and the machine's own rules stay as they are.
"""

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness.process import ROOT, TOOLS, NotReady, free_port, running, wait_until  # noqa: E402
from harness.tollgate import forward_proxy  # noqa: E402

PYTHON = TOOLS / "proxy" / "python" / "bin" / "python"
SITE = ROOT / "tests" / "proxy" / "python" / "site.py"
FENCE = ROOT / "deploy" / "fence.nft"
LINK = ROOT / "deploy" / "link.nft"

KEY, WRONG = "tg_" + "fence" * 9, "tg_" + "wrong" * 9
# An address that is public, so that Tollgate needs no grant for it; here it is in a namespace.
WORLD = "45.45.45.45"
WORLD6 = "fd45::2"
GATEWAY, AGENT = "10.77.0.1", "10.77.0.2"
# A port at which nobody listens: who can be reached refuses a connection to it.
NOBODYS = 9
# Nobody's.
UID = 64999
# `files.test IN A`, as a name server is asked.
QUERY = r"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x05files\x04test\x00\x00\x01\x00\x01"
# How many checks each scene has.
SCENES = {"veth": 14, "uid": 13}


def main():
    if "--inside" not in sys.argv:
        return enter()
    tally = Tally()
    for scene, fault in [(veth, without_rules()), (uid, without_uids())]:
        print(f"-- {scene.__name__}")
        if fault:
            tally.skip(scene.__name__, fault)
            continue
        try:
            scene(tally)
        except (NotReady, subprocess.CalledProcessError) as error:
            tally.check("the scene is set", False, str(error))
    print(f"namespaces: {tally.passed} passed, {tally.failed} failed" + tally.rest())
    return 1 if tally.failed else 0


def enter():
    """Runs this script again in a network namespace of its own."""
    means = ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]
    tried = subprocess.run([*means, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        tally = Tally()
        for scene in SCENES:
            tally.skip(scene, f"`{' '.join(means)}`: {tried.stderr.strip()}")
        print(f"namespaces: 0 passed, 0 failed{tally.rest()}")
        return 0
    os.execvp(means[0], [*means, sys.executable, __file__, "--inside"])


def without_uids():
    """Why uids cannot be fenced here, if they cannot."""
    # In a user namespace of an ordinary user there is one uid.
    one = pathlib.Path("/proc/self/uid_map").read_text().split()[2] == "1"
    return "root alone can switch uids; run it as root" if one else without_rules()


def without_rules():
    """Why no rules can be loaded here, if they cannot."""
    tried = subprocess.run(["nft", "list", "ruleset"], capture_output=True, text=True, check=False)
    return f"`nft list ruleset`: {tried.stderr.strip()}" if tried.returncode else None


class Tally:
    """What passed, what failed, and what this machine cannot do."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, what, holds, seen=""):
        self.passed, self.failed = self.passed + bool(holds), self.failed + (not holds)
        print(f"    {what}" if holds else f"    {what} FAILED: {seen}", flush=True)

    def skip(self, scene, why):
        self.skipped += SCENES[scene]
        print(f"    {scene} SKIPPED: {why}")

    def rest(self):
        return f", {self.skipped} skipped" if self.skipped else ""


def veth(tally):
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(temporary())
        agent, world = (stack.enter_context(namespace()) for _ in range(2))
        link("agent", agent, [GATEWAY, "fd77::1"], [AGENT, "fd77::2"])
        link("world", world, ["45.45.45.1", "fd45::1"], [WORLD, WORLD6])
        # A machine that forwards for others, and a world that knows the way back.
        for switch in ["ipv4/ip_forward", "ipv6/conf/all/forwarding"]:
            pathlib.Path("/proc/sys/net", switch).write_text("1")
        for there, gateway in [(agent, GATEWAY), (agent, "fd77::1"), (world, "45.45.45.1"), (world, "fd45::1")]:
            command(*there, "ip", "route", "add", "default", "via", gateway)
        ports = stack.enter_context(site(folder, world, WORLD))
        started = stack.enter_context(tollgate(ports, WORLD, GATEWAY))
        proxy = f"{GATEWAY}:{started.egress}"
        for address in [WORLD, WORLD6, GATEWAY]:
            # The link may still be coming up.
            answered = any(refuses(agent, address, NOBODYS) for _ in range(5))
            tally.check(f"without the fence {address} answers the agent", answered)
        load(folder, LINK, link='"agent"', address=GATEWAY, gateway=f"{{ {started.egress} }}")
        both_ways(tally, agent, ports, WORLD)
        for address in [WORLD6, GATEWAY]:
            tally.check(f"{address} does not answer the agent", not refuses(agent, address, NOBODYS))
        through_tollgate(tally, agent, ports, proxy, folder)


def uid(tally):
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(temporary())
        command("ip", "link", "set", "lo", "up")
        agent = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--no-new-privs"]
        ports = stack.enter_context(site(folder, [], "127.0.0.1"))
        other = stack.enter_context(listening_on_ipv6())
        started = stack.enter_context(tollgate(ports, "127.0.0.1", "127.0.0.1"))
        before = reaches(agent, "127.0.0.1", ports["tls"])
        tally.check("without the fence the agent reaches everything", before)
        load(folder, FENCE, agent=UID, gateway=f"{{ {started.egress} }}")
        both_ways(tally, agent, ports, "127.0.0.1")
        tally.check("another uid reaches IPv6", reaches([], "::1", other))
        tally.check("the agent does not", not reaches(agent, "::1", other))
        here = reaches(agent, "127.0.0.1", started.ops)
        tally.check("the agent reaches no other port of the gateway", not here)
        through_tollgate(tally, agent, ports, f"127.0.0.1:{started.egress}", folder)


def both_ways(tally, agent, ports, address):
    """What an unfenced process reaches directly, and the agent does not."""
    tally.check("another process connects directly", reaches([], address, ports["tls"]))
    tally.check("the agent does not", not reaches(agent, address, ports["tls"]))
    tally.check("another process asks the name server", answers([], address, ports["names"]))
    tally.check("the agent does not", not answers(agent, address, ports["names"]))


def through_tollgate(tally, agent, ports, proxy, folder):
    """What comes of the agent's requests through the proxy."""
    for what, url, key, expected in [
        ("an allowed host, over TLS", "https://files.test:{tls}/hello", KEY, "0 hello over https and HTTP/1"),
        ("an allowed host, plain", "http://files.test:{plain}/hello", KEY, "0 hello over http and HTTP/1"),
        ("a host that no rule names", "https://elsewhere.test/", KEY, "56 .*response 403"),
        ("a name that leads to loopback", "https://inside.test:{tls}/hello", KEY, "56 .*response 403"),
        ("a key that nobody gave out", "https://files.test:{tls}/hello", WRONG, "56 .*response 407"),
    ]:
        curl = ["curl", "--silent", "--show-error", "--max-time", "20", "--cacert", folder / "ca.pem"]
        seen = run(*agent, *curl, "--proxy", f"http://:{key}@{proxy}", url.format(**ports))
        told = f"{seen.returncode} {seen.stdout}{seen.stderr}"
        tally.check(f"through the proxy: {what}", re.match(expected, told), told)


@contextlib.contextmanager
def temporary():
    """A folder that every uid may look into."""
    with tempfile.TemporaryDirectory(prefix="tollgate-fence-") as folder:
        os.chmod(folder, 0o755)
        yield pathlib.Path(folder)


@contextlib.contextmanager
def namespace():
    """A network namespace, as what goes before a command that runs in it."""
    process = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    mine, its = pathlib.Path("/proc/self/ns/net"), pathlib.Path(f"/proc/{process.pid}/ns/net")
    try:
        wait_until(lambda: mine.readlink() != its.readlink(), process, os.devnull)
        yield ["nsenter", f"--net={its}"]
    finally:
        process.kill()
        process.wait()


def link(name, there, own, peer):
    """Joins this namespace and another by a pair of interfaces."""
    pid = there[1].split("/")[2]
    command("ip", "link", "set", "lo", "up")
    command("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", pid)
    for inside, interface, addresses in [([], name, own), (there, "eth0", peer)]:
        for address, rest in zip(addresses, [["24"], ["64", "nodad"]], strict=True):
            command(*inside, "ip", "address", "add", f"{address}/{rest[0]}", "dev", interface, *rest[1:])
        command(*inside, "ip", "link", "set", interface, "up")
    command(*there, "ip", "link", "set", "lo", "up")


@contextlib.contextmanager
def site(folder, inside, address):
    """Runs the site and its name server; gives their ports."""
    ports = {name: free_port() for name in ["tls", "plain", "opaque", "names"]}
    log = folder / "site.log"
    with running([*inside, PYTHON, SITE, folder, address, *ports.values()], log) as process:
        wait_until((folder / "ready").exists, process, log)
        yield ports


def tollgate(ports, names, address):
    """Tollgate, listening at `address`, which asks the name server at `names`."""
    rules = []
    for name, scheme in [("tls", "https"), ("plain", "http")]:
        for host in ["files.test", "inside.test"]:
            rules.append(f'[[allow]]\nhost = "{host}:{ports[name]}"\nscheme = "{scheme}"\n')
        if names == "127.0.0.1":
            grant = f'[[private]]\nhost = "files.test"\nport = {ports[name]}\naddress = "{names}"\nfor = ["proxy"]\n'
            rules.append(grant)
    dns = f'[dns]\nservers = ["{names}:{ports["names"]}"]\n'
    return forward_proxy("\n".join(rules), [KEY], dns, address=address)


def load(folder, rules, **defined):
    """Loads rules as they are shipped, with what is different in this test."""
    text = rules.read_text()
    for name, value in defined.items():
        text, found = re.subn(rf"(?m)^define {name} = .*$", f"define {name} = {value}", text)
        assert found == 1, name
    file = folder / rules.name
    file.write_text(text)
    # Twice, since an operator loads it again after a change.
    for _ in range(2):
        command("nft", "--file", file)


@contextlib.contextmanager
def listening_on_ipv6():
    """A listener on ::1; gives its port."""
    with socket.create_server(("::1", 0), family=socket.AF_INET6) as listener:
        yield listener.getsockname()[1]


def reaches(who, address, port):
    """Whether a TCP connection comes about. Packets that lead nowhere are waited for a while."""
    return run(*who, "timeout", "2", "bash", "-c", f"</dev/tcp/{address}/{port}").returncode == 0


def refuses(who, address, port):
    """Whether a connection is refused, and not left without an answer."""
    tried = run(*who, "timeout", "2", "bash", "-c", f"</dev/tcp/{address}/{port}")
    return "refused" in tried.stderr


def answers(who, address, port):
    """Whether a name server answers over UDP."""
    ask = f'exec 3<>/dev/udp/{address}/{port} && printf "{QUERY}" >&3 && timeout 2 head -c 2 <&3 | wc -c'
    return run(*who, "bash", "-c", ask).stdout.strip() == "2"


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, timeout=60)


def command(*words):
    """Runs a command that has to succeed."""
    subprocess.run([str(word) for word in words], check=True)


if __name__ == "__main__":
    sys.exit(main())
