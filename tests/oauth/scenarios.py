"""The scenarios: what an agent, a person and the operator do, and what must come of it."""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import urllib.parse
import urllib.request

import direct
from agent import LEGACY, URL_REQUIRED, link
from harness.process import answers_200, free_port
from parts import Server, server_file
from person import is_connected
from stage import SERVER, expired, until

ALL = []
# Long enough for a call, short enough to wait for its end.
SHORT = 4


def scenario(function):
    """Has a function played, under its own name."""
    ALL.append((function.__name__.replace("_", "-"), function))
    return function


@scenario
def without_tollgate(stage):
    direct.prove(*stage.pair(ISSUER_PATH="/tenant"))


@scenario
def connect_and_call(stage):
    provider, server, gateway = stage.whole()
    ann, bob = stage.agent(gateway), stage.agent(gateway, "bob")
    wants_link(gateway, ann.call("look"), "connect.required")
    person = stage.person(gateway)
    said = person.confirm(SERVER).words()
    for shown in ("You sign in at 127.0.0.1", "mcp:read", "You come back to 127.0.0.1"):
        assert shown in said, f"`{shown}` is not on the confirm page: {said}"
    person.connected(SERVER)
    good(ann.call("look"), "added 0 times")
    good(ann.call("add"), "added 1 times")
    good(ann.call("who"), "the token of ann")
    assert {"look", "who", "add", "manage"} <= set(ann.tools())
    # Nobody else is connected.
    wants_link(gateway, bob.call("who"), "connect.required")
    # The provider was asked as the protocol has it.
    asked = provider.journal.answered(route="authorization")[0]["params"]
    assert asked["resource"] == server.url and asked["code_challenge_method"] == "S256", asked
    assert asked["redirect_uri"] == f"{gateway.public_url}/oauth/callback", asked
    [token] = provider.tokens(grant_type="authorization_code")
    assert token["params"]["resource"] == server.url, token["params"]
    assert len(provider.journal.answered(route="registration")) == 1
    assert "Connected" in person.home().words()


@scenario
def sessions_of_2025(stage):
    provider, _, gateway = stage.whole()
    person = stage.person(gateway)
    agent = stage.agent(gateway, revision=LEGACY)
    wants_link(gateway, agent.call("look"), "connect.required")
    person.connected(SERVER)
    good(agent.call("look"), "added 0 times")
    assert len(provider.tokens()) == 1


@scenario
def agents_that_open_urls(stage):
    _, _, gateway = stage.whole()
    modern, legacy = stage.agent(gateway, opens=True), stage.agent(gateway, revision=LEGACY, opens=True)
    answer = modern.call("look")
    assert answer.result.get("resultType") == "input_required", answer
    requests = list(answer.result["inputRequests"].values())
    assert [request["params"]["mode"] for request in requests] == ["url"], requests
    page = requests[0]["params"]["url"]
    answer = legacy.call("look")
    assert answer.error.get("code") == URL_REQUIRED, answer
    [elicitation] = answer.error["data"]["elicitations"]
    assert elicitation["url"] == page == f"{gateway.public_url}/connect/{SERVER}", (elicitation, page)
    stage.person(gateway).connected(SERVER)
    good(modern.call("look"))
    good(legacy.call("look"))


@scenario
def issuers_with_a_path(stage):
    for number, metadata in enumerate(("appended", "inserted")):
        provider, server = stage.pair(ISSUER_PATH=f"/tenant{number}", METADATA=metadata)
        gateway = stage.gateway(provider, server, f"gateway-{number}")
        stage.start(gateway)
        stage.person(gateway).connected(SERVER)
        good(stage.agent(gateway).call("who"), "the token of ann")


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
def two_gateways_one_database(stage):
    provider, server = stage.pair(LIFETIME=SHORT)
    first = stage.gateway(provider, server, "first")
    stage.start(first)
    second = stage.gateway(provider, server, "second", beside=first)
    stage.start(second)
    stage.person(first).connected(SERVER)
    agents = [stage.agent(gateway) for gateway in (first, second) for _ in range(4)]
    together([lambda agent=agent: good(agent.call("look")) for agent in agents])
    for turn in range(1, 4):
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
def a_provider_that_forgot_its_clients(stage):
    port = free_port()
    provider = stage.provider(port, LIFETIME=SHORT)
    with provider.running():
        server = stage.enter_context(Server(stage.folder, port, provider.issuer).running())
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
def more_permissions(stage):
    provider, _, gateway = stage.whole()
    person, agent = stage.person(gateway), stage.agent(gateway)
    person.connected(SERVER)
    good(agent.call("look"))
    wants_link(gateway, agent.call("manage"), "connect.more_permissions")
    # What works goes on working.
    good(agent.call("look"))
    assert "mcp:manage" in person.confirm(SERVER).words()
    person.connected(SERVER)
    asked = provider.journal.answered(route="authorization")[-1]["params"]["scope"].split()
    assert {"mcp:read", "mcp:manage"} <= set(asked), asked
    good(agent.call("manage"), "managed")
    good(agent.call("look"))


@scenario
def client_metadata_document(stage):
    url = "https://gateway.example/oauth/client-metadata.json"
    server_port, provider_port = free_port(), free_port()
    provider = stage.provider(server_port)
    provider.port, provider.issuer = provider_port, f"http://127.0.0.1:{provider_port}"
    server = Server(stage.folder, server_port, provider.issuer)
    gateway = stage.gateway(provider, server, settings=f'[connect]\nclient_metadata_url = "{url}"')
    stage.start(gateway)
    person = stage.person(gateway)
    document = json.loads(person.get(f"{gateway.public_url}/oauth/client-metadata.json").text)
    assert document["client_id"] == url, document
    assert document["redirect_uris"] == [f"{gateway.public_url}/oauth/callback"], document
    provider.settings["CIMD"] = json.dumps({url: document})
    stage.enter_context(provider.running())
    stage.enter_context(server.running())
    person.connected(SERVER)
    good(stage.agent(gateway).call("who"), "the token of ann")
    assert provider.journal.answered(route="authorization")[0]["params"]["client_id"] == url
    assert not provider.journal.answered(route="registration")


@scenario
def registered_beforehand(stage):
    # What a form must encode, and Basic too (RFC 6749, section 2.3.1).
    secret = "a secret: with/+% and more"
    gateway_web = free_port()
    client = {
        "client_id": "the client",
        "client_secret": secret,
        "redirect_uris": [f"http://127.0.0.1:{gateway_web}/oauth/callback"],
        "grant_types": ["authorization_code", "refresh_token"],
        "token_endpoint_auth_method": "client_secret_basic",
    }
    provider, server = stage.pair(LIFETIME=SHORT, REGISTRATION="0", CLIENTS=json.dumps([client]))
    path = stage.folder / "secret"
    path.touch(mode=0o600)
    path.write_text(secret)
    auth = ['client_id = "the client"', f'client_secret = "file:{path}"', f'issuer = "{provider.issuer}"']
    gateway = stage.gateway(provider, server, auth=auth)
    gateway.web, gateway.public_url = gateway_web, f"http://127.0.0.1:{gateway_web}"
    gateway.settings()
    stage.start(gateway)
    stage.person(gateway).connected(SERVER)
    agent = stage.agent(gateway)
    good(agent.call("look"))
    expired(provider)
    good(agent.call("look"))
    assert refreshes(provider) == 1


@scenario
def static_secrets(stage):
    token, key = "tok-of-ann-4711-abcdef", "key-of-ann-0815-abcdef"
    servers, grants = {}, []
    for name, header, value, auth in (
        ("bearer", "authorization", f"Bearer {token}", ['mode = "bearer"']),
        ("header", "x-api-key", key, ['mode = "header"', 'header = "X-Api-Key"']),
    ):
        server = Server(stage.folder, free_port(), "")
        stage.enter_context(server.running(DEMANDS=json.dumps([header, value])))
        servers[name] = server_file(server.url, auth)
        grants.append(("127.0.0.1", server.port, [f"server:{name}"]))
    stage.entered += [token, key, "wrong-secret-of-ann"]
    gateway = stage.gateway_of(servers, grants)
    stage.start(gateway)
    person = stage.person(gateway)
    for name, value in (("bearer", token), ("header", key)):
        agent = stage.agent(gateway, server=name)
        wants_link(gateway, agent.call("look"), "connect.required", name)
        person.enter(name, "wrong-secret-of-ann")
        wants_link(gateway, agent.call("look"), "connect.reconnect", name)
        person.enter(name, value)
        good(agent.call("look"), "added 0 times")
        wants_link(gateway, stage.agent(gateway, "bob", server=name).call("look"), "connect.required", name)


@scenario
def one_secret_for_all(stage):
    secret = "shared-secret-of-the-operator"
    server = Server(stage.folder, free_port(), "")
    stage.enter_context(server.running(DEMANDS=json.dumps(["authorization", f"Bearer {secret}"])))
    path = stage.folder / "secret"
    path.touch(mode=0o600)
    path.write_text(secret)
    stage.entered.append(secret)
    auth = ['mode = "shared"', f'secret = "file:{path}"']
    gateway = stage.gateway_of(
        {"shared": server_file(server.url, auth)}, [("127.0.0.1", server.port, ["server:shared"])]
    )
    stage.start(gateway)
    for user in ("ann", "bob"):
        good(stage.agent(gateway, user, server="shared").call("look"), "added 0 times")


@scenario
def the_wrong_key(stage):
    provider, server = stage.pair()
    gateway, other = stage.gateway(provider, server), stage.gateway(provider, server, "other")
    with gateway.running():
        stage.person(gateway).connected(SERVER)
    with other.running():
        pass
    right = gateway.keyring.read_bytes()
    before = hashlib.sha256(dump(gateway)).hexdigest()
    shutil.copyfile(other.keyring, gateway.keyring)
    with gateway.running(waits=False) as process:
        assert process.wait(timeout=20) != 0
    said = gateway.log.read_text()
    assert "vault.key" in said, said
    assert hashlib.sha256(dump(gateway)).hexdigest() == before, "the database was touched"
    gateway.keyring.write_bytes(right)
    stage.start(gateway)
    good(stage.agent(gateway).call("look"))


@scenario
def keys_rotate_while_calls_run(stage):
    provider, _, gateway = stage.whole(LIFETIME=SHORT)
    stage.person(gateway).connected(SERVER)
    agents = [stage.agent(gateway) for _ in range(4)]
    before = gateway.run("keys", "status").stdout
    done = False

    def calling(agent):
        calls = 0
        while not done:
            good(agent.call("look"))
            calls += 1
        return calls

    with concurrent.futures.ThreadPoolExecutor(len(agents)) as pool:
        running = [pool.submit(calling, agent) for agent in agents]
        try:
            gateway.run("keys", "rotate")
            expired(provider)
        finally:
            done = True
        assert all(each.result() for each in running)
    assert gateway.run("keys", "status").stdout != before
    good(agents[0].call("look"))


@scenario
def tampered_rows(stage):
    _, _, gateway = stage.whole()
    people = [stage.person(gateway, user) for user in ("ann", "bob")]
    agents = [stage.agent(gateway, user) for user in ("ann", "bob")]
    for person, agent in zip(people, agents):
        person.connected(SERVER)
        good(agent.call("look"))
    with database(gateway) as rows:
        swap(rows, *(grant_of(rows, user) for user in ("ann", "bob")))
    for person, agent in zip(people, agents):
        answer = until_answer(agent, "vault.record")
        assert not answer.is_good()
    assert any('"vault.record"' in line or "tampered" in line for line in gateway.records()), "nothing was recorded"
    for person, agent in zip(people, agents):
        person.connected(SERVER)
        good(agent.call("look"))


@scenario
def an_older_backup(stage):
    provider, server = stage.pair(LIFETIME=SHORT)
    gateway = stage.gateway(provider, server)
    backup = stage.folder / "backup.db"
    with gateway.running():
        stage.person(gateway).connected(SERVER)
        agent = stage.agent(gateway)
        with database(gateway) as rows, contextlib.closing(sqlite3.connect(backup)) as copy:
            rows.backup(copy)
        for _ in range(2):
            expired(provider)
            good(agent.call("look"))
    for path in gateway.state.glob("tollgate.db*"):
        path.unlink()
    shutil.copyfile(backup, gateway.database)
    os.chmod(gateway.database, 0o600)
    with gateway.running(waits=False) as process:
        refused = alarmed(gateway, process, agent)
    assert refused, "nobody noticed"
    gateway.run("vault", "accept-restore")
    stage.start(gateway)
    # The tokens of the backup are used up; the person connects again.
    wants_link(gateway, agent.call("look"), "connect.reconnect")
    stage.person(gateway).connected(SERVER)
    good(agent.call("look"))


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
def a_person_who_does_not_agree(stage):
    provider, server = stage.pair()
    gateway = stage.gateway(provider, server, auth=['scopes = ["mcp:read", "refuse"]'])
    stage.start(gateway)
    page = stage.person(gateway).connect(SERVER)
    failed(page, "connect.denied")
    assert "<b>the person</b>" not in page.text and "&lt;b&gt;the person" in page.text, page.text
    wants_link(gateway, stage.agent(gateway).call("look"), "connect.required")


@scenario
def callbacks_of_others(stage):
    provider, _, gateway = stage.whole()
    ann, bob = stage.person(gateway), stage.person(gateway, "bob")
    # Ann's own callback, opened by Bob: he has neither her cookie nor her account.
    url = callback(ann, gateway)
    failed(bob.get(url), "connect.browser")
    assert not provider.tokens(), "a code was exchanged for somebody else"
    page = ann.get(url)
    assert is_connected(page), page
    # Nor is it of use twice, nor made up.
    for again in (url, url.replace("state=", "state=x"), f"{gateway.public_url}/oauth/callback?code=x&state=y"):
        failed(ann.get(again), "connect.state")
    wants_link(gateway, stage.agent(gateway, "bob").call("look"), "connect.required")
    good(stage.agent(gateway).call("who"), "the token of ann")


@scenario
def another_issuer_in_the_answer(stage):
    provider, _, gateway = stage.whole()
    person = stage.person(gateway)
    url = callback(person, gateway)
    wrong = url.replace("iss=http%3A%2F%2F127.0.0.1", "iss=http%3A%2F%2F127.0.0.2")
    assert wrong != url
    failed(person.get(wrong), "connect.issuer_mismatch")
    assert not provider.tokens(), "a code was exchanged"
    # The flow is not used up by it.
    page = person.get(url)
    assert is_connected(page), page


@scenario
def memory_is_not_dumped(stage):
    _, server = stage.pair()
    gateway = stage.gateway(stage.providers[0], server)
    process = stage.start(gateway)
    limits = pathlib.Path(f"/proc/{process.pid}/limits").read_text()
    [core] = [line.split() for line in limits.splitlines() if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"], core


def good(answer, text=None):
    """A call that worked."""
    assert answer.is_good(), str(answer)
    assert text is None or answer.text() == text, f"found `{answer.text()}`, expected `{text}`"


def wants_link(gateway, answer, code, server=SERVER):
    """A call that answers with the page on which a person goes on."""
    assert not answer.is_good(), str(answer)
    assert answer.text().startswith(code), f"expected `{code}`: {answer}"
    assert link(answer, gateway.public_url) == f"{gateway.public_url}/connect/{server}", str(answer)


def together(calls):
    """Does them all at once; the first that fails is raised."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        for done in [pool.submit(call) for call in calls]:
            done.result()


def quietly(function, *arguments):
    """Calls a function that may be cut off."""
    with contextlib.suppress(OSError):
        function(*arguments)


def refreshes(provider):
    """How many refreshes the provider answered, well or not."""
    return len(provider.journal.answered(route="token", grant_type="refresh_token"))


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


def failed(page, code):
    """A page that tells what did not work."""
    assert code in page.words() and not is_connected(page), page


def callback(person, gateway):
    """Walks to the provider and agrees; gives the address to come back to, which was not opened."""
    page = person.confirm(SERVER)
    url = person.stops(page, page.form("/connect/"), f"{gateway.public_url}/oauth/callback")
    assert "code=" in url, url.split("?")[0]
    return url


@contextlib.contextmanager
def database(gateway):
    """The gateway's database, opened beside it."""
    with contextlib.closing(sqlite3.connect(gateway.database, timeout=10)) as rows:
        yield rows
        rows.commit()


def dump(gateway):
    with database(gateway) as rows:
        return "\n".join(rows.iterdump()).encode()


def grant_of(rows, user):
    """The sealed connection of a user: table, row id and bytes."""
    for (table,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = [column[1] for column in rows.execute(f"PRAGMA table_info({table})")]
        if {"sealed", "user", "grant_id"} <= set(columns):
            found = rows.execute(f"SELECT rowid, sealed FROM {table} WHERE user = ?", (user,)).fetchall()
            assert len(found) == 1, f"{len(found)} connections of {user}"
            return table, *found[0]
    raise AssertionError("no table of connections")


def swap(rows, one, other):
    """Puts the sealed bytes of two rows into each other's place."""
    for (table, row, _), (_, _, sealed) in ((one, other), (other, one)):
        rows.execute(f"UPDATE {table} SET sealed = ?, version = version + 1 WHERE rowid = ?", (sealed, row))


def until_answer(agent, code):
    """Calls until the answer has this code: what was opened before may be in memory for a moment."""
    answers = []

    def asked():
        answers.append(agent.call("look"))
        return code in str(answers[-1])

    until(asked, f"an answer `{code}`")
    return answers[-1]


def alarmed(gateway, process, agent):
    """Whether a gateway refused to work with what was restored."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=3)
    if process.poll() is None:
        return "vault.older" in str(agent.call("look"))
    return "vault.older" in gateway.log.read_text()


def accepts_work(gateway):
    return answers_200(f"http://127.0.0.1:{gateway.ops}/readyz")

