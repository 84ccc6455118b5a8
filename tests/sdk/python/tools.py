"""The tools that every SDK server of the matrix offers; the clients know them by these names."""

import anyio

cancelled_calls = 0


def register(server, context_type, error_type):
    """Adds the tools to a server, with its SDK's types for a tool's context and a tool's error."""

    @server.tool(description="returns its argument")
    async def echo(text: str) -> str:
        return text

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
