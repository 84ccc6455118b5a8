"""Python's HTTP libraries as clients. Arguments: the library, then see steps.py.

Each reads the proxy from the environment, as a program does that knows nothing of it.
"""

import asyncio
import json
import ssl
import sys

import aiohttp
import httpx
import requests
import websockets

from steps import UPLOAD, WORD, run


class Requests:
    def __init__(self, ca):
        self.session = requests.Session()
        self.session.verify = ca

    def get(self, url):
        response = self.session.get(url, timeout=20)
        return response.status_code, response.content

    def post(self, url):
        response = self.session.post(url, data=UPLOAD, timeout=20)
        return response.status_code, response.content


class Httpx:
    def __init__(self, ca, http2=False):
        context = ssl.create_default_context(cafile=ca)
        self.client = httpx.Client(verify=context, http2=http2, timeout=20)

    def get(self, url):
        response = self.client.get(url)
        return response.status_code, response.content

    def post(self, url):
        response = self.client.post(url, content=UPLOAD)
        return response.status_code, response.content


class Aiohttp:
    def __init__(self, ca):
        self.context = ssl.create_default_context(cafile=ca)

    def get(self, url):
        return asyncio.run(self.request("GET", url))

    def post(self, url):
        return asyncio.run(self.request("POST", url, data=UPLOAD))

    async def request(self, method, url, **options):
        async with (
            aiohttp.ClientSession(trust_env=True) as session,
            session.request(method, url, ssl=self.context, **options) as response,
        ):
            return response.status, await response.read()

    def socket(self, url):
        return asyncio.run(self.spoken(url))

    async def spoken(self, url):
        async with (
            aiohttp.ClientSession(trust_env=True) as session,
            session.ws_connect(url, ssl=self.context) as socket,
        ):
            await socket.send_str(WORD)
            return 101, (await socket.receive_str()).encode()


class Websockets:
    def __init__(self, ca):
        self.context = ssl.create_default_context(cafile=ca)

    def socket(self, url):
        return asyncio.run(self.spoken(url))

    async def spoken(self, url):
        tls = {"ssl": self.context} if url.startswith("wss:") else {}
        async with websockets.connect(url, open_timeout=20, **tls) as socket:
            await socket.send(WORD)
            return 101, (await socket.recv()).encode()


LIBRARIES = {
    "requests": Requests,
    "httpx": Httpx,
    "httpx-http2": lambda ca: Httpx(ca, http2=True),
    "aiohttp": Aiohttp,
    "websockets": Websockets,
}

if __name__ == "__main__":
    job = json.loads(sys.argv[2])
    run(LIBRARIES[sys.argv[1]](job["ca"]), job["steps"])
