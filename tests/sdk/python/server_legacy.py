"""A server of the Python SDK's version 1: sessions of 2025-11-25. Argument: the port."""

import sys

from mcp.server.fastmcp import Context, FastMCP
from mcp.server.fastmcp.exceptions import ToolError

import tools

server = FastMCP("sdk-python-legacy", host="127.0.0.1", port=int(sys.argv[1]))
tools.register(server, Context, ToolError)
server.run("streamable-http")
