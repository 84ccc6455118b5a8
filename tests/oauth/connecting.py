"""Scenarios: how a person gets connected, and who does not."""

import json

import direct
from agent import LEGACY, URL_REQUIRED, link
from harness.process import free_port
from parts import Server, certificate
from person import is_connected
from stage import SERVER, expired
from steps import SHORT, callback, failed, good, refreshes, scenario, wants_link


@scenario
def without_tollgate(stage):
    direct.prove(*stage.pair(ISSUER_PATH="/tenant"))


@scenario
def connect_and_call(stage):
    provider, server, gateway = stage.whole()
    ann, bob = stage.agent(gateway), stage.agent(gateway, "bob")
    wants_link(gateway, ann.call("look"), "connect.required")
    assert link(ann.call("tollgate__connections"), gateway.public_url) == f"{gateway.public_url}/connect/{SERVER}"
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
def client_metadata_document(stage):
    url = "https://gateway.example/oauth/client-metadata.json"
    server_port = free_port()
    provider = stage.provider(server_port)
    server = Server(stage.folder, server_port, provider)
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
def over_tls(stage):
    provider, server = stage.pair()
    gateway = stage.gateway(provider, server, tls=certificate(stage.folder))
    stage.kept += gateway.tls
    stage.start(gateway)
    person = stage.person(gateway)
    url = callback(person, gateway)
    names = [name for host, name, _ in person.cookies if host == "localhost"]
    # The sign-in, and the flow that is under way.
    assert len(names) >= 2 and all(name.startswith("__Host-") for name in names), names
    assert is_connected(person.get(url))
    good(stage.agent(gateway).call("who"), "the token of ann")
    # By another name, the pages are not served.
    page = person.exchange("GET", f"https://127.0.0.1:{gateway.web}/connect/{SERVER}")
    assert page.status == 308 and page.headers["Location"] == f"{gateway.public_url}/connect/{SERVER}", page


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
