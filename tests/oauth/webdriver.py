"""Chromium by the WebDriver protocol (https://www.w3.org/TR/webdriver2/), as far as these tests need it."""

import base64
import contextlib
import http.client
import json
import pathlib
import shutil
import tempfile

from harness.process import accepts, free_port, running, wait_until
from parts import environment

PROGRAM, DRIVER = "chromium", "chromedriver"
# How wide a small phone is.
PHONE = 360
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# Nothing but loopback is ever asked for, and a window is as large as a small laptop's.
ARGUMENTS = [
    *("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-default-apps"),
    *("--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--window-size=1280,900"),
]


def is_installed():
    return shutil.which(PROGRAM) is not None and shutil.which(DRIVER) is not None


@contextlib.contextmanager
def chromium():
    """A window with a profile of its own."""
    with tempfile.TemporaryDirectory(prefix="tollgate-chromium-") as folder:
        port, log = free_port(), pathlib.Path(folder) / "driver.log"
        with running([DRIVER, f"--port={port}"], log, env=environment(HOME=folder)) as process:
            wait_until(lambda: accepts(port), process, log)
            window = Window(port, folder)
            try:
                yield window
            finally:
                window.end()


class Window:
    """A window: opens pages, clicks, types, takes pictures."""

    def __init__(self, port, folder):
        self.port = port
        options = {"binary": shutil.which(PROGRAM), "args": [*ARGUMENTS, f"--user-data-dir={folder}/profile"]}
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        self.path = "/session"
        answer = self.command("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self.path = f"/session/{answer['sessionId']}"

    def command(self, method, path, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            text = None if method == "GET" else json.dumps(body or {})
            connection.request(method, self.path + path, text, {"Content-Type": "application/json"})
            value = json.loads(connection.getresponse().read())["value"]
        finally:
            connection.close()
        if isinstance(value, dict) and "error" in value:
            raise AssertionError(f"chromium: {value['error']}: {value['message'].splitlines()[0]}")
        return value

    def end(self):
        self.command("DELETE", "")

    def open(self, url):
        self.command("POST", "/url", {"url": url})

    def url(self):
        return self.command("GET", "/url")

    def run(self, script, *arguments):
        """Runs a function's body in the page and gives what it returns."""
        return self.command("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, xpath):
        return self.command("POST", "/element", {"using": "xpath", "value": xpath})[ELEMENT]

    def click(self, label):
        """Clicks the first button or link on whose beginning this label stands, below the bar with the way around."""
        xpath = f"//main//*[self::button or self::a][starts-with(normalize-space(.), '{label}')]"
        self.command("POST", f"/element/{self.find(xpath)}/click")

    def cookies(self):
        """The values of the cookies that the page gets."""
        return [cookie["value"] for cookie in self.command("GET", "/cookie")]

    def type(self, xpath, text):
        self.command("POST", f"/element/{self.find(xpath)}/value", {"text": text})

    def press(self, *keys):
        """Presses keys one after the other; a tabulator is `\\ue004`, enter `\\ue007`."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self.command("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": actions}]})

    def text(self):
        return self.run("return document.body.innerText")

    def source(self):
        return self.command("GET", "/source")

    def picture(self, path):
        """Takes a picture of the whole page."""
        size = self.run("return [document.documentElement.scrollWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": max(size[1], 300), "scale": 1}
        shot = self.devtools("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(shot["data"]))

    def devtools(self, method, **parameters):
        return self.command("POST", "/goog/cdp/execute", {"cmd": method, "params": parameters})

    def scheme(self, name):
        """Prefers `light` or `dark`."""
        self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def phone(self, is_on):
        """Is as wide as a phone, or is not."""
        if is_on:
            self.devtools(
                "Emulation.setDeviceMetricsOverride", width=PHONE, height=780, deviceScaleFactor=2, mobile=True
            )
        else:
            self.devtools("Emulation.clearDeviceMetricsOverride")

    def complaints(self):
        """What the console has to say since it was last asked: blocked styles, failed requests and the like."""
        entries = self.command("POST", "/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] in ("WARNING", "SEVERE")]
