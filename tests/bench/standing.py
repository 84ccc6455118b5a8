"""What is measured once: start-up, memory, and whether anything grows."""

import contextlib
import http.client
import json
import os
import statistics
import time

from rig import LoadFailed, NotReady, free_port, status

SHORT = ["start-up", "sessions", "burst-memory", "proxy-tunnels"]
FULL = [*SHORT, "flat"]
STARTS = 7
SESSIONS = 1000
TUNNELS = 8000
# Opened before those that count, so that what grows once is not laid to their charge.
SESSIONS_BEFORE = 200
FLAT_CALLS = 100_000
FLAT_STREAMS = 1000
# Longer than idle connections to the upstream are kept, and than anything else that goes by itself.
SETTLING = 6
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "bench", "version": "1"},
    },
}


class Standing:
    """Figures by name, with their units in the names."""

    def __init__(self, rig, peers):
        self.rig = rig
        self.peers = peers
        self.figures = {}
        self.passed = self.failed = 0

    def measure(self, names):
        kinds = {
            "start-up": self._start_up,
            "sessions": self._sessions,
            "burst-memory": self._burst_memory,
            "proxy-tunnels": self._tunnels,
            "flat": self._flat,
        }
        for name in names:
            try:
                kinds[name]()
            except (LoadFailed, NotReady) as fault:
                print(f"{name}: {fault}", flush=True)
                self.failed += 1
            else:
                self.passed += 1
                print(f"{name} is measured", flush=True)

    def print(self):
        if self.figures:
            print()
        for name, value in self.figures.items():
            print(f"{name:<60}{value:>10.1f}")

    def _start_up(self):
        reachable, alone = [], []
        for _ in range(STARTS):
            reachable.append(self._start(self.rig.upstream, opens=True))
            alone.append(self._start(free_port(), opens=False))
        self.figures["start to first answered initialize, ms"] = statistics.median(reachable)
        self.figures["start to first answer without an upstream, ms"] = statistics.median(alone)

    def _start(self, upstream, opens):
        with self.rig.starting(upstream) as started:
            session = self._first_answer(started)
            taken = (time.monotonic() - started.begun) * 1000
        if (session is not None) != opens:
            raise LoadFailed("the first `initialize` " + ("opened no session" if opens else "opened a session"))
        return taken

    def _first_answer(self, started):
        """Asks until there is an answer, and gives the session that it opened, if any."""
        headers = {
            "authorization": f"Bearer {self.rig.secrets[0]}",
            "content-type": "application/json",
            "accept": "application/json, text/event-stream",
        }
        while started.process.poll() is None:
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", started.agents, timeout=30)) as connection:
                try:
                    connection.request("POST", "/mcp/bench", json.dumps(INITIALIZE), headers)
                    return connection.getresponse().headers["mcp-session-id"]
                except ConnectionRefusedError:
                    time.sleep(0.0005)
        raise LoadFailed(f"Tollgate ended with status {started.process.returncode}")

    def _sessions(self):
        for listening, kind in ((False, "without GET stream"), (True, "with GET streams")):
            with self.rig.tollgate() as target:
                (process,) = target.processes
                time.sleep(1)
                self._memory(process, "idle")
                with self.rig.sessions(target, SESSIONS_BEFORE, listening):
                    before = status(process, "RssAnon")
                    with self.rig.sessions(target, SESSIONS, listening):
                        grown = status(process, "RssAnon") - before
                        self._memory(process, f"{SESSIONS + SESSIONS_BEFORE} sessions {kind}")
                self.figures[f"a further session {kind}, KiB"] = grown / SESSIONS

    def _memory(self, process, when):
        for field in ("VmRSS", "RssAnon"):
            self.figures[f"{field} {when}, MiB"] = status(process, field) / 1024

    def _tunnels(self):
        with self.peers.tollgate() as target:
            (process,) = target.processes
            time.sleep(1)
            self._memory(process, "idle, forward proxy")
            with self.rig.tunnels(target, TUNNELS):
                self._memory(process, f"{TUNNELS} idle tunnels")
        for name, target in (("squid", self.peers.squid), ("tinyproxy", self.peers.tinyproxy)):
            with self.rig.tunnels(target, TUNNELS):
                self._memory(*target.processes, f"{TUNNELS} idle tunnels of {name}")

    def _burst_memory(self):
        with self.rig.tollgate() as target:
            (process,) = target.processes
            time.sleep(1)
            idle = status(process, "RssAnon")
            during = self._calls(target, "large", 3)["anonymous_kib"]
            time.sleep(5)
            after = status(process, "RssAnon")
        self.figures["RssAnon in a burst of 64 KiB results, over idle, MiB"] = (during - idle) / 1024
        self.figures["RssAnon 5 s after it, over idle, MiB"] = (after - idle) / 1024

    def _flat(self):
        with self.rig.tollgate() as target:
            (process,) = target.processes
            self._calls(target, "small", 2)
            self._abandon(target, 64)
            start = self._settled(process)
            calls = 0
            while calls < FLAT_CALLS:
                calls += self._calls(target, "small", 2)["calls"]
            after_calls = self._settled(process)
            self._abandon(target, FLAT_STREAMS)
            after_streams = self._settled(process)
        self._grown(f"{FLAT_CALLS} calls", start, after_calls)
        self._grown(f"{FLAT_STREAMS} abandoned streams", after_calls, after_streams)

    def _grown(self, what, before, after):
        for name, old, new in zip(("RSS, MiB", "threads", "descriptors"), before, after):
            self.figures[f"growth over {what}: {name}"] = new - old

    def _calls(self, target, tool, seconds):
        words = ["--era", "modern", "--tool", tool, "--connections", 64, "--seconds", seconds]
        words += ["--watch", target.processes[0]]
        return self.rig.load("calls", target, *words)

    def _abandon(self, target, count):
        self.rig.load("abandon", target, "--era", "modern", "--count", count)

    def _settled(self, process):
        time.sleep(SETTLING)
        descriptors = len(os.listdir(f"/proc/{process}/fd"))
        return status(process, "VmRSS") / 1024, status(process, "Threads"), descriptors
