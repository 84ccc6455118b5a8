"""A browser as far as Tollgate's pages need one: cookies, redirects taken one by one, forms with what they hold.

It keeps the rules that browsers have and HTTP libraries do not: cookies know no ports, `Secure` and `__Host-` mean
something, and a form of a page without referrer is sent with `Origin: null`.
"""

import html.parser
import http.client
import typing
import urllib.parse

from agent import connection_to

REDIRECTS = 20


class Unexpected(Exception):
    """A page is not what a person would have needed to go on; the message holds its beginning."""


class Control(typing.NamedTuple):
    """What a form holds: the tag or the type of an input, its name, its value and what is written on it."""

    kind: str
    name: str
    value: str
    label: str


class Form(typing.NamedTuple):
    """A form of a page."""

    method: str
    action: str
    controls: list

    def buttons(self):
        return [control for control in self.controls if control.kind in ("submit", "button")]

    def fields(self):
        return [control for control in self.controls if control.kind not in ("submit", "button")]


class Page(typing.NamedTuple):
    """An answer: where it came from, its status, its header fields and its text."""

    url: str
    status: int
    headers: http.client.HTTPMessage
    text: str

    def forms(self):
        reader = Reader()
        reader.feed(self.text)
        return reader.forms

    def form(self, action):
        """The form that is sent to an address beginning with `action`."""
        for form in self.forms():
            if form.action.startswith(action) and form.buttons():
                return form
        raise Unexpected(f"no form for `{action}` at {self}")

    def leads_to(self):
        """Where a browser goes from here by itself."""
        if self.status in (301, 302, 303, 307, 308):
            return self.headers.get("Location")
        seconds, _, url = self.headers.get("Refresh", "").partition("; url=")
        return url if seconds == "0" and url else None

    def words(self):
        """What a person reads."""
        reader = Reader()
        reader.feed(self.text)
        return " ".join(" ".join(reader.words).split())

    def __str__(self):
        # The query may hold a secret.
        return f"{self.url.split('?')[0]}: {self.status}: {self.words()[:600]}"


class Browser:
    """A person's browser. `visited` has every address it was sent to, `pages` every page it saw."""

    def __init__(self, trust=None):
        self.cookies = {}
        self.visited = []
        self.pages = []
        self.trust = trust
        self.stop = None

    def get(self, url):
        """Opens an address and follows where it leads."""
        return self.request("GET", url)

    def stops(self, page, form, place):
        """Submits a form, but does not open the address beginning with `place`; gives that."""
        self.stop = place
        try:
            return self.submit(page, form).url
        finally:
            self.stop = None

    def submit(self, page, form, **typed):
        """Fills `typed` into a form of `page`, and presses its first button."""
        values = {control.name: control.value for control in form.fields() if control.name}
        unknown = typed.keys() - values.keys()
        if unknown:
            raise Unexpected(f"no field {sorted(unknown)} at {page}")
        values.update(typed)
        button = form.buttons()[0]
        if button.name:
            values[button.name] = button.value
        target = urllib.parse.urljoin(page.url, form.action)
        body = urllib.parse.urlencode(values)
        if form.method != "post":
            return self.request("GET", f"{target.split('?')[0]}?{body}")
        silent = page.headers.get("Referrer-Policy", "") == "no-referrer"
        return self.request("POST", target, body, "null" if silent else origin(page.url))

    def request(self, method, url, body=None, sent_from=None):
        """Sends a request and follows redirects; gives the page at their end."""
        for _ in range(REDIRECTS):
            page = self.exchange(method, url, body, sent_from)
            location = page.leads_to()
            if location is None:
                self.pages.append(page)
                return page
            url = urllib.parse.urljoin(url, location)
            if self.stop and url.startswith(self.stop):
                self.visited.append(url)
                return page._replace(url=url)
            if page.status not in (307, 308):
                method, body, sent_from = "GET", None, None
        raise Unexpected(f"more than {REDIRECTS} redirects, the last to {url.split('?')[0]}")

    def exchange(self, method, url, body=None, sent_from=None):
        """One request and its answer; cookies are taken out of it."""
        self.visited.append(url)
        parts = urllib.parse.urlsplit(url)
        headers = {"Accept": "text/html", "User-Agent": "Mozilla/5.0 (a test)"}
        cookie = self.cookie_header(parts)
        if cookie:
            headers["Cookie"] = cookie
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        if sent_from is not None:
            headers["Origin"] = sent_from
        connection = connection_to(parts, self.trust, 30)
        try:
            target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
            connection.request(method, target, body, headers)
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
        finally:
            connection.close()
        for line in answer.headers.get_all("Set-Cookie") or []:
            self.keep(parts, line)
        return Page(url, answer.status, answer.headers, text)

    def keep(self, parts, line):
        """Takes a `Set-Cookie` as browsers do (RFC 6265bis)."""
        first, *rest = line.split(";")
        name, _, value = first.strip().partition("=")
        attributes = {}
        for attribute in rest:
            key, _, text = attribute.strip().partition("=")
            attributes[key.lower()] = text
        path = attributes.get("path") or "/"
        if "secure" in attributes and parts.scheme != "https":
            raise Unexpected(f"a Secure cookie `{name}` over plain HTTP")
        if name.startswith("__Host-") and ("secure" not in attributes or path != "/" or "domain" in attributes):
            raise Unexpected(f"the cookie `{name}` does not keep what its prefix promises")
        place = (parts.hostname, name, path)
        if attributes.get("max-age", "1").startswith(("0", "-")):
            self.cookies.pop(place, None)
        else:
            self.cookies[place] = (value, attributes)

    def cookie_header(self, parts):
        found = []
        for (host, name, path), (value, attributes) in self.cookies.items():
            under = parts.path == path or parts.path.startswith(path.rstrip("/") + "/")
            if host == parts.hostname and under and ("secure" not in attributes or parts.scheme == "https"):
                found.append(f"{name}={value}")
        return "; ".join(found)


class Reader(html.parser.HTMLParser):
    """Reads forms and words out of a page."""

    SILENT = ("script", "style", "title")

    def __init__(self):
        super().__init__()
        self.forms = []
        self.words = []
        self.is_form = False
        self.button = None
        self.silent = 0

    def handle_starttag(self, tag, attrs):
        given = {name: value or "" for name, value in attrs}
        self.silent += tag in self.SILENT
        if tag == "form":
            self.forms.append(Form(given.get("method", "get").lower(), given.get("action", ""), []))
            self.is_form = True
        elif not self.is_form:
            return
        elif tag == "input":
            kind = given.get("type", "text")
            if kind in ("checkbox", "radio") and "checked" not in given:
                return
            value = given.get("value", "")
            self.forms[-1].controls.append(Control(kind, given.get("name", ""), value, value or given.get("aria-label", "")))
        elif tag == "textarea":
            self.forms[-1].controls.append(Control("textarea", given.get("name", ""), "", ""))
        elif tag == "button":
            self.button = (given, [])

    def handle_endtag(self, tag):
        self.silent -= tag in self.SILENT
        if tag == "form":
            self.is_form = False
        elif tag == "button" and self.button:
            given, words = self.button
            kind = given.get("type", "submit")
            label = given.get("aria-label") or " ".join("".join(words).split())
            self.forms[-1].controls.append(Control(kind, given.get("name", ""), given.get("value", ""), label))
            self.button = None

    def handle_data(self, data):
        if self.silent:
            return
        self.words.append(data)
        if self.button:
            self.button[1].append(data)


def origin(url):
    """The origin of an address."""
    parts = urllib.parse.urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
