"""A server of the Python SDK's version 1: sessions of 2025-11-25. Argument: the port."""

import sys
from functools import partial

from mcp import types
from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError
from mcp.server.lowlevel import NotificationOptions
from pydantic import BaseModel

import tools

server = FastMCP("sdk-python-legacy", host="127.0.0.1", port=int(sys.argv[1]))
lowlevel = server._mcp_server


class Caller(BaseModel):
    name: str


@server.tool(description="asks who is there")
async def ask(context: Context) -> str:
    answer = await context.elicit("Who is there?", Caller)
    return f"hello {answer.data.name}" if answer.action == "accept" else answer.action


@server.tool(description="asks the caller to sign in elsewhere")
async def visit(context: Context) -> str:
    return (await context.elicit_url("Sign in there.", tools.SIGN_IN, "sign-in-1")).action


@server.tool(description="asks the caller's model for a poem")
async def sample(context: Context) -> str:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="a haiku"))
    result = await context.session.create_message(
        [message], max_tokens=50, related_request_id=context.request_id
    )
    return f"{result.model}: {result.content.text}"


@server.tool(description="asks for the caller's roots")
async def roots(context: Context) -> str:
    result = await context.session.list_roots()
    return ", ".join(str(root.uri) for root in result.roots)


@server.completion()
async def complete(reference, argument, context):
    return types.Completion(values=tools.candidates(argument.value))


@lowlevel.set_logging_level()
async def set_level(level):
    pass


async def changed(context):
    await context.session.send_tool_list_changed()


async def touched(context, uri):
    await context.session.send_resource_updated(uri)


tools.register(server, Context, ToolError, changed, touched)
options = NotificationOptions(tools_changed=True)
lowlevel.create_initialization_options = partial(lowlevel.create_initialization_options, options)
server.run("streamable-http")
