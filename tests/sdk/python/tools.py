"""What every Python server of the matrix offers; the clients know it by these names.

The SDKs differ in how a tool asks its caller for something and tells of a change: that is in the
servers themselves, and `register` takes it as `changed` and `touched`.
"""

import anyio
from pydantic import BaseModel

# Where a server sends its caller's user; nobody goes there.
SIGN_IN = "https://example.com/sign-in"

cancelled_calls = 0


class Town(BaseModel):
    town: str
    degrees: int


class Survey(BaseModel):
    towns: list[Town]


def register(server, context_type, error_type, changed, touched):
    """Adds tools, resources and prompts to a server, with its SDK's types for a tool's context and error.

    `changed(context)` tells the caller that the list of tools changed, `touched(context, uri)` that a
    resource did.
    """

    @server.tool(description="returns its argument")
    async def echo(text: str) -> str:
        return text

    @server.tool(description="returns a structured result")
    async def measure(town: str) -> dict[str, str | int]:
        return {"town": town, "degrees": 12}

    @server.tool(description="returns as many towns as are asked for, under a schema")
    async def survey(count: int) -> Survey:
        return Survey(towns=[Town(town=f"town {n}", degrees=n) for n in range(count)])

    @server.tool(description="reports progress n times")
    async def count(n: int, context: context_type) -> str:
        for step in range(1, n + 1):
            await context.report_progress(step, n)
        return f"counted to {n}"

    @server.tool(description="always fails")
    async def fail() -> str:
        raise error_type("refused on purpose")

    @server.tool(description="reports progress once, then waits to be cancelled")
    async def slow(context: context_type) -> str:
        global cancelled_calls
        await context.report_progress(1, 2)
        try:
            await anyio.sleep(30)
        except anyio.get_cancelled_exc_class():
            cancelled_calls += 1
            raise
        return "never cancelled"

    @server.tool(description="tells how many slow calls were cancelled")
    async def cancelled() -> str:
        return str(cancelled_calls)

    @server.tool(description="writes a warning to the caller's log")
    async def warn(context: context_type) -> str:
        related = context.request_id
        await context.session.send_log_message("warning", "low water", "gauge", related_request_id=related)
        return "warned"

    @server.tool(description="tells that the list of tools changed")
    async def change(context: context_type) -> str:
        await changed(context)
        return "changed"

    @server.tool(description="tells that a resource changed")
    async def touch(uri: str, context: context_type) -> str:
        await touched(context, uri)
        return "touched"

    @server.resource("test://note", mime_type="text/plain")
    async def note() -> str:
        return "a nöte"

    @server.resource("test://bytes", mime_type="application/octet-stream")
    async def some_bytes() -> bytes:
        return bytes([0, 1, 254, 255])

    @server.resource("test://item/{number}", mime_type="text/plain")
    async def item(number: str) -> str:
        return f"item {number}"

    @server.prompt(description="greets somebody")
    async def greet(name: str) -> str:
        return f"Greet {name}."


def candidates(value):
    """Completions of the prompt's `name` and of the template's `number`."""
    return [name for name in ["Ada", "Adele", "Grace", "7", "77"] if name.startswith(value)]
