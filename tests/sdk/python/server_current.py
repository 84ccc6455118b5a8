"""A server of the Python SDK's current major: both eras on one endpoint. Argument: the port."""

import sys

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError

import tools

server = MCPServer("sdk-python-current")
tools.register(server, Context, ToolError)
server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
