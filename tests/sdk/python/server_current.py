"""A server of the Python SDK's current major: both eras on one endpoint. Argument: the port."""

import sys
from functools import partial
from typing import Annotated

from mcp import types
from mcp.server import MCPServer, NotificationOptions
from mcp.server.elicitation import ElicitationResult
from mcp.server.mcpserver import Context, Elicit, ListRoots, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import BaseModel

import tools

server = MCPServer("sdk-python-current")
lowlevel = server._lowlevel_server
subscribed = set()


class Caller(BaseModel):
    name: str


# What a resolver returns is asked in a session's way or in input-required rounds, as the era has it.
def who() -> Elicit[Caller]:
    return Elicit("Who is there?", Caller)


def poem() -> Sample:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="a haiku"))
    return Sample([message], max_tokens=50)


def where() -> ListRoots:
    return ListRoots()


@server.tool(description="asks who is there")
async def ask(answer: Annotated[ElicitationResult[Caller], Resolve(who)]) -> str:
    return f"hello {answer.data.name}" if answer.action == "accept" else answer.action


@server.tool(description="asks the caller to sign in elsewhere", structured_output=False)
async def visit(context: Context) -> str | types.InputRequiredResult:
    # There is no resolver for this one.
    if context.protocol_version < "2026-07-28":
        return (await context.elicit_url("Sign in there.", tools.SIGN_IN, "sign-in-1")).action
    if not context.input_responses:
        params = types.ElicitRequestURLParams(message="Sign in there.", url=tools.SIGN_IN)
        return types.InputRequiredResult(
            input_requests={"wanted": types.ElicitRequest(params=params)}, request_state="asked once"
        )
    return context.input_responses["wanted"].action


@server.tool(description="asks the caller's model for a poem")
async def sample(result: Annotated[types.CreateMessageResult, Resolve(poem)]) -> str:
    return f"{result.model}: {result.content.text}"


@server.tool(description="asks for the caller's roots")
async def roots(result: Annotated[types.ListRootsResult, Resolve(where)]) -> str:
    return ", ".join(str(root.uri) for root in result.roots)


@server.completion()
async def complete(reference, argument, context):
    return types.Completion(values=tools.candidates(argument.value))


async def set_level(context, params):
    return types.EmptyResult()


async def subscribe(context, params):
    subscribed.add(str(params.uri))
    return types.EmptyResult()


async def unsubscribe(context, params):
    subscribed.discard(str(params.uri))
    return types.EmptyResult()


async def changed(context):
    await context.notify_tools_changed()
    await context.session.send_tool_list_changed()


async def touched(context, uri):
    await context.notify_resource_updated(uri)
    if uri in subscribed:
        await context.session.send_resource_updated(uri)


tools.register(server, Context, ToolError, changed, touched)
lowlevel.add_request_handler("logging/setLevel", types.SetLevelRequestParams, set_level)
lowlevel.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
lowlevel.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)
options = NotificationOptions(tools_changed=True)
lowlevel.create_initialization_options = partial(lowlevel.create_initialization_options, options)
server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
