"""What the conformance suite starts as its client, with the address of its server: Tollgate, and who uses it.

Tollgate gets a policy folder for that server, an agent calls through it, and where the answer is a link, a person opens
it, presses Connect and comes back. The agent calls until it has had two good answers, or a person could not go on.
Exit: 0 after two good answers, 1 otherwise.
"""

import json
import os
import pathlib
import signal
import sys
import tempfile
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "oauth"))

from agent import Agent, link  # noqa: E402
from browser import Unexpected  # noqa: E402
from harness.tollgate import write  # noqa: E402
from parts import Gateway, server_file  # noqa: E402
from person import is_connected, signed_in  # noqa: E402

SERVER, USER, TOOL = "suite", "ann", "test-tool"
# The document that the suite knows; nobody serves it.
CLIENT_METADATA = "https://conformance-test.local/client-metadata.json"
# Less than the suite's patience, which would end this process alone and leave Tollgate behind.
SECONDS = 25
# As often as a person would open a link; the suite allows fewer where Tollgate should have stopped.
VISITS = 5


def main():
    signal.signal(signal.SIGALRM, give_up)
    signal.signal(signal.SIGTERM, give_up)
    signal.alarm(SECONDS)
    url = sys.argv[1]
    revision = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory(prefix="tollgate-suite-") as folder:
        gateway = Gateway(
            folder,
            "gateway",
            {SERVER: server_file(url, auth(context, pathlib.Path(folder)), read_only=["*"])},
            grants(url),
            users=[USER],
            settings=f'[connect]\nclient_metadata_url = "{CLIENT_METADATA}"',
        )
        try:
            with gateway.running():
                return play(gateway, revision)
        finally:
            print(gateway.log.read_text(errors="replace")[-4000:], *gateway.records(), sep="\n", file=sys.stderr)


def give_up(number, _):
    raise SystemExit(f"ended by {signal.Signals(number).name}")


def auth(context, folder):
    """The lines of `[auth]`."""
    lines = ['mode = "oauth"', "allow_http_loopback = true"]
    if "client_id" in context:
        write(folder / "secret", context["client_secret"])
        lines += [f'client_id = "{context["client_id"]}"', f'client_secret = "file:{folder}/secret"']
        lines += [f'issuer = "{context["issuer"]}"']
    return lines


def grants(url):
    """The server's own port, and any for its authorization server, whose port only its metadata tells."""
    parts = urllib.parse.urlsplit(url)
    return [(parts.hostname, parts.port, [f"server:{SERVER}"]), (parts.hostname, "any", [f"oauth:{SERVER}"])]


def play(gateway, revision):
    """Calls, and connects where that is wanted; gives the exit code."""
    agent = Agent(gateway.url(SERVER), gateway.keys[USER], revision)
    agent.open()
    person = signed_in(gateway, USER)
    good = visits = 0
    while good < 2:
        answer = agent.call(TOOL)
        print(f"call: {answer}")
        if answer.is_good():
            good += 1
            continue
        page = link(answer, gateway.public_url) or link(agent.call("tollgate__connections"), gateway.public_url)
        if page is None or visits == VISITS or not visit(person, page):
            return 1
        visits += 1
    return 0


def visit(person, url):
    """Opens a link and connects; gives whether the pages looked well to the end."""
    try:
        page = person.get(url)
        print(f"page: {page}")
        page = person.agree(page)
    except Unexpected as fault:
        print(fault)
        return False
    print(f"page: {page}")
    return is_connected(page)


if __name__ == "__main__":
    sys.exit(main())
