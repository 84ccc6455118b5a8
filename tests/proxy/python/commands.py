"""curl and git as clients. Arguments: which, then see steps.py."""

import json
import pathlib
import subprocess
import sys
from urllib.parse import urlsplit

from steps import UPLOAD, run


class Failed(Exception):
    """A command that did not end well; the message is what it wrote to standard error."""


class Curl:
    """`options` go before the URL; the proxy is the environment's unless they name it."""

    def __init__(self, job, *options):
        self.options = ["--cacert", job["ca"], *options]
        self.upload = pathlib.Path(job["folder"]) / "upload"
        self.upload.write_bytes(UPLOAD)

    def get(self, url):
        return self.run(url)

    def post(self, url):
        # curl asks before it sends so much: `Expect: 100-continue`.
        return self.run("-H", "Content-Type: application/octet-stream", "--data-binary", f"@{self.upload}", url)

    def run(self, *arguments):
        command = ["curl", "--silent", "--show-error", "--max-time", "20", *self.options]
        output = run_command([*command, "--write-out", "\n%{http_code}", *arguments])
        body, _, status = output.rpartition(b"\n")
        return int(status), body


class Git:
    def __init__(self, job):
        self.ca, self.folder = job["ca"], pathlib.Path(job["folder"])

    def clone(self, url):
        target = self.folder / f"clone-{len(list(self.folder.iterdir()))}"
        run_command(["git", "-c", f"http.sslCAInfo={self.ca}", "clone", "--quiet", url, str(target)])
        return 200, (target / "notes.txt").read_bytes()


def run_command(command):
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    if done.returncode:
        raise Failed(done.stderr.decode(errors="replace").strip())
    return done.stdout


def proxy_user(job):
    """The options that name a proxy and its user apart."""
    proxy = urlsplit(job["proxy"])
    credential = f"{proxy.username or ''}:{proxy.password}"
    return ["--proxy", f"http://{proxy.hostname}:{proxy.port}", "--proxy-user", credential]


CLIENTS = {
    "curl": Curl,
    "curl-proxy-user": lambda job: Curl(job, *proxy_user(job)),
    "curl-bearer": lambda job: Curl(
        job,
        *("--proxy", "http://{0.hostname}:{0.port}".format(urlsplit(job["proxy"]))),
        *("--proxy-header", f"Proxy-Authorization: Bearer {urlsplit(job['proxy']).password}"),
    ),
    "curl-http2": lambda job: Curl(job, "--proxy", job["proxy"], "--http2"),
    "git": Git,
}

if __name__ == "__main__":
    job = json.loads(sys.argv[2])
    run(CLIENTS[sys.argv[1]](job), job["steps"])
