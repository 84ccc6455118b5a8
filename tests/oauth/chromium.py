"""Chromium clicks the real pages; pictures of them go to a folder, for people to look at."""

from parts import Server, server_file
from harness.process import free_port
from person import login_link
from stage import SERVER, until
from steps import good
from webdriver import PHONE, chromium

TAB, ENTER = "\ue004", "\ue007"
# A person must be able to read it: WCAG 2.2, 1.4.3.
CONTRAST = 4.5
CHECKS = """
const problems = [];
if (!document.documentElement.lang) problems.push('no language');
if (!document.title) problems.push('no title');
if (document.querySelectorAll('h1').length !== 1) problems.push('not one h1');
if (!document.querySelector('main')) problems.push('no main');
if (document.documentElement.scrollWidth > window.innerWidth) problems.push('wider than the window');
for (const field of document.querySelectorAll('input:not([type=hidden]):not([type=submit]), textarea, select')) {
    if (!field.labels?.length && !field.ariaLabel) problems.push(`no label: ${field.name}`);
}
const numbers = color => (color.match(/[\\d.]+/g) ?? []).map(Number);
const luminance = rgb => {
    const linear = part => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const [r, g, b] = rgb.map(part => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const background = element => {
    for (let at = element; at; at = at.parentElement) {
        const color = numbers(getComputedStyle(at).backgroundColor);
        if (color.length === 3 || color[3] === 1) return color.slice(0, 3);
    }
    return [255, 255, 255];
};
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    const [one, other] = [numbers(getComputedStyle(element).color).slice(0, 3), background(element)].map(luminance);
    const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const text = walker.currentNode.data.trim().slice(0, 40);
    if (contrast < arguments[0]) problems.push(`contrast ${contrast.toFixed(1)}: ${text}`);
}
return problems;
"""


def play(stage, screens):
    """Clicks through the pages of one user."""
    screens.mkdir(parents=True, exist_ok=True)
    for old in screens.glob("*.png"):
        old.unlink()
    provider, server, gateway = parts(stage)
    with chromium() as window:
        visit = Visit(stage, window, screens)
        visit.at(f"{gateway.public_url}/", "signed-out")
        visit.sign_in(login_link(gateway, "ann"))
        visit.at(f"{gateway.public_url}/", "home")
        visit.connect(gateway, SERVER)
        good(stage.agent(gateway).call("who"), "the token of ann")
        visit.at(f"{gateway.public_url}/", "home-connected")
        visit.at(f"{gateway.public_url}/connect/{SERVER}", "details")
        visit.enter(gateway, "keyed", "key-of-chromium-4711")
        good(stage.agent(gateway, server="keyed").call("look"))
        visit.refused(gateway, "refused")
        visit.at(f"{gateway.public_url}/oauth/callback?code=x&state=y", "error")
        visit.at(f"{gateway.public_url}/nothing", "not-found")
        visit.at(f"{gateway.public_url}/sign-ins", "sign-ins")
        visit.disconnect(gateway, SERVER)
        answer = stage.agent(gateway).call("look")
        assert answer.text().startswith("connect.required"), answer
        stage.cookies += window.cookies()
    assert not visit.problems, "\n".join(visit.problems)


def parts(stage):
    """A gateway before three servers: one to connect to, one with a static secret, and one whose person does not agree."""
    provider, server = stage.pair()
    keyed = Server(stage.folder, free_port())
    stage.enter_context(keyed.running(DEMANDS='["x-api-key", "key-of-chromium-4711"]'))
    stage.entered.append("key-of-chromium-4711")
    oauth = ['mode = "oauth"', "allow_http_loopback = true"]
    servers = {
        SERVER: server_file(server.url, oauth, title="Notes of the team"),
        "keyed": server_file(keyed.url, ['mode = "header"', 'header = "X-Api-Key"'], title="Weather"),
        "refused": server_file(server.url, [*oauth, 'scopes = ["mcp:read", "refuse"]'], title="Payroll"),
    }
    names = [SERVER, "refused"]
    grants = [
        ("127.0.0.1", server.port, [f"{leg}:{name}" for name in names for leg in ("server", "oauth")]),
        ("127.0.0.1", provider.port, [f"oauth:{name}" for name in names]),
        ("127.0.0.1", keyed.port, ["server:keyed"]),
    ]
    gateway = stage.gateway_of(servers, grants)
    stage.start(gateway)
    return provider, server, gateway


class Visit:
    """A person's way through the pages, with a picture of each."""

    def __init__(self, stage, window, screens):
        self.stage = stage
        self.window = window
        self.screens = screens
        self.problems = []

    def look(self, name, expects_error=False):
        """Takes pictures of a page, light, dark and on a phone, and looks for what is wrong with it."""
        for variant, scheme, is_phone in (("", "light", False), ("-dark", "dark", False), ("-phone", "light", True)):
            self.window.scheme(scheme)
            self.window.phone(is_phone)
            self.window.picture(self.screens / f"{name}{variant}.png")
            found = self.window.run(CHECKS, CONTRAST)
            self.problems += [f"{name}{variant}: {problem}" for problem in found]
            if is_phone and self.window.run("return innerWidth") != PHONE:
                self.problems.append(f"{name}{variant}: not made for narrow windows")
        self.window.scheme("light")
        self.window.phone(False)
        complaints = self.window.complaints()
        if expects_error:
            # That the page itself came with a status of 400 and more is one.
            complaints = [text for text in complaints if "Failed to load resource" not in text]
        self.problems += [f"{name}: {text}" for text in complaints]
        self.stage.said.append((f"the page {name}", self.window.source() if name != "sign-in" else ""))

    def at(self, url, name):
        self.window.open(url)
        self.look(name, expects_error=name in ("signed-out", "error", "not-found"))

    def arrives(self, part, what):
        until(lambda: part in self.window.url(), what)

    def sign_in(self, link):
        self.stage.links.append(link)
        self.window.open(link)
        self.look("sign-in")
        # By keyboard alone.
        self.focus("Sign in")
        self.window.press(ENTER)
        until(lambda: "/login" not in self.window.url(), "a page behind the sign-in")

    def focus(self, label):
        """Presses the tabulator until the focus is at a button."""
        script = "const at = document.activeElement; return (at.innerText || at.value || '').trim()"
        for _ in range(20):
            self.window.press(TAB)
            if label in self.window.run(script):
                return
        raise AssertionError(f"the keyboard does not reach `{label}`")

    def connect(self, gateway, server):
        self.window.open(f"{gateway.public_url}/connect/{server}")
        self.look("confirm")
        self.window.click("Connect")
        self.back()
        assert "You are connected to" in self.window.text(), self.window.text()
        self.look("connected")

    def back(self):
        """Waits until the way through the provider is over."""
        until(lambda: self.window.url().endswith("/result"), "the page at the end of the way")

    def enter(self, gateway, server, secret):
        self.window.open(f"{gateway.public_url}/connect/{server}")
        self.look("secret")
        self.window.type("//input[@type='password']", secret)
        self.window.press(ENTER)
        self.back()
        self.look("secret-kept")

    def refused(self, gateway, server):
        self.window.open(f"{gateway.public_url}/connect/{server}")
        self.window.click("Connect")
        self.back()
        assert "the person" in self.window.text(), self.window.text()
        self.look("refused", expects_error=True)

    def disconnect(self, gateway, server):
        self.window.open(f"{gateway.public_url}/")
        self.window.click("Disconnect")
        until(lambda: "/disconnect/" in self.window.url(), "the page that asks")
        self.look("disconnect")
        self.window.click("Disconnect")
        self.back()
        self.look("disconnected")
