"""The parts by themselves, without Tollgate: a client that does by hand what Tollgate does.

What fails here is not Tollgate's fault.
"""

import base64
import hashlib
import http.client
import json
import secrets
import urllib.parse

from browser import Browser

REDIRECT = "http://127.0.0.1:1/oauth/callback"


def post(url, body, headers=()):
    """Posts a form, or JSON where `body` is text; gives status, header fields and what the JSON of the answer says."""
    parts = urllib.parse.urlsplit(url)
    is_form = isinstance(body, dict)
    kind = "application/x-www-form-urlencoded" if is_form else "application/json"
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=15)
    try:
        text = urllib.parse.urlencode(body) if is_form else body
        connection.request("POST", parts.path, text, {"Content-Type": kind, **dict(headers)})
        answer = connection.getresponse()
        content = answer.read().decode()
    finally:
        connection.close()
    try:
        return answer.status, answer.headers, json.loads(content)
    except json.JSONDecodeError:
        return answer.status, answer.headers, content


def call(server, token, tool="who"):
    """Calls a tool of the server; gives status and header fields."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "direct", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": tool, "arguments": {}, "_meta": meta}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": tool,
        **({"Authorization": f"Bearer {token}"} if token else {}),
    }
    return post(server.url, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}), headers)


class Client:
    """A public client of a provider."""

    def __init__(self, provider):
        self.metadata = json.loads(Browser().get(provider.metadata).text)
        wanted = {
            "redirect_uris": [REDIRECT],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
        }
        status, _, answer = post(self.metadata["registration_endpoint"], json.dumps(wanted))
        assert status == 201, answer
        self.id = answer["client_id"]

    def code(self, resource, scope):
        """Walks through the provider; gives the answer's parameters and the verifier."""
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": REDIRECT,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": "the-state",
            "scope": scope,
            "resource": resource,
        }
        browser = Browser()
        browser.stop = REDIRECT
        url = browser.get(f"{self.metadata['authorization_endpoint']}?{urllib.parse.urlencode(query)}").url
        return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query)), verifier

    def token(self, **body):
        return post(self.metadata["token_endpoint"], {"client_id": self.id, **body})[::2]


def prove(provider, server):
    """Plays the whole of it."""
    status, headers, _ = call(server, None)
    challenge = headers["WWW-Authenticate"]
    assert status == 401 and "/.well-known/oauth-protected-resource/mcp" in challenge, (status, challenge)
    client = Client(provider)
    answer, verifier = client.code(server.url, "mcp:read")
    assert answer["iss"] == provider.issuer and answer["state"] == "the-state", answer
    exchange = {
        "grant_type": "authorization_code",
        "code": answer["code"],
        "code_verifier": verifier,
        "redirect_uri": REDIRECT,
        "resource": server.url,
    }
    status, tokens = client.token(**exchange)
    assert status == 200, tokens
    status, _, result = call(server, tokens["access_token"])
    assert status == 200 and "the token of ann" in json.dumps(result), result
    status, headers, _ = call(server, tokens["access_token"], "manage")
    assert status == 403 and 'scope="mcp:manage"' in headers["WWW-Authenticate"], headers["WWW-Authenticate"]
    assert 'error="insufficient_scope"' in headers["WWW-Authenticate"]
    refresh = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"]}
    status, fresh = client.token(**refresh)
    assert status == 200 and fresh["refresh_token"] != tokens["refresh_token"], fresh
    status, denied = client.token(**refresh)
    assert status == 400 and denied["error"] == "invalid_grant", denied
    status, dead = client.token(grant_type="refresh_token", refresh_token=fresh["refresh_token"])
    assert status == 400 and dead["error"] == "invalid_grant", dead
    assert call(server, tokens["access_token"] + "x")[0] == 401
