"""The Python SDK's current major as a client, in the era that it negotiates. Arguments: see steps.py."""

import contextlib
import sys
from urllib.parse import urljoin

import anyio
from mcp import Client, types
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated, ToolsListChanged
from pydantic import TypeAdapter

import steps

LOG_LEVEL = "io.modelcontextprotocol/logLevel"
REFERENCE = TypeAdapter(types.PromptReference | types.ResourceTemplateReference)


class Current:
    def __init__(self, url, client, user):
        self.url = url
        self.client = client
        self.user = user
        self.version = client.protocol_version
        self.is_modern = self.version >= "2026-07-28"
        self.capabilities = client.server_capabilities
        self.ping = client.send_ping
        self.tell_roots_changed = client.send_roots_list_changed

    @contextlib.asynccontextmanager
    async def at(self, endpoint):
        """A client of another endpoint of the same host."""
        url = urljoin(self.url, endpoint)
        async with Client(url) as client:
            yield Current(url, client, self.user)

    async def tools(self):
        return (await self.client.list_tools()).tools

    async def resources(self):
        return [str(resource.uri) for resource in (await self.client.list_resources()).resources]

    async def templates(self):
        listed = await self.client.list_resource_templates()
        return [template.uri_template for template in listed.resource_templates]

    async def read(self, uri):
        return (await self.client.read_resource(uri)).contents

    async def prompts(self):
        return [prompt.name for prompt in (await self.client.list_prompts()).prompts]

    async def prompt(self, name, arguments):
        return (await self.client.get_prompt(name, arguments)).messages

    async def complete(self, ref, argument):
        reference = REFERENCE.validate_python(ref)
        return (await self.client.complete(reference, argument)).completion.values

    async def call(self, name, arguments, progress=None, meta=None):
        return await self.client.call_tool(name, arguments, progress_callback=progress, meta=meta)

    async def call_logged(self, level, name, arguments):
        if self.is_modern:
            await self.call(name, arguments, meta={LOG_LEVEL: level})
        else:
            await self.client.set_logging_level(level)
            await self.call(name, arguments)

    @contextlib.asynccontextmanager
    async def subscribed(self, uri):
        if self.is_modern:
            async with self.listening(resource_subscriptions=[uri]):
                yield
        else:
            await self.client.subscribe_resource(uri)
            yield
            await self.client.unsubscribe_resource(uri)

    @contextlib.asynccontextmanager
    async def watching(self, kind):
        if self.is_modern:
            async with self.listening(**{f"{kind}_list_changed": True}):
                yield
        else:
            yield

    @contextlib.asynccontextmanager
    async def listening(self, **wanted):
        async with self.client.listen(**wanted) as subscription, anyio.create_task_group() as tasks:

            async def pass_on():
                async for event in subscription:
                    match event:
                        case ResourceUpdated(uri=uri):
                            self.user.tell("updated", uri)
                        case ToolsListChanged():
                            self.user.tell("changed", "tools")
                        case ResourcesListChanged():
                            self.user.tell("changed", "resources")

            tasks.start_soon(pass_on)
            yield
            tasks.cancel_scope.cancel()

    async def cancel(self, tool):
        """Calls the tool and, once it runs, gives the call up."""
        with anyio.CancelScope() as scope:

            async def started(value, total, message):
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
        # What a subscription of the newest revision brings comes through `listening` instead.
        match message:
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
    async with Client(url, **callbacks) as connected:
        await report.run(Current(url, connected, user), user)


steps.main(client, sys.argv[1:])
