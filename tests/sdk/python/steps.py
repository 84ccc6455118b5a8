"""What every client of the matrix does, and how it reports: one line of JSON on standard output.

`{"version": "2026-07-28", "steps": {"list": "ok", "call": "what was wrong", …}}`
"""

import json
import traceback

import anyio

TOOLS = {"echo", "count", "fail", "slow", "cancelled"}


class Report:
    """Collects the outcome of each step; a step that raises or takes too long has failed."""

    def __init__(self):
        self.version = None
        self.steps = {}

    async def step(self, name, check):
        try:
            with anyio.fail_after(20):
                await check()
            self.steps[name] = "ok"
        except Exception as fault:
            self.steps[name] = f"{type(fault).__name__}: {fault}"
            traceback.print_exc()

    def print(self):
        print(json.dumps({"version": self.version, "steps": self.steps}))


async def run(report, client):
    """Runs the steps. `client` has `version`, `names`, `call`, `ping` (or None) and `cancel_slow`."""
    report.version = client.version

    async def listed():
        expect(await client.names(), TOOLS)

    async def called():
        expect(await client.call("echo", {"text": "héllo"}), (False, "héllo"))

    async def progressed():
        seen = []

        async def progress(value, total, message):
            seen.append((value, total))

        expect(await client.call("count", {"n": 3}, progress), (False, "counted to 3"))
        expect(seen, [(1, 3), (2, 3), (3, 3)])

    async def failed():
        is_error, text = await client.call("fail", {})
        expect((is_error, "refused on purpose" in text), (True, True))

    async def cancelled():
        before = await count_cancelled(client)
        await client.cancel_slow()
        while await count_cancelled(client) == before:
            await anyio.sleep(0.05)
        expect(await count_cancelled(client), before + 1)

    await report.step("list", listed)
    await report.step("call", called)
    await report.step("progress", progressed)
    await report.step("error", failed)
    if client.ping:
        await report.step("ping", client.ping)
    await report.step("cancel", cancelled)


async def count_cancelled(client):
    return int((await client.call("cancelled", {}))[1])


def expect(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def outcome(result, is_error):
    """A call's result as the steps compare it: whether it is an error, and its text."""
    return is_error, "".join(block.text for block in result.content)
