"""A person at a browser: signs in by the one-time link, presses Connect, walks through the provider, comes back."""

import re

from browser import Browser, Unexpected

SIGN_IN, CONNECT, DISCONNECT, SAVE = "Sign in", "Connect", "Disconnect", "Save"


class Person(Browser):
    """A user of a gateway."""

    def __init__(self, gateway, user, trust=None):
        super().__init__(trust)
        self.gateway = gateway
        self.user = user
        self.links = []

    def sign_in(self):
        """Opens the one-time link that `tollgate login` prints, and presses the button there."""
        said = self.gateway.run("login", "--user", self.user).stdout
        found = re.search(r"https?://\S+/login\?\S+", said)
        if not found:
            raise Unexpected(f"`tollgate login` gave no link: {said!r}")
        self.links.append(found[0])
        page = self.press(self.get(found[0]), SIGN_IN)
        if page.status != 200:
            raise Unexpected(f"not signed in: {page}")
        return page

    def home(self):
        """The page with all connections."""
        return self.get(f"{self.gateway.public_url}/")

    def confirm(self, server):
        """The page on which Connect is pressed."""
        return self.get(f"{self.gateway.public_url}/connect/{server}")

    def connect(self, server):
        """Connects; gives the page where it ends, whatever it says."""
        return self.press(self.confirm(server), CONNECT)

    def connected(self, server):
        """Connects, and is told so."""
        page = self.connect(server)
        if page.status != 200 or "connected" not in page.words().lower() or not page.url.startswith(self.gateway.public_url):
            raise Unexpected(f"not connected: {page}")
        return page


def signed_in(gateway, user, trust=None):
    """A person who has signed in."""
    person = Person(gateway, user, trust)
    person.sign_in()
    return person
