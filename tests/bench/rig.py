"""What the benchmark runs: the upstreams, nginx, Tollgate, and the loads, each on its core."""

import contextlib
import json
import os
import pathlib
import platform
import re
import resource
import secrets
import subprocess
import sys
import tempfile
import typing

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness.process import ROOT, TARGET, NotReady, accepts, free_port, running, wait_until  # noqa: E402
from harness.tollgate import starting, tollgate, write  # noqa: E402

__all__ = ["ROOT", "LoadFailed", "NotReady", "Rig", "Target", "free_port", "pin", "status"]

LOAD = TARGET / "release" / "bench-load"
NGINX = "/usr/sbin/nginx"
# So many agents call.
KEYS = 64
# Seconds that a load may take at most.
PATIENCE = 90


class LoadFailed(Exception):
    """A load did not end well; the message says why."""


class Target(typing.NamedTuple):
    """Where a load goes, and which processes it costs."""

    port: int
    # How a load finds its way there, and what it shows.
    words: list
    processes: list


class Rig:
    """The programs under measurement; those that stay up run until `stack` is closed."""

    def __init__(self, stack):
        # Thousands of connections need descriptors; the programs inherit the limit.
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        cores = sorted(os.sched_getaffinity(0))
        self.end_core, self.proxy_core = cores[0], cores[-1]
        self.home = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tollgate-bench-")))
        self.secrets = [f"tg_{secrets.token_hex(20)}" for _ in range(KEYS)]
        self.keys = self.home / "keys"
        write(self.keys, "\n".join(self.secrets))
        self.upstream = stack.enter_context(self.upstream_of("upstream"))
        self.direct = Target(self.upstream, ["--path", "/mcp"], [])
        self.nginx = stack.enter_context(self._nginx())
        self.nginx_streaming = self.nginx._replace(words=["--path", "/stream"])

    def describe(self):
        """The machine, in a line."""
        folder = subprocess.run(["stat", "-f", "-c", "%T", self.home], capture_output=True, text=True, check=False)
        version = subprocess.run([NGINX, "-v"], capture_output=True, text=True, check=False).stderr.strip()
        cores = "one core for everything" if self.end_core == self.proxy_core else f"{os.cpu_count()} cores"
        parts = [platform.machine(), cores, f"Linux {platform.release()}", version.rsplit(" ", 1)[-1]]
        return ", ".join([*parts, f"records on {folder.stdout.strip()}"])

    @contextlib.contextmanager
    def tollgate(self):
        """A Tollgate of its own, as a Target."""
        with tollgate(**self._in_front_of(self.upstream)) as (url, process):
            port, path = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/.*)", url("bench")).groups()
            yield Target(int(port), ["--path", path, "--keys", self.keys], [process.pid])

    def starting(self, upstream):
        """A Tollgate that has only just been started, in front of the port `upstream`."""
        return starting(**self._in_front_of(upstream))

    def _in_front_of(self, upstream):
        return {
            "servers": {"bench": upstream},
            "keys": self.secrets,
            "prefix": pin(self.proxy_core),
            "effects": ["effect"],
            # Every connection calls at the same time, and gets every result whole: what is measured is neither the wait
            # for others nor what is spared by cutting.
            "bounds": "concurrency = 1024\nresult_bytes = 131072",
            "settings": "[limits]\nturn_bytes = 1099511627776",
        }

    def load(self, kind, target, *words):
        """Runs a load to its end and gives what it prints."""
        command = self._command(kind, target, words)
        try:
            run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
        except subprocess.TimeoutExpired as fault:
            raise LoadFailed(f"no end after {PATIENCE} s") from fault
        if run.returncode != 0:
            raise LoadFailed(run.stderr.strip())
        return json.loads(run.stdout)

    def sessions(self, target, count, listening):
        """Keeps so many sessions open until the block ends."""
        words = ["--era", "legacy", "--count", count, *(["--listening"] if listening else [])]
        return self._held("sessions", target, words)

    def tunnels(self, target, count):
        """Keeps so many idle tunnels open until the block ends."""
        return self._held("idle", target, ["--count", count])

    @contextlib.contextmanager
    def _held(self, kind, target, words):
        command = self._command(kind, target, words)
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
            if not process.stdout.readline():
                raise LoadFailed(process.stderr.read().strip())
            yield
            process.stdin.close()

    def sync(self, seconds):
        """The median of a line that is appended and synced beside Tollgate's records, in microseconds."""
        command = [*pin(self.proxy_core), LOAD, "sync", "--folder", self.home, "--seconds", seconds]
        run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
        return json.loads(run.stdout)

    @contextlib.contextmanager
    def on_end_core(self, target):
        """Moves the target to the core of load and upstream until the block ends."""
        move(target.processes, self.end_core)
        try:
            yield
        finally:
            move(target.processes, self.proxy_core)

    def _command(self, kind, target, words):
        command = [*pin(self.end_core), LOAD, kind, "--port", target.port, *target.words, *words]
        return [str(word) for word in command]

    @contextlib.contextmanager
    def upstream_of(self, kind):
        """Runs an upstream until the block ends, and gives its port."""
        port, log = free_port(), self.home / f"{kind}.log"
        with running([*pin(self.end_core), LOAD, kind, "--port", port], log) as process:
            wait_until(lambda: accepts(port), process, log)
            yield port

    @contextlib.contextmanager
    def _nginx(self):
        port, log, conf = free_port(), self.home / "nginx.log", self.home / "nginx.conf"
        write(conf, nginx_conf(self.home, port, self.upstream))
        command = [*pin(self.proxy_core), NGINX, "-p", self.home, "-c", conf, "-e", "stderr"]
        with running(command, log) as process:
            wait_until(lambda: accepts(port), process, log)
            yield Target(port, ["--path", "/mcp"], [process.pid, *children(process.pid)])


def pin(core):
    return ["taskset", "-c", str(core)]


def move(processes, core):
    for process in processes:
        for thread in os.listdir(f"/proc/{process}/task"):
            os.sched_setaffinity(int(thread), {core})


def children(process):
    return [int(word) for word in pathlib.Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def status(process, field):
    """A number of /proc/PID/status."""
    text = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(rf"^{field}:\s+(\d+)", text, re.MULTILINE).group(1))


def nginx_conf(home, port, upstream):
    """One worker, connections kept to both sides, buffers that hold whole messages; streams are not held back."""
    temporary = "\n    ".join(
        f"{kind}_temp_path {home}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return f"""daemon off;
{"user root;" if os.getuid() == 0 else ""}
worker_processes 1;
pid {home}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    {temporary}
    access_log off;
    keepalive_requests 1000000000;
    client_body_buffer_size 64k;
    tcp_nodelay on;
    upstream bench {{
        server 127.0.0.1:{upstream};
        keepalive 1024;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        proxy_http_version 1.1;
        proxy_set_header Connection "";
        proxy_buffers 16 32k;
        location / {{
            proxy_pass http://bench;
            proxy_buffer_size 32k;
        }}
        location /stream {{
            proxy_pass http://bench;
            proxy_buffering off;
            proxy_buffer_size 64k;
        }}
    }}
}}
"""
