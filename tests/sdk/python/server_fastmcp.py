"""A server of the fastmcp library: both eras on one endpoint. Argument: the port."""

import sys

import mcp_types as types
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from pydantic import BaseModel

import tools

server = FastMCP("fastmcp")


class Caller(BaseModel):
    name: str


def asking(request):
    """In the newest revision, a call that needs `request` answered ends with it, and is made again."""
    return types.InputRequiredResult(input_requests={"wanted": request})


def is_modern(context):
    return context.request_context.protocol_version >= "2026-07-28"


@server.tool(description="asks who is there", output_schema=None)
async def ask(context: Context):
    if not is_modern(context):
        answer = await context.elicit("Who is there?", Caller)
        return f"hello {answer.data.name}" if answer.action == "accept" else answer.action
    if not context.input_responses:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        params = types.ElicitRequestFormParams(message="Who is there?", requested_schema=schema)
        return asking(types.ElicitRequest(params=params))
    answer = context.input_responses["wanted"]
    return f"hello {answer.content['name']}" if answer.action == "accept" else answer.action


@server.tool(description="asks the caller to sign in elsewhere", output_schema=None)
async def visit(context: Context):
    if not is_modern(context):
        session, related = context.session, context.request_id
        answer = await session.elicit_url("Sign in there.", tools.SIGN_IN, "sign-in-1", related_request_id=related)
    elif not context.input_responses:
        params = types.ElicitRequestURLParams(message="Sign in there.", url=tools.SIGN_IN)
        return asking(types.ElicitRequest(params=params))
    else:
        answer = context.input_responses["wanted"]
    return answer.action


@server.tool(description="asks the caller's model for a poem", output_schema=None)
async def sample(context: Context):
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="a haiku"))
    if not is_modern(context):
        related = context.request_id
        result = await context.session.create_message([message], max_tokens=50, related_request_id=related)
    elif not context.input_responses:
        params = types.CreateMessageRequestParams(messages=[message], max_tokens=50)
        return asking(types.CreateMessageRequest(params=params))
    else:
        result = context.input_responses["wanted"]
    return f"{result.model}: {result.content.text}"


@server.tool(description="asks for the caller's roots", output_schema=None)
async def roots(context: Context):
    if not is_modern(context):
        result = await context.session.list_roots()
    elif not context.input_responses:
        return asking(types.ListRootsRequest())
    else:
        result = context.input_responses["wanted"]
    return ", ".join(str(root.uri) for root in result.roots)


@server.completion
async def complete(reference, argument, context):
    return tools.candidates(argument.value)


async def changed(context):
    await context.session.send_tool_list_changed()


async def touched(context, uri):
    await context.session.send_resource_updated(uri)


tools.register(server, Context, ToolError, changed, touched)
server.run("http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
