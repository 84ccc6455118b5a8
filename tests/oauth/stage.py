"""What a scenario plays on: programs that it starts, agents and people, and what they all saw."""

import contextlib
import time

from agent import Agent
from parts import Gateway, Provider, Server, server_file
from harness.process import free_port
from person import signed_in

SCOPES = "mcp:read mcp:write mcp:manage"
SERVER = "notes"


class Stage(contextlib.ExitStack):
    """The parts of one scenario, in a folder; they end with it."""

    def __init__(self, folder):
        super().__init__()
        self.folder = folder
        self.folder.mkdir(parents=True)
        self.gateways, self.people, self.agents, self.providers = [], [], [], []
        # Secrets that only the scenario knows, files that hold secrets by right, and what was said elsewhere.
        self.entered, self.kept, self.said, self.links, self.cookies = [], [], [], [], []

    def provider(self, resource_port, **settings):
        """Starts an authorization server for a server on that port."""
        resource = f"http://127.0.0.1:{resource_port}/mcp"
        provider = Provider(self.folder, RESOURCES=f'{{"{resource}": "{SCOPES}"}}', **settings)
        self.providers.append(provider)
        return provider

    def pair(self, **settings):
        """Starts an authorization server and a server that wants its tokens; gives both."""
        port = free_port()
        provider = self.enter_context(self.provider(port, **settings).running())
        return provider, self.enter_context(Server(self.folder, port, provider).running())

    def gateway(self, provider, server, name="gateway", auth=(), **more):
        """A gateway in front of a server; not started yet."""
        lines = ['mode = "oauth"', "allow_http_loopback = true", *auth]
        legs = [f"server:{SERVER}", f"oauth:{SERVER}"]
        grants = [("127.0.0.1", server.port, legs), ("127.0.0.1", provider.port, [f"oauth:{SERVER}"])]
        return self.gateway_of({SERVER: server_file(server.url, lines)}, grants, name, **more)

    def gateway_of(self, servers, grants, name="gateway", **more):
        """A gateway with these servers' files; not started yet."""
        gateway = Gateway(self.folder, name, servers, grants, **more)
        self.gateways.append(gateway)
        return gateway

    def start(self, gateway):
        """Starts a gateway until the scenario ends; gives its process."""
        return self.enter_context(gateway.running())

    def whole(self, **settings):
        """Provider, server and a gateway that runs."""
        provider, server = self.pair(**settings)
        gateway = self.gateway(provider, server)
        self.start(gateway)
        return provider, server, gateway

    def person(self, gateway, user="ann"):
        """A user who has signed in."""
        person = signed_in(gateway, user, gateway.trust)
        self.people.append(person)
        return person

    def agent(self, gateway, user="ann", server=SERVER, **more):
        """The agent of a user."""
        agent = Agent(gateway.url(server), gateway.keys[user], trust=gateway.trust, **more)
        agent.open()
        self.agents.append(agent)
        return agent

    def tell(self, secrets):
        """Tells what is secret."""
        for provider in self.providers:
            secrets.of_provider(provider.journal.entries())
        for person in self.people:
            secrets.of_browser(person)
        for url in self.links:
            secrets.of_link(url)
        for value in self.cookies:
            secrets.add("cookie", value)
        for gateway in self.gateways:
            if gateway.keyring.exists():
                secrets.of_keyring(gateway.keyring)
            for key in gateway.keys.values():
                secrets.add("agent key", key)
        for value in self.entered:
            secrets.add("entered", value)
        for gateway in self.gateways:
            self.said += [("an answer to the operator", text) for text in gateway.said]
        for agent in self.agents:
            self.said += [("an answer to an agent", body) for body in agent.bodies]


def until(done, what, seconds=15):
    """Waits until `done()` is true; gives what it gave."""
    deadline = time.monotonic() + seconds
    while True:
        found = done()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        time.sleep(0.02)


def expired(provider):
    """Waits until the newest access token has ended; its end is counted in whole seconds."""
    newest = provider.tokens()[-1]
    end = newest["at"] + newest["answer"]["expires_in"] + 1
    time.sleep(max(0.0, end - time.time()))
