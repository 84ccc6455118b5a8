"""An agent: an MCP client of either era, as small as it can be."""

import http.client
import json
import ssl
import typing
import urllib.parse

MODERN, LEGACY = "2026-07-28", "2025-11-25"
URL_REQUIRED = -32042


class Answer(typing.NamedTuple):
    """What a request came to: a result, or an error, beside the status."""

    status: int
    result: dict
    error: dict

    def text(self):
        """The text of a tool's result, or the error's message."""
        if self.error:
            return f"{self.error.get('code')}: {self.error.get('message')}"
        return "\n".join(block.get("text", "") for block in self.result.get("content", []))

    def is_good(self):
        """Whether a tool did what it should."""
        return bool(self.result) and not self.result.get("isError") and self.result.get("resultType") != "input_required"

    def __str__(self):
        return f"{self.status} {self.text()[:600]}"


class Agent:
    """A client of one server at `url`.

    `key` is its agent key, `revision` what it speaks, `opens` whether it opens URLs for people, `trust` a root of its own.
    """

    def __init__(self, url, key=None, revision=MODERN, opens=False, trust=None):
        self.parts = urllib.parse.urlsplit(url)
        self.trust = trust
        self.key = key
        self.revision = revision
        self.capabilities = {"elicitation": {"form": {}, "url": {}}} if opens else {}
        self.session = None
        self.number = 0
        self.bodies = []

    def open(self):
        """Opens a session, which only revisions before 2026-07-28 have."""
        if self.revision != LEGACY:
            return
        info = {"name": "test-agent", "version": "1.0.0"}
        params = {"protocolVersion": LEGACY, "capabilities": self.capabilities, "clientInfo": info}
        answer = self.request("initialize", params)
        if answer.error or answer.status != 200:
            raise AssertionError(f"no session: {answer}")
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def tools(self):
        """The names of the tools."""
        return [tool["name"] for tool in self.request("tools/list", {}).result.get("tools", [])]

    def call(self, tool, **arguments):
        """Calls a tool."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def request(self, method, params):
        self.number += 1
        if self.revision == MODERN:
            meta = {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "test-agent", "version": "1.0.0"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            }
            params = {**params, "_meta": meta}
        return self.send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})

    def send(self, message):
        """Posts a message; gives the Answer, which is empty for a notification."""
        connection = connection_to(self.parts, self.trust, 60)
        try:
            connection.request("POST", self.parts.path, json.dumps(message), self.headers(message))
            reply = connection.getresponse()
            self.session = reply.headers.get("Mcp-Session-Id") or self.session
            body = reply.read().decode()
        finally:
            connection.close()
        self.bodies.append(body)
        for found in messages(reply.headers.get_content_type(), body):
            if found.get("id") == message.get("id") and ("result" in found or "error" in found):
                return Answer(reply.status, found.get("result", {}), found.get("error", {}))
        error = {} if reply.status == 202 else {"code": reply.status, "message": body}
        return Answer(reply.status, {}, error)

    def headers(self, message):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if self.revision == MODERN:
            headers |= {"MCP-Protocol-Version": MODERN, "Mcp-Method": message["method"]}
            if "name" in message.get("params", {}):
                headers["Mcp-Name"] = message["params"]["name"]
        elif self.session:
            headers |= {"MCP-Protocol-Version": LEGACY, "Mcp-Session-Id": self.session}
        return headers


def connection_to(parts, trust, seconds):
    """A connection for the parts of a URL; over TLS, only the root `trust` counts."""
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=trust)
        return http.client.HTTPSConnection(parts.hostname, parts.port, timeout=seconds, context=context)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=seconds)


def messages(kind, body):
    """The messages of an answer: one JSON object, or a stream of events."""
    if kind == "text/event-stream":
        events = body.replace("\r\n", "\n").split("\n\n")
        texts = ["\n".join(line[5:].strip() for line in event.split("\n") if line.startswith("data:")) for event in events]
    else:
        texts = [body]
    for text in texts:
        try:
            message = json.loads(text)
        except json.JSONDecodeError:
            continue
        if isinstance(message, dict):
            yield message


def link(answer, public_url):
    """The link that an answer wants a person to open, or None: at the end of a text, or a URL to be opened."""
    found = json.dumps([answer.result, answer.error])
    begin = found.find(f"{public_url}/")
    if begin < 0:
        return None
    end = begin
    while end < len(found) and found[end] not in '"\\ <>)\n`':
        end += 1
    return found[begin:end].rstrip(".,;")
