"""Programs that a test starts, waits for, and ends by their process id."""

import contextlib
import os
import pathlib
import socket
import subprocess
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tests" / ".tools"
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))


class NotReady(Exception):
    """A program did not come up; the message says which, and ends with what it wrote."""


def free_port():
    """A TCP port of 127.0.0.1 that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def running(command, log, **options):
    """Runs `command` with its output in the file `log` until the block ends; gives the process."""
    with open(log, "wb") as output:
        process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            **options,
        )
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def wait_until(ready, process, log, seconds=30):
    """Polls `ready()` until it is true; a process that ends, or stays silent too long, is NotReady."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if ready():
            return
        if process.poll() is not None:
            raise NotReady(f"`{process.args[0]}` ended with status {process.returncode}\n{tail(log)}")
        time.sleep(0.05)
    raise NotReady(f"`{process.args[0]}` was not ready after {seconds} s\n{tail(log)}")


def accepts(port):
    """Whether something listens on this port of 127.0.0.1."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def answers_200(url):
    """Whether a GET of `url` is answered with 200. Proxy variables of the environment do not count."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=2) as response:
            return response.status == 200
    except (urllib.error.URLError, OSError):
        return False


def tail(log, lines=20):
    """The last lines of a log file."""
    text = pathlib.Path(log).read_text(errors="replace")
    return "\n".join(text.splitlines()[-lines:])
