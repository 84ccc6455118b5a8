"""What is required of the figures, and what is aimed at."""

import typing

import forward
from rows import ERAS, SYNC, Row, effect

# A record kept by mistake at each call would be 40 MiB over the calls, a connection's buffers at each stream 15 MiB over
# the streams; what an allocator keeps to itself moves by a MiB or two.
FLAT_MIB = 4


class Verdict(typing.NamedTuple):
    """A bar: a figure that must not be above what is required, or not below it."""

    name: str
    figure: float | None
    required: float
    aim: float | None = None
    at_least: bool = False

    @property
    def holds(self):
        return self._is_within(self.required)

    @property
    def reaches(self):
        return self.aim is None or self._is_within(self.aim)

    def _is_within(self, bound):
        if self.figure is None:
            return False
        return self.figure >= bound if self.at_least else self.figure <= bound


def judge(table, proxies, standing, complete):
    """All bars; those without a figure only where the measurement should have been `complete`."""
    verdicts = [*ratios(table), *durable(table), *beside_proxies(proxies), *alone(standing.figures)]
    return [verdict for verdict in verdicts if complete or verdict.figure is not None]


def ratios(table):
    """Beside nginx, within each turn."""

    def cpu(row):
        return table.combine([(row, "tollgate", "cpu_us"), (row, "nginx", "cpu_us")], lambda ours, peer: ours / peer)

    for era in ERAS:
        yield Verdict(f"CPU of a call at 64 connections, {era}, x nginx", cpu(Row("small", era, 64)), 2.1, 1.6)
        yield Verdict(f"p50 added on one core, {era}, x nginx", added(table, era), 2.2, 1.5)
        yield Verdict(f"CPU of a 64 KiB result, {era}, x nginx", cpu(Row("large", era, 64)), 2.0, 1.5)
        yield Verdict(f"CPU of 20 events in one write, {era}, x nginx", cpu(Row("burst", era, 64)), 1.8, 1.3)
        yield Verdict(f"CPU of 20 events one by one, {era}, x nginx", cpu(Row("steps", era, 64)), 1.8, 1.3)
        yield Verdict(f"lag of events over direct, p50, {era}, us", lag(table, era), 100)
        tail = table.median(Row("small", era, 512), "tollgate", "tail")
        yield Verdict(f"p99 at 512 connections, {era}, x p50", tail, 2.0, 1.5)
    legacy, modern = (Row("small", era, 64) for era in ERAS)
    both = [(modern, "tollgate", "cpu_us"), (legacy, "tollgate", "cpu_us")]
    yield Verdict("CPU of a modern call, x legacy", table.combine(both, lambda new, old: new / old), 1.2)


def added(table, era):
    row = Row("small", era, 1, one_core=True)
    wanted = [(row, name, "p50_us") for name in ("direct", "nginx", "tollgate")]
    return table.combine(wanted, lambda direct, peer, ours: (ours - direct) / (peer - direct))


def lag(table, era):
    row = Row("paced", era, 8)
    wanted = [(row, name, "lag_p50_us") for name in ("direct", "tollgate")]
    return table.combine(wanted, lambda direct, ours: ours - direct)


def durable(table):
    """A side effect is on disk twice: what will be done, and what came of it."""
    wanted = [(effect(1), "tollgate", "p50_us"), (Row("small", "legacy", 1), "tollgate", "p50_us"), SYNC]
    over = table.combine(wanted, lambda durable, read, sync: durable - read - 2 * sync)
    yield Verdict("a durable call over two fdatasyncs, p50, us", over, 150)
    both = [(effect(64), "tollgate", "per_second"), (Row("small", "legacy", 64), "tollgate", "per_second")]
    share = table.combine(both, lambda durable, read: durable / read)
    yield Verdict("durable calls a second at 64 connections, x reads", share, 0.45, at_least=True)


def beside_proxies(proxies):
    """The forward proxy beside squid and tinyproxy, within each turn."""
    cost = proxies.beside(forward.PLAIN, "cpu_us", "squid")
    yield Verdict("plain requests a CPU second, x squid", cost and 1 / cost, 1.5, at_least=True)
    cost = proxies.beside(forward.CONNECT, "cpu_us", "squid")
    yield Verdict("CPU of a tunnel with one request, x squid", cost, 1.0)
    rate = proxies.beside(forward.CONNECT, "per_second", "tinyproxy")
    yield Verdict("tunnels a second, x tinyproxy", rate, 0.75, at_least=True)
    for row, what in ((forward.DOWN, "down"), (forward.UP, "up"), (forward.DOWNS, "down"), (forward.UPS, "up")):
        rate = proxies.beside(row, "per_second", "tinyproxy")
        name = f"bytes a second {what}, tunnels: {row.connections}, x tinyproxy"
        yield Verdict(name, rate, 0.9, at_least=True)


def alone(figures):
    """What only Tollgate is measured for."""
    required = {
        "RssAnon idle, MiB": 12,
        "a further session without GET stream, KiB": 25,
        "a further session with GET streams, KiB": 60,
        "RssAnon 5 s after it, over idle, MiB": 20,
        "start to first answered initialize, ms": 50,
        "start to first answer without an upstream, ms": 50,
        "VmRSS 8000 idle tunnels, MiB": 120,
        "growth over 100000 calls: RSS, MiB": FLAT_MIB,
        "growth over 100000 calls: threads": 0,
        "growth over 100000 calls: descriptors": 0,
        "growth over 1000 abandoned streams: RSS, MiB": FLAT_MIB,
        "growth over 1000 abandoned streams: threads": 0,
        "growth over 1000 abandoned streams: descriptors": 0,
    }
    for name, bound in required.items():
        yield Verdict(name, figures.get(name), bound)


def print_verdicts(verdicts):
    if not verdicts:
        return
    print(f"\n{'required':<60}{'figure':>10}{'bar':>10}{'aim':>8}  verdict")
    for verdict in verdicts:
        figure = "-" if verdict.figure is None else f"{verdict.figure:.2f}"
        bar = f"{'>=' if verdict.at_least else '<='} {verdict.required:g}"
        aim = "" if verdict.aim is None else f"{verdict.aim:g}"
        word = "missed" if not verdict.holds else "ok" if verdict.reaches else "ok, short of the aim"
        print(f"{verdict.name:<60}{figure:>10}{bar:>10}{aim:>8}  {word}")
