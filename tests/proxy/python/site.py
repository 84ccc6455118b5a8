"""A site with known answers, and a name server: what clients reach through the proxy.

Arguments: a folder for its certificates and repository, its address, the ports for TLS, plain HTTP, and plain HTTP
again, and the name server's. `GET /hello` says over what it was asked, `GET /bytes` is BYTES, `POST /digest` says what
it was given, `/echo` is a WebSocket, and `/git/notes.git` a repository.
"""

import asyncio
import hashlib
import os
import pathlib
import socket
import ssl
import sys

import trustme
from aiohttp import WSMsgType, web

BYTES = bytes(range(256)) * 4096
# `inside.test` leads to loopback, wherever the site is.
NAMES = ["files.test", "inside.test"]


async def hello(request):
    return web.Response(text=f"hello over {request.scheme} and HTTP/{request.version.major}")


async def given(request):
    """A large body is asked for first (`Expect: 100-continue`), which aiohttp answers before this runs."""
    digest, size = hashlib.sha256(), 0
    async for chunk in request.content.iter_chunked(1 << 16):
        digest.update(chunk)
        size += len(chunk)
    return web.Response(text=f"{size} {digest.hexdigest()}")


async def echo(request):
    response = web.WebSocketResponse()
    await response.prepare(request)
    async for message in response:
        if message.type == WSMsgType.TEXT:
            await response.send_str(message.data.upper())
    return response


class Repository:
    """Serves a folder of repositories as git does it behind a web server: `git http-backend` by CGI (RFC 3875)."""

    def __init__(self, root):
        self.root = root

    async def __call__(self, request):
        body = await request.read()
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
            "REQUEST_METHOD": request.method,
            "PATH_INFO": "/" + request.match_info["path"],
            "QUERY_STRING": request.query_string,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
        }
        if request.headers.get("Content-Encoding"):
            environment["HTTP_CONTENT_ENCODING"] = request.headers["Content-Encoding"]
        backend = await asyncio.create_subprocess_exec(
            "git", "http-backend", env=environment, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
        )
        output, _ = await backend.communicate(body)
        head, _, answer = output.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        status = int(headers.pop("Status", "200").split()[0])
        return web.Response(status=status, headers=headers, body=answer)


class Names(asyncio.DatagramProtocol):
    """Answers the addresses of NAMES, and that nothing else exists (RFC 1035, section 4.1)."""

    def __init__(self, address):
        self.addresses = dict(zip(NAMES, [address, "127.0.0.1"], strict=True))

    def connection_made(self, transport):
        self.transport = transport

    def datagram_received(self, data, peer):
        labels, at = [], 12
        while data[at]:
            labels.append(data[at + 1 : at + 1 + data[at]].decode().lower())
            at += 1 + data[at]
        question = data[12 : at + 5]
        known, is_a = self.addresses.get(".".join(labels)), question[-4:-2] == b"\0\1"
        answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4" + socket.inet_aton(known) if known and is_a else b""
        flags = b"\x81\x80" if known else b"\x81\x83"
        counts = b"\0\1" + (b"\0\1" if answer else b"\0\0") + b"\0\0\0\0"
        self.transport.sendto(data[:2] + flags + counts + question + answer, peer)


def certificates(folder):
    """Writes the authority, and a certificate with its key; gives what a TLS server needs."""
    authority = trustme.CA()
    certificate = authority.issue_cert(*NAMES)
    authority.cert_pem.write_to_path(folder / "ca.pem")
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "site.pem")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return context


async def main():
    folder = pathlib.Path(sys.argv[1])
    address, ports = sys.argv[2], sys.argv[3:]
    tls, plain, other, names = map(int, ports)
    application = web.Application(client_max_size=1 << 30)
    application.add_routes(
        [
            web.get("/hello", hello),
            web.get("/bytes", lambda _: answer(BYTES)),
            web.post("/digest", given),
            web.get("/echo", echo),
            web.route("*", "/git/{path:.*}", Repository(folder / "git")),
        ]
    )
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    context = certificates(folder)
    for port, ssl_context in [(tls, context), (plain, None), (other, None)]:
        await web.TCPSite(runner, address, port, ssl_context=ssl_context).start()
    loop = asyncio.get_running_loop()
    await loop.create_datagram_endpoint(lambda: Names(address), local_addr=(address, names))
    (folder / "ready").touch()
    await asyncio.Event().wait()


async def answer(body):
    return web.Response(body=body)


if __name__ == "__main__":
    asyncio.run(main())
