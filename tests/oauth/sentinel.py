"""Looks for secrets where none may be: in logs, records, databases, pages and answers.

What is secret is collected where it is known by right: at the provider, in the person's browser, from the keyrings.
"""

import base64
import json
import re
import typing
import urllib.parse

# Kinds that a page may not show; beside these, a page has its own one-time values in its forms.
FOR_PAGES = {"access token", "refresh token", "code", "verifier", "client secret", "registration token", "key", "entered"}
# Shorter values would be found everywhere.
SHORTEST = 12


class Find(typing.NamedTuple):
    """A secret that was found, by its kind, and where."""

    kind: str
    place: str
    form: str


class Secrets:
    """All secrets of a run, each with its kind."""

    def __init__(self):
        self.kinds = {}

    def add(self, kind, value):
        if isinstance(value, str) and len(value) >= SHORTEST:
            self.kinds.setdefault(value, kind)

    def count(self, kind):
        return sum(found == kind for found in self.kinds.values())

    def of_provider(self, entries):
        """What the provider gave out, and what it was shown."""
        for entry in entries:
            for source in (entry.get("params") or {}, entry.get("answer") or {}, entry.get("query") or {}):
                self.of_mapping(source)
            location = urllib.parse.urlsplit(entry.get("location") or "")
            self.of_mapping(dict(urllib.parse.parse_qsl(location.query)))
            scheme, _, value = (entry.get("authorization") or "").partition(" ")
            if scheme.lower() == "basic":
                secret = base64.b64decode(value).decode().partition(":")[2]
                self.add("client secret", secret)
                self.add("client secret", urllib.parse.unquote_plus(secret))
            elif scheme.lower() == "bearer":
                self.add("registration token", value)

    def of_mapping(self, source):
        for name, kind in (
            ("access_token", "access token"),
            ("refresh_token", "refresh token"),
            ("token", "refresh token"),
            ("code", "code"),
            ("code_verifier", "verifier"),
            ("client_secret", "client secret"),
            ("registration_access_token", "registration token"),
            ("state", "state"),
        ):
            self.add(kind, source.get(name))

    def of_browser(self, person):
        """What a person's browser was sent with, and keeps."""
        for url in [*person.visited, *person.links]:
            self.of_mapping({name: value for name, value in query(url).items() if name in ("code", "state")})
        for url in person.links:
            self.of_link(url)
        for value, _ in person.cookies.values():
            self.add("cookie", value)

    def of_link(self, url):
        """What a link to sign in holds."""
        for value in query(url).values():
            self.add("login link", value)

    def of_keyring(self, path):
        """The keys in a keyring, however it writes them."""
        text = path.read_bytes().decode(errors="ignore")
        for value in re.findall(r"[A-Za-z0-9+/_=-]{32,}", text):
            self.add("key", value)

    def search(self, place, content, kinds=None):
        """The secrets in `content`, bytes of a `place`, in any form in which programs write them."""
        return [
            Find(kind, place, form)
            for value, kind in self.kinds.items()
            if kinds is None or kind in kinds
            for form, needle in forms(value)
            if needle in content
        ]


def query(url):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


def forms(value):
    """A value as it is, and as URLs, JSON, base64 and hexadecimal digits would have it."""
    raw = value.encode()
    found = {
        "plain": raw,
        "in a URL": urllib.parse.quote(value, safe="").encode(),
        "in JSON": json.dumps(value)[1:-1].encode(),
        "hexadecimal": raw.hex().encode(),
    }
    # The first and the last bytes of base64 depend on what stands beside; these do not.
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):
            part = raw[(3 - shift) % 3 :]
            found[f"base64 {encode.__name__} {shift}"] = encode(part[: len(part) // 3 * 3])
    return found.items()


def places(gateway, keeps=()):
    """The files of a gateway that may hold no secret: all but the keyring and those in `keeps`."""
    apart = {gateway.keyring, *keeps}
    return [path for path in sorted(gateway.home.rglob("*")) if path.is_file() and path not in apart]
