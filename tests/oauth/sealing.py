"""Scenarios: what is sealed, under which keys, and what happens to those who touch it."""

import concurrent.futures
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import sqlite3

from harness.process import free_port
from parts import Server, server_file
from stage import SERVER, expired, until
from steps import SHORT, good, scenario, wants_link


@scenario
def static_secrets(stage):
    token, key = "tok-of-ann-4711-abcdef", "key-of-ann-0815-abcdef"
    servers, grants = {}, []
    for name, header, value, auth in (
        ("bearer", "authorization", f"Bearer {token}", ['mode = "bearer"']),
        ("header", "x-api-key", key, ['mode = "header"', 'header = "X-Api-Key"']),
    ):
        server = Server(stage.folder, free_port())
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
    server = Server(stage.folder, free_port())
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
    assert "sealed under another keyring" in said and "Nothing was changed" in said, said
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
    for agent in agents:
        until(lambda agent=agent: not agent.call("look").is_good(), "a call that is refused")
        wants_link(gateway, agent.call("look"), "connect.reconnect")
    until(lambda: recorded(gateway, "vault.record") == {"ann", "bob"}, "a record of both")
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
    stage.start(gateway)
    answer = agent.call("look")
    assert answer.status == 503 and "vault.older" in answer.text(), answer
    gateway.run("vault", "accept-restore")
    # The tokens of the backup are used up; the person connects again.
    wants_link(gateway, agent.call("look"), "connect.reconnect")
    stage.person(gateway).connected(SERVER)
    good(agent.call("look"))


@scenario
def memory_is_not_dumped(stage):
    _, server = stage.pair()
    gateway = stage.gateway(stage.providers[0], server)
    process = stage.start(gateway)
    limits = pathlib.Path(f"/proc/{process.pid}/limits").read_text()
    [core] = [line.split() for line in limits.splitlines() if line.startswith("Max core file size")]
    assert core[4:6] == ["0", "0"], core


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


def recorded(gateway, code):
    """The users of whom there are records with this code."""
    records = [json.loads(line) for line in gateway.records()]
    return {record.get("user") for record in records if record.get("code") == code}
