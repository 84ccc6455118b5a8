"""Scenarios: how a connection lasts, and how it ends."""

import concurrent.futures
import contextlib
import http.client
import json
import signal
import urllib.parse
import urllib.request

from harness.process import answers_200, free_port
from harness.tollgate import write
from parts import Server
from person import is_connected
from stage import SERVER, expired, until
from steps import SHORT, good, refreshes, scenario, together, wants_link


@scenario
def refresh_after_the_end(stage):
    provider, server, gateway = stage.whole(LIFETIME=SHORT)
    stage.person(gateway).connected(SERVER)
    agents = [stage.agent(gateway) for _ in range(8)]
    for turn in range(1, 4):
        expired(provider)
        together([lambda agent=agent: good(agent.call("look")) for agent in agents])
        assert refreshes(provider) == turn, f"{refreshes(provider)} refreshes after {turn} ends"
    # The provider turns every token once; a second use would have ended all of them.
    used = [entry["params"]["refresh_token"] for entry in provider.tokens(grant_type="refresh_token")]
    assert len(set(used)) == 3
    for entry in provider.tokens(grant_type="refresh_token"):
        assert entry["params"].get("resource") == server.url and "scope" not in entry["params"], entry["params"]


@scenario
def eight_processes_one_database(stage):
    provider, server = stage.pair(LIFETIME=SHORT)
    first = stage.gateway(provider, server, "process-0")
    stage.start(first)
    others = [stage.gateway(provider, server, f"process-{number}", beside=first) for number in range(1, 8)]
    for gateway in others:
        stage.start(gateway)
    stage.person(first).connected(SERVER)
    agents = [stage.agent(gateway) for gateway in (first, *others) for _ in range(8)]
    for turn in range(1, 3):
        expired(provider)
        together([lambda agent=agent: good(agent.call("look")) for agent in agents])
        assert refreshes(provider) == turn, f"{refreshes(provider)} refreshes after {turn} ends"


@scenario
def revoked_at_the_provider(stage):
    provider, _, gateway = stage.whole(LIFETIME=SHORT)
    person, agent = stage.person(gateway), stage.agent(gateway)
    person.connected(SERVER)
    good(agent.call("look"))
    revoke(provider)
    expired(provider)
    wants_link(gateway, agent.call("look"), "connect.reconnect")
    # It is not asked again and again with a token that it does not know.
    wants_link(gateway, agent.call("look"), "connect.reconnect")
    assert len(provider.journal.answered(route="token", grant_type="refresh_token")) == 1
    person.connected(SERVER)
    good(agent.call("look"))
    assert len(provider.journal.answered(route="registration")) == 1


@scenario
def disconnect_revokes(stage):
    provider, _, gateway = stage.whole()
    person, agent = stage.person(gateway), stage.agent(gateway)
    person.connected(SERVER)
    good(agent.call("look"))
    page = person.disconnect(SERVER)
    assert "The provider has withdrawn what it issued" in page.words(), page
    refresh = provider.tokens()[-1]["answer"]["refresh_token"]
    asked = provider.journal.answered(route="revocation", status=200)
    assert refresh in [entry["params"]["token"] for entry in asked], "the refresh token was not revoked"
    wants_link(gateway, agent.call("look"), "connect.required")
    # The registration is kept.
    person.connected(SERVER)
    good(agent.call("look"))
    assert len(provider.journal.answered(route="registration")) == 1


@scenario
def a_server_is_removed(stage):
    provider, _, gateway = stage.whole()
    agents = {user: stage.agent(gateway, user) for user in ("ann", "bob")}
    for user, agent in agents.items():
        stage.person(gateway, user).connected(SERVER)
        good(agent.call("look"))
    # Without its file, and the grants that name it, it is only not there.
    files = [gateway.policy / "servers" / f"{SERVER}.toml", gateway.policy / "egress.toml"]
    texts = [file.read_text() for file in files]
    for file in files:
        file.unlink()
    gateway.run("reload")
    assert not agents["ann"].call("look").is_good()
    for file, text in zip(files, texts):
        write(file, text)
    gateway.run("reload")
    good(agents["ann"].call("look"))
    listed = json.loads(gateway.run("connections", "--json").stdout)
    assert {(each["user"], each["server"], each["state"]) for each in listed} == {
        ("ann", SERVER, "connected"),
        ("bob", SERVER, "connected"),
    }, listed
    assert "2 connections to `notes` ended, 2 revoked" in gateway.run("server", "remove", SERVER).stdout
    given = {entry["answer"]["refresh_token"] for entry in provider.tokens()}
    revoked = {entry["params"]["token"] for entry in provider.journal.answered(route="revocation", status=200)}
    assert given <= revoked, "a refresh token was not revoked"
    for agent in agents.values():
        wants_link(gateway, agent.call("look"), "connect.required")


@scenario
def a_provider_that_forgot_its_clients(stage):
    port = free_port()
    provider = stage.provider(port, LIFETIME=SHORT)
    with provider.running():
        server = stage.enter_context(Server(stage.folder, port, provider).running())
        gateway = stage.gateway(provider, server)
        stage.start(gateway)
        people = [stage.person(gateway, user) for user in ("ann", "bob")]
        agents = [stage.agent(gateway, user) for user in ("ann", "bob")]
        for person, agent in zip(people, agents):
            person.connected(SERVER)
            good(agent.call("look"))
        expired(provider)
    with provider.running():
        for person, agent in zip(people, agents):
            wants_link(gateway, agent.call("look"), "connect.reconnect")
            # The provider's own page may say that it does not know the client; nothing comes back from there.
            page = person.connect(SERVER)
            if not page.url.startswith(gateway.public_url):
                page = person.connect(SERVER)
            assert is_connected(page), page
            good(agent.call("look"))
        assert len(provider.journal.answered(route="registration")) == 2, "one more for both people"


@scenario
def the_end_during_a_refresh(stage):
    provider, server = stage.pair(LIFETIME=SHORT)
    gateway = stage.gateway(provider, server)
    with gateway.running() as process, concurrent.futures.ThreadPoolExecutor(1) as pool:
        stage.person(gateway).connected(SERVER)
        agent = stage.agent(gateway)
        expired(provider)
        provider.hold.touch()
        call = pool.submit(quietly, agent.call, "look")
        until(lambda: refreshes(provider) == 1, "a refresh that is held back")
        process.send_signal(signal.SIGTERM)
        until(lambda: not accepts_work(gateway), "the end of readiness")
        assert process.poll() is None, "it did not wait for the refresh"
        provider.hold.unlink()
        assert process.wait(timeout=20) == 0
        call.result()
    # The token that arrived late was kept: the old one is worth nothing any more.
    stage.start(gateway)
    expired(provider)
    good(stage.agent(gateway).call("look"))
    assert refreshes(provider) == 2


@scenario
def killed_during_a_refresh(stage):
    provider, server = stage.pair(LIFETIME=SHORT)
    gateway = stage.gateway(provider, server)
    with gateway.running() as process, concurrent.futures.ThreadPoolExecutor(1) as pool:
        person, agent = stage.person(gateway), stage.agent(gateway)
        person.connected(SERVER)
        expired(provider)
        provider.hold.touch()
        call = pool.submit(quietly, agent.call, "look")
        until(lambda: refreshes(provider) == 1, "a refresh that is held back")
        process.kill()
        process.wait()
        provider.hold.unlink()
        call.result()
    stage.start(gateway)
    # Whether the token was used up nobody knows; it is tried once more when the lease is over, and then the person asked.
    until(lambda: agent.call("look").text().startswith("connect.reconnect"), "the end of the lease", seconds=60)
    assert refreshes(provider) == 2
    assert "a renewal broke off" in person.home().words(), person.home()
    person.connected(SERVER)
    good(agent.call("look"))


def revoke(provider):
    """Revokes the newest refresh token, as its client could (RFC 7009)."""
    newest = provider.tokens()[-1]
    client = newest["params"]["client_id"]
    body = {"token": newest["answer"]["refresh_token"], "client_id": client}
    secrets = [entry["answer"].get("client_secret") for entry in provider.journal.answered(route="registration", status=201)]
    if secrets and secrets[-1]:
        body["client_secret"] = secrets[-1]
    request = urllib.request.Request(f"{provider.issuer}/token/revocation", urllib.parse.urlencode(body).encode())
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as answer:
        assert answer.status == 200


def accepts_work(gateway):
    return answers_200(f"http://127.0.0.1:{gateway.ops}/readyz")


def quietly(function, *arguments):
    """Calls a function that may be cut off."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        function(*arguments)
