"""People's connections, with real parts: Tollgate's own process, `oidc-provider`, a server of the official SDK, a browser.

Each scenario starts what it needs and plays it from the outside: an agent calls, a person opens links and presses
buttons, the operator uses the command line. `--scenario NAME` runs those whose name contains NAME, `--list` names them.
At the end, everything that was written or shown is searched for every secret that was seen.
"""

import argparse
import collections
import concurrent.futures
import contextlib
import pathlib
import sys
import tempfile
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import chromium  # noqa: E402
import connecting  # noqa: E402, F401
import keeping  # noqa: E402, F401
import sealing  # noqa: E402, F401
import steps  # noqa: E402
import webdriver  # noqa: E402
from harness.process import ROOT, NotReady, tail  # noqa: E402
from parts import install  # noqa: E402
from sentinel import FOR_PAGES, Secrets, places  # noqa: E402
from stage import Stage  # noqa: E402

# Most of a scenario is waiting for something to end.
AT_ONCE = 3
SCREENS = ROOT / "target" / "tmp" / "oauth-screens"
# Of each kind, the sentinel must have seen some, or it would find nothing because it looked for nothing.
EXPECTED = [
    *("access token", "refresh token", "code", "verifier", "client secret", "registration token", "state"),
    *("cookie", "login link", "key", "agent key", "entered"),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenario", default="", help="only those whose name contains this")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument("--keep", metavar="FOLDER", help="where everything stays that was written")
    options = parser.parse_args()
    if options.list:
        print(*(name for name, _ in rows()), sep="\n")
        return 0
    install()
    chosen = [row for row in rows() if options.scenario in row[0]]
    count = collections.Counter()
    with contextlib.ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="tollgate-oauth-"))
        pool = stack.enter_context(concurrent.futures.ThreadPoolExecutor(AT_ONCE))
        stages = []
        for stage, verdict, text in pool.map(lambda row: play(pathlib.Path(folder), *row), chosen):
            print(text, flush=True)
            count[verdict] += 1
            stages.append(stage)
        search(stages, count, is_whole=not options.scenario)
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"oauth: {count['passed']} passed, {count['failed']} failed{skipped}")
    return 1 if count["failed"] else 0


def rows():
    """The scenarios, and the pages in Chromium."""
    return [*steps.ALL, ("chromium", lambda stage: chromium.play(stage, SCREENS))]


def play(folder, name, scenario):
    """Plays a scenario; gives its stage, the verdict, and what is to be told of it."""
    stage = Stage(folder / name)
    if name == "chromium" and not webdriver.is_installed():
        return stage, "skipped", f"{name:<40}skipped: Debian's chromium and chromium-driver are not here"
    begun = time.monotonic()
    verdict, story = "passed", ""
    try:
        with stage:
            scenario(stage)
    except (Exception, NotReady) as fault:  # noqa: BLE001
        verdict = "failed"
        story = "\n" + "".join(traceback.format_exception(fault, limit=-4))
        logs = {gateway.home.name: gateway.log for gateway in stage.gateways if gateway.log.exists()}
        story += "".join(f"-- {name}:\n{tail(log)}\n" for name, log in logs.items())
    return stage, verdict, f"{name:<40}{verdict:<10}{time.monotonic() - begun:5.1f} s{story}"


def search(stages, count, is_whole):
    """Searches everything for secrets; each gateway and each person counts."""
    secrets = Secrets()
    for stage in stages:
        stage.tell(secrets)
    missing = [kind for kind in EXPECTED if is_whole and not secrets.count(kind)]
    found = []
    files = pages = 0
    for stage in stages:
        for gateway in stage.gateways:
            for path in places(gateway, stage.kept):
                files += 1
                found += secrets.search(f"{stage.folder.name}/{path.relative_to(stage.folder)}", path.read_bytes())
        for person in stage.people:
            for page in person.pages:
                pages += 1
                found += secrets.search(f"{stage.folder.name}: {page.url.split('?')[0]}", page.text.encode(), FOR_PAGES)
        for place, text in stage.said:
            found += secrets.search(f"{stage.folder.name}: {place}", text.encode())
    for find in sorted(set(found)):
        print(f"    {find.place}: {find.kind}, {find.form}")
    for kind in missing:
        print(f"    none seen: {kind}")
    # What the providers wrote down themselves must be found, or the search is worth nothing.
    journals = [provider.journal.path.read_bytes() for stage in stages for provider in stage.providers if provider.tokens()]
    blind = sum(not secrets.search("a journal", journal) for journal in journals)
    count["failed" if found or missing or blind else "passed"] += 1
    print(f"secrets: {len(secrets.kinds)} looked for in {files} files and {pages} pages: {len(set(found))} found")
    if blind:
        print(f"secrets: not seen in {blind} journals of providers, where they stand")


if __name__ == "__main__":
    sys.exit(main())
