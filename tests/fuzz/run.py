#!/usr/bin/env python3
"""Runs the fuzz targets two at a time, and says what they did.

A target without a finding has passed. They are built before: see build.sh.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shlex
import subprocess
import sys
import typing

import seeds

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]

TARGETS = sorted(path.stem for path in (HERE / "fuzz_targets").glob("*.rs"))

# What reads bytes of strangers, or decides, gets a minute in every run of the tests; the others a third of one.
FIRST = {"envelope", "head", "hello", "policy", "sse", "target"}

# As build.sh builds them, so that nothing is built again.
OPTIONS = "--sanitizer none --fuzz-dir tests/fuzz --target-dir tests/.tools/fuzz-target --dev --strip-dead-code=true".split()

COLUMNS = ("target", "runs", "runs/s", "edges", "features", "inputs", "result")


class Outcome(typing.NamedTuple):
    """What became of a target: its row of the table, and what to show where it found something."""

    row: tuple
    failure: str | None


def main():
    given = arguments()
    seeds.make()
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        outcomes = list(pool.map(lambda target: fuzz(target, given.seconds or usual(target)), given.target or TARGETS))
    for outcome in outcomes:
        if outcome.failure:
            print(outcome.failure)
    show([COLUMNS, *(outcome.row for outcome in outcomes)])
    failed = sum(outcome.failure is not None for outcome in outcomes)
    print(f"fuzz: {len(outcomes) - failed} passed, {failed} failed")
    return 1 if failed else 0


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", action="append", choices=TARGETS, help="run this one; may be repeated")
    parser.add_argument("--seconds", type=int, help="how long each runs (60 or 20; 600 in a long run)")
    parser.add_argument("--jobs", type=int, default=2, help="how many run at once (%(default)s)")
    return parser.parse_args()


def usual(target):
    """How long a target runs where nobody says."""
    if os.environ.get("TESTS_LONG"):
        return 600
    return 60 if target in FIRST else 20


def fuzz(target, seconds):
    """Runs a target on what it has found before and on its seeds."""
    corpus = HERE / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    folders = [str(path.relative_to(ROOT)) for path in (corpus, HERE / "seeds" / target) if path.is_dir()]
    limits = [f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=1024", "-print_final_stats=1"]
    words = HERE / "words" / f"{target}.dict"
    if words.exists():
        limits.append(f"-dict={words.relative_to(ROOT)}")
    command = ["cargo", "fuzz", "run", *OPTIONS, target, *folders, "--", *limits]
    ended = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace"
    )
    return judge(target, ended.returncode, ended.stdout)


def judge(target, status, log):
    """Reads the counts that libFuzzer prints."""
    runs, rate = (last(rf"stat::{name}:\s+(\d+)", log) for name in ("number_of_executed_units", "average_exec_per_sec"))
    edges, features, inputs = (last(rf"{name}: (\d+)", log) for name in ("cov", "ft", "corp"))
    is_well = status == 0 and runs != "-"
    row = (target, runs, rate, edges, features, inputs, "ok" if is_well else "FAILED")
    return Outcome(row, None if is_well else failure(target, status, log))


def last(pattern, log):
    found = re.findall(pattern, log)
    return found[-1] if found else "-"


def failure(target, status, log):
    """What was found, the input, and how to run it again."""
    found = re.search(r"Test unit written to (\S+)", log)
    if not found:
        return f"-- {target} ended with status {status}\n{head_of(log.splitlines()[-20:])}"
    # From the panic, or what libFuzzer says of time or memory, up to there.
    lines = log[: found.start()].splitlines()
    signs = ("panicked at", "ERROR: ")
    begin = next((at for at, line in enumerate(lines) if any(sign in line for sign in signs)), 0)
    again = shlex.join(["cargo", "fuzz", "run", *OPTIONS, target, found[1]])
    return f"-- {target} found something\n{head_of(lines[begin:])}\ninput: {found[1]}\nagain: {again}"


def head_of(lines):
    """The beginning of some lines, none of which is long."""
    return "\n".join(line[:400] for line in lines[:20])


def show(rows):
    """Prints a table whose numbers stand to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for name, *numbers, result in rows:
        cells = [number.rjust(width) for number, width in zip(numbers, widths[1:])]
        print("  ".join([name.ljust(widths[0]), *cells, result]))


if __name__ == "__main__":
    sys.exit(main())
