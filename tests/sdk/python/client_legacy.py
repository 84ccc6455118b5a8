"""The Python SDK's version 1 as a client, with a session of 2025-11-25. Arguments: see steps.py."""

import contextlib
import sys
from urllib.parse import urljoin

import anyio
from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client
from pydantic import TypeAdapter

import steps

REFERENCE = TypeAdapter(types.PromptReference | types.ResourceTemplateReference)


class Legacy:
    def __init__(self, url, session, version):
        self.url = url
        self.session = session
        self.version = version
        self.capabilities = session.get_server_capabilities()
        self.ping = session.send_ping
        self.tell_roots_changed = session.send_roots_list_changed

    @contextlib.asynccontextmanager
    async def at(self, endpoint):
        """A client of another endpoint of the same host."""
        url = urljoin(self.url, endpoint)
        async with streamable_http_client(url) as (reader, writer, _), ClientSession(reader, writer) as session:
            yield Legacy(url, session, (await session.initialize()).protocolVersion)

    async def tools(self):
        return (await self.session.list_tools()).tools

    async def resources(self):
        return [str(resource.uri) for resource in (await self.session.list_resources()).resources]

    async def templates(self):
        listed = await self.session.list_resource_templates()
        return [template.uriTemplate for template in listed.resourceTemplates]

    async def read(self, uri):
        return (await self.session.read_resource(uri)).contents

    async def prompts(self):
        return [prompt.name for prompt in (await self.session.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.session.get_prompt(name, arguments)).messages

    async def complete(self, ref, argument):
        reference = REFERENCE.validate_python(ref)
        return (await self.session.complete(reference, argument)).completion.values

    async def call(self, name, arguments, progress=None):
        return await self.session.call_tool(name, arguments, progress_callback=progress)

    async def call_logged(self, level, name, arguments):
        await self.session.set_logging_level(level)
        await self.call(name, arguments)

    @contextlib.asynccontextmanager
    async def subscribed(self, uri):
        await self.session.subscribe_resource(uri)
        yield
        await self.session.unsubscribe_resource(uri)

    @contextlib.asynccontextmanager
    async def watching(self, kind):
        yield

    async def cancel(self, tool):
        """Calls the tool and, once it runs, sends the cancellation that this SDK leaves to its user."""
        request = self.session._request_id
        with anyio.CancelScope() as scope:

            async def started(value, total, message):
                params = types.CancelledNotificationParams(requestId=request, reason="enough")
                notification = types.CancelledNotification(params=params)
                await self.session.send_notification(types.ClientNotification(notification))
                scope.cancel()

            await self.call(tool, {}, started)


async def client(url, report):
    user = steps.User()

    async def elicit(context, params):
        return types.ElicitResult.model_validate(user.reply(params.message))

    async def sample(context, params):
        return types.CreateMessageResult.model_validate(steps.POEM)

    async def roots(context):
        return types.ListRootsResult.model_validate({"roots": user.open})

    async def log(params):
        user.tell("log", params.data)

    async def message(message):
        match getattr(message, "root", None):
            case types.ResourceUpdatedNotification(params=params):
                user.tell("updated", str(params.uri))
            case types.ToolListChangedNotification():
                user.tell("changed", "tools")
            case types.ResourceListChangedNotification():
                user.tell("changed", "resources")

    callbacks = {
        "elicitation_callback": elicit,
        "sampling_callback": sample,
        "list_roots_callback": roots,
        "logging_callback": log,
        "message_handler": message,
    }
    async with (
        streamable_http_client(url) as (reader, writer, _),
        ClientSession(reader, writer, **callbacks) as session,
    ):
        version = (await session.initialize()).protocolVersion
        await report.run(Legacy(url, session, version), user)


steps.main(client, sys.argv[1:])
