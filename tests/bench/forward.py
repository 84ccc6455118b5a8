"""Rows of the forward proxy: each load direct, through squid, through tinyproxy and through Tollgate, in turns."""

import dataclasses

from turns import Turns, shown

ALL = ("direct", "squid", "tinyproxy", "tollgate")
# Seconds of a turn: a proxy with 64 clients may keep one waiting for a tenth of a second.
TURN = 0.5
MIB = 2**20


@dataclasses.dataclass(frozen=True)
class Row:
    """A load of so many clients; `unit` of what it counts is shown as one."""

    kind: str
    connections: int
    load: str
    words: tuple = ()
    unit: int = 1
    targets: tuple = ALL

    @property
    def name(self):
        return f"proxy-{self.kind} {self.connections}"


PLAIN = Row("plain", 64, "requests", ("--way", "kept"))
CONNECT = Row("connect", 64, "requests", ("--way", "tunnel"))
DOWN, DOWNS = (Row("down", count, "bulk", ("--direction", "down"), MIB) for count in (1, 8))
UP, UPS = (Row("up", count, "bulk", ("--direction", "up"), MIB) for count in (1, 8))
FULL = [PLAIN, CONNECT, DOWN, DOWNS, UP, UPS]
SHORT = [PLAIN, CONNECT, DOWN]


def way(row, name):
    # It closes every connection after one answer.
    return ("--way", "fresh") if (row.kind, name) == (PLAIN.kind, "tinyproxy") else row.words


class Table(Turns):
    """What the rows measured."""

    def __init__(self, rig, peers, seconds):
        super().__init__(rig, seconds)
        self.peers = peers

    def measure(self, rows, rounds):
        """Runs `rows` so many times. Each round has a Tollgate of its own, so that its records do not pile up."""
        for number in range(1, rounds + 1):
            with self.peers.tollgate() as tollgate:
                for row in rows:
                    self._turns(row, tollgate, number)
                    print(f"round {number}/{rounds}  {self._line(row, number)}", flush=True)

    def _turns(self, row, tollgate, number):
        peers = self.peers
        targets = {"direct": peers.direct, "squid": peers.squid, "tinyproxy": peers.tinyproxy, "tollgate": tollgate}
        words = ["--connections", row.connections, "--seconds", TURN]
        for turn in range(max(1, round(self.seconds / TURN))):
            for name in row.targets:
                self.load(row, name, (number, turn), row.load, targets[name], *way(row, name), *words)

    def _line(self, row, number):
        seen = {name: self.of_round(row, name, "per_second", number) for name in row.targets}
        return f"{row.name:<24}" + "  ".join(f"{name} {got / row.unit:.0f}/s" for name, got in seen.items() if got)

    def print(self):
        """Prints the medians."""
        if not self.results:
            return
        heads = ["per s", "cpu us", "x squid", "x tinyproxy", "/s x squid", "/s x tiny", "p50 us", "p99 us", "RSS MiB", "RssAnon"]
        print("\nrequests, tunnels or MiB" + " " * 10 + "".join(f"{head:>12}" for head in heads))
        for row, name in self.results:
            print(f"{row.name:<24}{name:<10}" + "".join(f"{cell:>12}" for cell in self._cells(row, name)))

    def _cells(self, row, name):
        per_second, cpu = self.median(row, name, "per_second"), self.median(row, name, "cpu_us")
        watched = name != "direct"
        yield shown(per_second and per_second / row.unit, 0)
        yield shown(cpu * row.unit if cpu and watched else None, 1)
        for key in ("cpu_us", "per_second"):
            for peer in ("squid", "tinyproxy"):
                yield shown(self.beside(row, key, peer) if name == "tollgate" else None, 2)
        for key in ("p50_us", "p99_us"):
            yield shown(self.median(row, name, key), 0)
        for key in ("rss_kib", "anonymous_kib"):
            kib = self.median(row, name, key)
            yield shown(kib / 1024 if kib and watched else None, 1)

    def beside(self, row, key, peer):
        """Tollgate's figure over the peer's."""
        return self.combine([(row, "tollgate", key), (row, peer, key)], lambda ours, theirs: ours / theirs)
