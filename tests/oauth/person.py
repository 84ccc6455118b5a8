"""A person at a browser: signs in by the one-time link, presses Connect, walks through the provider, comes back."""

import re

from browser import Browser, Unexpected


class Person(Browser):
    """A user of a gateway."""

    def __init__(self, gateway, user, trust=None):
        super().__init__(trust)
        self.gateway = gateway
        self.user = user
        self.links = []

    def sign_in(self):
        """Opens the one-time link that `tollgate login` prints, and presses the button there."""
        self.links.append(login_link(self.gateway, self.user))
        page = self.get(self.links[-1])
        page = self.submit(page, page.form("/login"))
        if page.status != 200 or "/login" in page.url:
            raise Unexpected(f"not signed in: {page}")
        return page

    def home(self):
        """The page with all connections."""
        return self.get(f"{self.gateway.public_url}/")

    def confirm(self, server):
        """The page on which Connect is pressed."""
        return self.get(f"{self.gateway.public_url}/connect/{server}")

    def agree(self, page):
        """Presses Connect on that page, whatever is written on the button; gives the page where that ends."""
        return self.submit(page, page.form("/connect/"))

    def connect(self, server):
        """Connects; gives the page where it ends, whatever it says."""
        return self.agree(self.confirm(server))

    def connected(self, server):
        """Connects, and is told so."""
        page = self.connect(server)
        if not is_connected(page):
            raise Unexpected(f"not connected: {page}")
        return page

    def disconnect(self, server):
        """Ends a connection; gives the page that tells what came of it."""
        page = self.get(f"{self.gateway.public_url}/disconnect/{server}")
        return self.submit(page, page.form("/disconnect/"))

    def enter(self, server, secret):
        """Enters a static secret; gives the page that tells what came of it."""
        page = self.confirm(server)
        form = page.form("/connect/")
        [field] = [field for field in form.fields() if field.kind == "password"]
        return self.submit(page, form, **{field.name: secret})


def signed_in(gateway, user, trust=None):
    """A person who has signed in."""
    person = Person(gateway, user, trust)
    person.sign_in()
    return person


def login_link(gateway, user):
    """The link that signs a user in, once."""
    said = gateway.run("login", "--user", user).stdout
    found = re.search(r"https?://\S+/login\?\S+", said)
    if not found:
        raise Unexpected(f"`tollgate login` gave no link: {said!r}")
    return found[0]


def is_connected(page):
    """Whether a page says that a server is connected now."""
    return page.status == 200 and "You are connected to" in page.words()
