"""Loads that take turns, and what they measured: what the tables of rows have in common."""

import statistics

from rig import LoadFailed

__all__ = ["Turns", "shown"]


class Turns:
    """Results by row, target and turn; a turn is given as its round and its number within."""

    def __init__(self, rig, seconds):
        self.rig = rig
        self.seconds = seconds
        self.results = {}
        self.passed = self.failed = 0

    def load(self, row, name, when, kind, target, *words):
        """Runs a load and keeps what it measured, or says why it failed."""
        if target.processes:
            words = [*words, "--watch", ",".join(map(str, target.processes))]
        try:
            result = self.rig.load(kind, target, *words)
        except LoadFailed as fault:
            print(f"{row.name}, {name}: {fault}", flush=True)
            self.failed += 1
            return
        self.passed += 1
        self.results.setdefault((row, name), {})[when] = result

    def of_round(self, row, name, key, number):
        """The median over the turns of a round; None where there is none."""
        seen = [got[key] for (at, _), got in self.of(row, name).items() if at == number]
        return statistics.median(seen) if seen else None

    def median(self, row, name, key):
        """The median over all turns; None where there is none."""
        return self.combine([(row, name, key)], lambda value: value)

    def combine(self, wanted, function):
        """The median over all turns of what `function` makes of the figures of each, given as row, target and key."""
        turns = [self.of(row, name) for row, name, _ in wanted]
        common = set.intersection(*map(set, turns))
        values = ([got[when].get(key) for got, (*_, key) in zip(turns, wanted)] for when in sorted(common))
        made = [function(*row) for row in values if None not in row]
        return statistics.median(made) if made else None

    def of(self, row, name):
        """The results of a row and target, by turn."""
        return self.results.get((row, name), {})


def shown(value, digits):
    return "-" if value is None else f"{value:.{digits}f}"
