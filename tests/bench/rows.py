"""The rows: loads that are repeated, direct, through nginx and through Tollgate, in rounds."""

import contextlib
import dataclasses

from turns import Turns, shown

ERAS = ["legacy", "modern"]
ALL = ("direct", "nginx", "tollgate")
STREAMS = ("burst", "steps", "paced")
# How often the targets of a row take turns in a round. The machine's pace changes by half from one second to the next:
# only loads that follow one another at once can be compared.
TURNS = 4
# The row and the target of the disk's own figure.
SYNC = ("fdatasync", "disk", "p50_us")


@dataclasses.dataclass(frozen=True)
class Row:
    """Calls of one tool on so many connections; the tools are those of tools.rs."""

    tool: str
    era: str
    connections: int
    one_core: bool = False
    targets: tuple = ALL

    @property
    def name(self):
        return f"{self.tool} {self.era} {self.connections}" + (" one-core" if self.one_core else "")


def effect(connections):
    # What it adds is seen beside the same call without an effect; nginx has no such thing.
    return Row("effect", "legacy", connections, targets=("tollgate",))


FULL = [
    *(Row("small", era, 1, one_core=True) for era in ERAS),
    *(Row("small", era, 1) for era in ERAS),
    effect(1),
    *(Row("small", era, 64) for era in ERAS),
    effect(64),
    *(Row("small", era, 512) for era in ERAS),
    *(Row(tool, era, count) for tool in ("large", "burst", "steps") for count in (1, 64, 512) for era in ERAS),
    *(Row("paced", era, 8) for era in ERAS),
]
SHORT = [
    Row("small", "legacy", 1, one_core=True),
    Row("small", "legacy", 1),
    effect(1),
    *(Row("small", era, 64) for era in ERAS),
    effect(64),
    Row("small", "legacy", 512),
    *(Row(tool, "legacy", 64) for tool in ("large", "burst", "steps")),
    Row("paced", "legacy", 8),
]


class Table(Turns):
    """What the rows measured, and what the disk did beside them."""

    def __init__(self, rig, seconds):
        super().__init__(rig, seconds)
        self.syncs = {}

    def measure(self, rows, rounds):
        """Runs `rows` so many times. Each round has a Tollgate of its own, so that its records do not pile up."""
        for number in range(1, rounds + 1):
            with self.rig.tollgate() as tollgate:
                for row in rows:
                    if row == effect(1):
                        self._effect(row, tollgate, number)
                    else:
                        self._turns(row, tollgate, number)
                    print(f"round {number}/{rounds}  {self._line(row, number)}", flush=True)

    def _effect(self, row, tollgate, number):
        """Asks the disk itself before and after; what it took while somebody else used it says nothing."""
        before = self.rig.sync(self.seconds / 2)
        self._load(row, "tollgate", tollgate, (number, 0), self.seconds)
        after = self.rig.sync(self.seconds / 2)
        self.syncs[number, 0] = min(before, after, key=lambda sync: sync["p50_us"])

    def _turns(self, row, tollgate, number):
        # What connections that come and go cost is no part of a row of hundreds of them.
        turns = TURNS if row.connections < 512 else 1
        for turn in range(turns):
            for name in row.targets:
                self._load(row, name, tollgate, (number, turn), self.seconds / turns)

    def _load(self, row, name, tollgate, when, seconds):
        target = self._target(row, name, tollgate)
        words = ["--era", row.era, "--tool", row.tool, "--connections", row.connections, "--seconds", seconds]
        with self.rig.on_end_core(target) if row.one_core else contextlib.nullcontext():
            self.load(row, name, when, "calls", target, *words)

    def _target(self, row, name, tollgate):
        if name == "tollgate":
            return tollgate
        if name == "direct":
            return self.rig.direct
        return self.rig.nginx_streaming if row.tool in STREAMS else self.rig.nginx

    def _line(self, row, number):
        seen = {name: self.of_round(row, name, "p50_us", number) for name in row.targets}
        return f"{row.name:<24}" + "  ".join(f"{name} p50 {got:.0f} us" for name, got in seen.items() if got)

    def of(self, row, name):
        return self.syncs if (row, name) == SYNC[:2] else super().of(row, name)

    def print(self):
        """Prints the medians."""
        if not self.results:
            return
        heads = ["p50 us", "p99 us", "p99/p50", "calls/s", "cpu us", "x nginx", "RSS MiB", "RssAnon", "lag p50", "lag p99"]
        print(f"\n{'row':<24}{'target':<10}" + "".join(f"{head:>10}" for head in heads))
        for row, name in self.results:
            print(f"{row.name:<24}{name:<10}" + "".join(f"{cell:>10}" for cell in self._cells(row, name)))
        if self.syncs:
            print(f"fdatasync of a line on the disk of the records: p50 {self.median(*SYNC):.0f} us")

    def _cells(self, row, name):
        watched = name != "direct"
        ratio = self.combine([(row, name, "cpu_us"), (row, "nginx", "cpu_us")], lambda ours, peer: ours / peer)
        yield shown(self.median(row, name, "p50_us"), 0)
        yield shown(self.median(row, name, "p99_us"), 0)
        yield shown(self.median(row, name, "tail"), 1)
        yield shown(self.median(row, name, "per_second"), 0)
        yield shown(self.median(row, name, "cpu_us") if watched else None, 1)
        yield shown(ratio if name == "tollgate" else None, 2)
        for key in ("rss_kib", "anonymous_kib"):
            yield shown(self.median(row, name, key) / 1024 if watched else None, 1)
        for key in ("lag_p50_us", "lag_p99_us"):
            yield shown(self.median(row, name, key), 0)
