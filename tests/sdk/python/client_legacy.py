"""The Python SDK's version 1 as a client, with a session of 2025-11-25. Argument: the URL."""

import sys

import anyio
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client

import steps


class Legacy:
    def __init__(self, session, version):
        self.session = session
        self.version = version
        self.ping = session.send_ping

    async def names(self):
        return {tool.name for tool in (await self.session.list_tools()).tools}

    async def call(self, name, arguments, progress=None):
        result = await self.session.call_tool(name, arguments, progress_callback=progress)
        return steps.outcome(result, result.isError)

    async def cancel_slow(self):
        """Calls `slow` and, once it runs, sends the cancellation that this SDK leaves to its user."""
        request = self.session._request_id
        with anyio.CancelScope() as scope:

            async def started(value, total, message):
                params = types.CancelledNotificationParams(requestId=request, reason="enough")
                notification = types.CancelledNotification(params=params)
                await self.session.send_notification(types.ClientNotification(notification))
                scope.cancel()

            await self.session.call_tool("slow", {}, progress_callback=started)


async def main(url):
    report = steps.Report()
    try:
        async with (
            streamable_http_client(url) as (reader, writer, _),
            ClientSession(reader, writer) as session,
        ):
            version = (await session.initialize()).protocolVersion
            await steps.run(report, Legacy(session, version))
    finally:
        report.print()


anyio.run(main, sys.argv[1])
