"""What every client of the matrix does, and how it reports: one line of JSON on standard output.

`{"version": "2026-07-28", "steps": {"list": "ok", "call": "what was wrong", …}}`

Which steps, with what and with what outcome, is the client's second argument: `[["list", {…}], …]`.
A name such as `read-blob` is the step `read` once more.
"""

import contextlib
import json
import traceback

import anyio

ROOT = {"uri": "file:///project", "name": "project"}
SECOND_ROOT = {"uri": "file:///second", "name": "second"}
POEM = {
    "role": "assistant",
    "content": {"type": "text", "text": "an old silent pond"},
    "model": "pond-1",
    "stopReason": "endTurn",
}


class User:
    """What is behind the client: it answers what a server asks, and keeps what a server tells."""

    def __init__(self):
        self.answer = {"action": "cancel"}
        self.asked = None
        self.open = [ROOT]
        self._told, self._events = anyio.create_memory_object_stream(1000)

    def reply(self, message):
        self.asked = message
        return self.answer

    def tell(self, *event):
        self._told.send_nowait(event)

    async def until(self, *wanted):
        """Waits for an event whose parts contain those wanted."""
        async for event in self._events:
            if event[0] == wanted[0] and all(part in found for part, found in zip(wanted[1:], event[1:])):
                return


class Steps:
    """The steps. `client` is the SDK's client in the shape that client_current.py and client_legacy.py give it."""

    def __init__(self, client, user):
        self.client = client
        self.user = user

    async def capabilities(self, has):
        found = self.client.capabilities.model_dump(by_alias=True, exclude_none=True)
        expect(sorted(set(has) - set(found)), [])

    async def list(self, names, optional=()):
        found = {tool.name for tool in await self.client.tools()}
        expect(sorted(found - set(optional)), sorted(names))

    async def call(self, tool, arguments, text=None, contains=None):
        is_error, found = text_of(await self.client.call(tool, arguments))
        expect(is_error, False)
        compare(found, text, contains)

    async def structured(self, tool, arguments, value):
        expect(structured_of(await self.client.call(tool, arguments)), value)

    async def cut(self, tool, arguments, value, says, reader, endpoint=None):
        """A result of which a part is missing passes the client's check, says so, and can be read on."""
        promises = {tool.name: output_schema_of(tool) for tool in await self.client.tools()}
        expect(promises[tool] is None, False)
        result = await self.client.call(tool, arguments)
        is_error, found = text_of(result)
        expect((is_error, structured_of(result)), (True, None))
        for part in says:
            compare(found, None, part)
        cut = result.meta["io.tollgate/cut"]
        expect((cut["why"], cut["tool"], cut.get("endpoint")), ("result", reader, endpoint))
        async with self.client.at(endpoint) if endpoint else contextlib.nullcontext(self.client) as client:
            texts = await read_on(client, cut, 0)
            rest = "".join(await read_on(client, cut, cut["offset"]))
        expect(json.loads(texts[-1]), value)
        expect((rest != "", "".join(texts).endswith(rest)), (True, True))

    async def progress(self, tool, arguments, contains, seen):
        found = []

        async def progress(value, total, message):
            found.append([value, total])

        result = await self.client.call(tool, arguments, progress)
        compare(text_of(result)[1], None, contains)
        expect(found, seen)

    async def error(self, tool, arguments, contains):
        is_error, found = text_of(await self.client.call(tool, arguments))
        expect(is_error, True)
        compare(found, None, contains)

    async def ping(self):
        await self.client.ping()

    async def resources(self, uris):
        expect(sorted(await self.client.resources()), sorted(uris))

    async def templates(self, templates):
        expect(sorted(await self.client.templates()), sorted(templates))

    async def read(self, uri, text=None, contains=None, blob=None):
        (contents,) = await self.client.read(uri)
        found = contents.text if blob is None else contents.blob
        compare(found, text if blob is None else blob, contains)

    async def prompts(self, names):
        expect(sorted(await self.client.prompts()), sorted(names))

    async def prompt(self, name, arguments, text):
        messages = await self.client.prompt(name, arguments)
        expect("".join(message.content.text for message in messages), text)

    async def complete(self, ref, argument, values):
        expect(await self.client.complete(ref, argument), values)

    async def log(self, level, tool, arguments, contains):
        await self.client.call_logged(level, tool, arguments)
        await self.user.until("log", contains)

    async def subscribe(self, uri, tool, arguments):
        async with self.client.subscribed(uri):
            await self.client.call(tool, arguments)
            await self.user.until("updated", uri)

    async def changed(self, kind, tool, arguments):
        async with self.client.watching(kind):
            await self.client.call(tool, arguments)
            await self.user.until("changed", kind)

    async def elicit(self, tool, arguments, asked, answer, contains):
        self.user.answer = answer
        compare(text_of(await self.client.call(tool, arguments))[1], None, contains)
        expect(self.user.asked, asked)

    async def sample(self, tool, arguments, contains):
        await self.call(tool, arguments, contains=contains)

    async def roots(self, tool, arguments, contains):
        await self.call(tool, arguments, contains=contains)

    async def update(self, contains):
        """The user opens a second folder, of which the server is told."""
        self.user.open = [ROOT, SECOND_ROOT]
        await self.client.tell_roots_changed()
        await self.user.until("log", contains)

    async def cancel(self, tool, counter):
        before = await self._count(counter)
        await self.client.cancel(tool)
        while await self._count(counter) == before:
            await anyio.sleep(0.05)
        expect(await self._count(counter), before + 1)

    async def _count(self, counter):
        return int(text_of(await self.client.call(counter, {}))[1])


class Report:
    """Runs steps and collects their outcome; a step that raises or takes too long has failed."""

    def __init__(self, wanted):
        self.version = None
        self.outcomes = {}
        self.wanted = wanted

    async def run(self, client, user):
        self.version = client.version
        steps = Steps(client, user)
        for name, parameters in self.wanted:
            try:
                with anyio.fail_after(20):
                    await getattr(steps, name.split("-")[0])(**parameters)
                self.outcomes[name] = "ok"
            except Exception as fault:
                self.outcomes[name] = f"{type(fault).__name__}: {fault}"
                traceback.print_exc()

    def print(self):
        print(json.dumps({"version": self.version, "steps": self.outcomes}))


def main(client, arguments):
    """Runs `client(url, report)`, which connects and runs the steps."""
    url, wanted = arguments
    report = Report(json.loads(wanted))
    try:
        anyio.run(client, url, report)
    finally:
        report.print()


async def read_on(client, cut, offset):
    """The texts of a result from there on; what is structured is the last of them."""
    texts, end = [], None
    while offset is not None:
        result = await client.call(cut["tool"], {"handle": cut["handle"], "offset": offset})
        expect(text_of(result)[0], False)
        place, said = result.meta["io.tollgate/read"], result.content[0].text
        if place["offset"] == end:
            texts[-1] += said
        else:
            texts.append(said)
        end, offset = place["end"], place.get("next")
    return texts


def compare(found, text, contains):
    if contains is None:
        expect(found, text)
    elif contains not in found:
        raise AssertionError(f"found {found!r}, expected it to contain {contains!r}")


def expect(found, expected):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}")


def text_of(result):
    """Whether a call's result is an error, and its text. The SDK's majors spell the flag differently."""
    is_error = result.is_error if hasattr(result, "is_error") else result.isError
    return is_error, "".join(block.text for block in result.content)


def structured_of(result):
    return result.structured_content if hasattr(result, "structured_content") else result.structuredContent


def output_schema_of(tool):
    return tool.output_schema if hasattr(tool, "output_schema") else tool.outputSchema
