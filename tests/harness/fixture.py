"""The fixture server of tests/fixture, which speaks both eras."""

import contextlib
import pathlib
import tempfile

from harness.process import TARGET, accepts, free_port, running, wait_until

# What it costs is not measured, so that it need not be optimised.
PROGRAM = TARGET / "debug" / "examples" / "fixture"


@contextlib.contextmanager
def fixture(*options):
    """Runs the fixture with these options and gives its port."""
    with tempfile.TemporaryDirectory(prefix="tollgate-test-") as folder:
        log = pathlib.Path(folder) / "fixture.log"
        port = free_port()
        with running([PROGRAM, "--port", port, *options], log) as process:
            wait_until(lambda: accepts(port), process, log)
            yield port
