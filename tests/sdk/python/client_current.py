"""The Python SDK's current major as a client, in the era that it negotiates. Argument: the URL."""

import sys

import anyio
from mcp import Client

import steps


class Current:
    def __init__(self, client):
        self.client = client
        self.version = client.protocol_version
        # Ping ended with the sessions.
        self.ping = client.send_ping if self.version < "2026-07-28" else None

    async def names(self):
        return {tool.name for tool in (await self.client.list_tools()).tools}

    async def call(self, name, arguments, progress=None):
        result = await self.client.call_tool(name, arguments, progress_callback=progress)
        return steps.outcome(result, result.is_error)

    async def cancel_slow(self):
        """Calls `slow` and, once it runs, gives the call up."""
        with anyio.CancelScope() as scope:

            async def started(value, total, message):
                scope.cancel()

            await self.client.call_tool("slow", {}, progress_callback=started)


async def main(url):
    report = steps.Report()
    try:
        async with Client(url) as client:
            await steps.run(report, Current(client))
    finally:
        report.print()


anyio.run(main, sys.argv[1])
