"""The suite's scenarios of authorization, with Tollgate as the client; `driver.py` is what the suite starts.

A row passes where the suite says so, and one of its checks is more than a remark.
"""

import concurrent.futures
import json
import pathlib
import re
import subprocess
import sys
import tempfile

DRIVER = pathlib.Path(__file__).resolve().parent / "driver.py"
# Some of them end only when the suite's patience does, if at all.
SCENARIO_SECONDS = 30
AT_ONCE = 2


def required(suite, revision):
    """The scenarios that the suite's frozen list requires of a client, in its order."""
    text = (suite / "requirements" / f"{revision}.yaml").read_text()
    section = re.search(r"^client:\n((?:  - .*\n|\n)*)", text, re.MULTILINE)[1]
    return re.findall(r"^  - (auth/[^\s#]+)", section, re.MULTILINE)


def report(node, suite, revision, options):
    """Runs a revision's scenarios and prints their table; gives how many rows passed and failed."""
    rows = [row for row in required(suite, revision) if options.scenario in (None, row)]
    if not rows:
        return 0, 0
    print(f"{revision + ', required of a client':<52}{'checks':>10}")
    passed = 0
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for row, (is_good, checks, log) in zip(rows, pool.map(lambda row: run(node, suite, revision, row), rows)):
            bad = [check for check in checks if check["status"] in ("FAILURE", "WARNING")]
            sound = is_good and any(check["status"] == "SUCCESS" for check in checks)
            count = f"{len(checks) - len(bad)}/{len(bad)}" if checks else "none"
            print(f"  {row:<50}{count:>10}{'' if sound else '  FAILED'}", flush=True)
            passed += sound
            for check in bad:
                print(f"    {check['id']}: {check['status']}: {check['description']}")
            if options.verbose or not sound:
                print(*(f"    | {line}" for line in log.splitlines()[-40:]), sep="\n")
    return passed, len(rows) - passed


def run(node, suite, revision, scenario):
    """Runs a scenario; gives the suite's verdict, its checks, and what was written."""
    with tempfile.TemporaryDirectory(prefix="tollgate-conformance-") as folder:
        command = [node, suite / "dist" / "index.js", "client", "--command", f"{sys.executable} {DRIVER}"]
        command += ["--scenario", scenario, "--spec-version", revision]
        command += ["--timeout", str(SCENARIO_SECONDS * 1000), "-o", folder]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=2 * SCENARIO_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False, [], "the suite did not end"
        read = lambda name: [file.read_text() for file in sorted(pathlib.Path(folder).glob(f"**/{name}"))]  # noqa: E731
        checks = [check for text in read("checks.json") for check in json.loads(text)]
        log = "".join(read("stdout.txt") + read("stderr.txt")) or done.stderr
    return done.returncode == 0, checks, log
