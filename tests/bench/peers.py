"""The forward proxies under measurement: Debian's squid and tinyproxy, and Tollgate, in front of one upstream."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

from harness.process import accepts, free_port, running, wait_until
from harness.tollgate import starting, wait_until_ready, write
from rig import Target, pin

SQUID = "/usr/sbin/squid"
TINYPROXY = "/usr/bin/tinyproxy"
# Whose processes the peers are where root runs the benchmark.
NOBODY = "nobody"
# Tollgate holds a name against the name in the hello and has its address from the policy; the peers get the address
# itself, so that none of them has to look a name up.
HOST = "bench.test"
ADDRESS = "127.0.0.1"
# What Tollgate lets through, with limits that no load meets.
POLICY = """[tunnels]
per_second = 1000000
burst = 1000000

[[allow]]
host = "{host}:{port}"

[[private]]
host = "{host}"
port = {port}
address = "{address}"
for = ["proxy"]
"""


class Peers:
    """The proxies; all but Tollgate run until `stack` is closed."""

    def __init__(self, rig, stack):
        self.rig = rig
        self.home = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tollgate-bench-peers-")))
        self.options = {}
        if os.getuid() == 0:
            shutil.chown(self.home, NOBODY)
            self.options = {"user": NOBODY, "group": "nogroup", "extra_groups": []}
        self.upstream = stack.enter_context(rig.upstream_of("forward-upstream"))
        self.direct = Target(self.upstream, [], [])
        self.squid = stack.enter_context(self._peer(squid_conf, SQUID, "-N", "-f"))
        self.tinyproxy = stack.enter_context(self._peer(tinyproxy_conf, TINYPROXY, "-d", "-c"))

    @contextlib.contextmanager
    def tollgate(self):
        """A Tollgate of its own, as a Target."""
        rules = POLICY.format(host=HOST, address=ADDRESS, port=self.upstream)
        with starting({}, keys=self.rig.secrets, prefix=pin(self.rig.proxy_core), proxy=rules) as started:
            wait_until_ready(started)
            words = ["--host", HOST, "--upstream", self.upstream, "--keys", self.rig.keys]
            yield Target(started.egress, words, [started.process.pid])

    @contextlib.contextmanager
    def _peer(self, text, program, *words):
        """Runs a program whose last word is the file of its configuration."""
        name, port = pathlib.Path(program).name, free_port()
        log, conf = self.rig.home / f"{name}.log", self.home / f"{name}.conf"
        write(conf, text(port))
        if self.options:
            shutil.chown(conf, NOBODY)
        command = [*pin(self.rig.proxy_core), program, *words, conf]
        with running(command, log, **self.options) as process:
            wait_until(lambda: accepts(port), process, log)
            yield Target(port, ["--host", ADDRESS, "--upstream", self.upstream], [process.pid])


def versions():
    """Which peers these are."""
    squid = subprocess.run([SQUID, "-v"], capture_output=True, text=True, check=False).stdout.partition("\n")[0]
    tinyproxy = subprocess.run([TINYPROXY, "-v"], capture_output=True, text=True, check=False).stdout.strip()
    return f"squid {squid.rsplit(' ', 1)[-1]}, {tinyproxy}"


def squid_conf(port):
    """One process that keeps connections to both sides, and nothing else: no cache, no log, no lookups."""
    return f"""http_port 127.0.0.1:{port}
visible_hostname bench
http_access allow all
cache deny all
cache_mem 0
access_log none
cache_log /dev/null
cache_store_log none
pid_filename none
coredump_dir none
netdb_filename none
pinger_enable off
dns_nameservers 127.0.0.1
via off
forwarded_for delete
max_filedescriptors 20000
shutdown_lifetime 0 seconds
"""


def tinyproxy_conf(port):
    """A thread for each of as many clients as there may be; no log."""
    return f"""Port {port}
Listen 127.0.0.1
Timeout 600
MaxClients 20000
LogLevel Critical
DisableViaHeader Yes
"""
