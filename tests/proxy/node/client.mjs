// Node's own `fetch`, undici, and Node's HTTP/2, as clients. Arguments: which, and a JSON object; see steps.py
// beside the Python clients.

import { createHash } from 'node:crypto';
import http from 'node:http';
import http2 from 'node:http2';
import { readFileSync } from 'node:fs';
import tls from 'node:tls';

import * as undici from 'undici';
import * as undici6 from 'undici-6';

const [, , which, argument] = process.argv;
const job = JSON.parse(argument);
const ca = readFileSync(job.ca);
const url = new URL(job.proxy);
// undici sends no credential of a URL whose user name is empty.
const basic = `Basic ${Buffer.from(`${url.username}:${url.password}`).toString('base64')}`;
const agent = (library, options = {}) =>
    new library.ProxyAgent({ uri: url.origin, token: basic, requestTls: { ca }, ...options });

const UPLOAD = Buffer.concat(Array(16384).fill(Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))));
const WORD = 'tollgate';

function fetched(fetch) {
    const ask = async (target, options) => {
        const response = await fetch(target, { signal: AbortSignal.timeout(20_000), ...options });
        return [response.status, Buffer.from(await response.arrayBuffer())];
    };
    return { get: target => ask(target), post: target => ask(target, { method: 'POST', body: UPLOAD }) };
}

function requested(dispatcher) {
    const ask = async (target, options) => {
        const response = await undici.request(target, { dispatcher, ...options });
        return [response.statusCode, Buffer.from(await response.body.arrayBuffer())];
    };
    return { get: target => ask(target), post: target => ask(target, { method: 'POST', body: UPLOAD }) };
}

function spoken(dispatcher) {
    const socket = target =>
        new Promise((resolve, reject) => {
            const open = new undici.WebSocket(target, { dispatcher });
            open.onopen = () => open.send(WORD);
            open.onmessage = message => {
                resolve([101, Buffer.from(message.data)]);
                open.close();
            };
            open.onerror = event => reject(event.error ?? new Error(event.message));
        });
    return { socket };
}

// HTTP/2 inside of a tunnel, all by hand.
const multiplexed = {
    async get(target) {
        const { hostname, port, pathname } = new URL(target);
        const authority = `${hostname}:${port || 443}`;
        const tunnel = await new Promise((resolve, reject) => {
            const headers = { 'Proxy-Authorization': basic, Host: authority };
            const { hostname: host, port } = url;
            const request = http.request({ host, port, method: 'CONNECT', path: authority, headers });
            request.on('connect', ({ statusCode, statusMessage }, socket) =>
                statusCode === 200 ? resolve(socket) : reject(new Error(`CONNECT: ${statusCode} ${statusMessage}`))
            );
            request.on('error', reject);
            request.end();
        });
        const secure = tls.connect({ socket: tunnel, servername: hostname, ca, ALPNProtocols: ['h2'] });
        const session = http2.connect(target, { createConnection: () => secure });
        try {
            return await new Promise((resolve, reject) => {
                const chunks = [];
                let status;
                session.on('error', reject);
                const stream = session.request({ ':path': pathname });
                stream.on('response', headers => (status = headers[':status']));
                stream.on('data', chunk => chunks.push(chunk));
                stream.on('end', () => resolve([status, Buffer.concat(chunks)]));
                stream.on('error', reject);
            });
        } finally {
            session.close();
        }
    }
};

// undici opens tunnels for plain requests, too, unless it is told not to.
const plainly = agent(undici, { proxyTunnel: false });

const CLIENTS = {
    // Node 20's own fetch, given the undici that it has inside.
    'node-fetch': () => {
        undici6.setGlobalDispatcher(agent(undici6));
        return fetched(fetch);
    },
    'undici-fetch': () => fetched((target, options) => undici.fetch(target, { dispatcher: plainly, ...options })),
    'undici-environment': () => {
        undici.setGlobalDispatcher(new undici.EnvHttpProxyAgent({ requestTls: { ca } }));
        return fetched(undici.fetch);
    },
    'undici-request': () => requested(plainly),
    'undici-websocket': () => spoken(agent(undici)),
    'node-http2': () => multiplexed
};

function told(status, body) {
    if (body.length <= 1000) {
        return { status, text: body.toString() };
    }
    return { status, text: `${body.length} ${createHash('sha256').update(body).digest('hex')}` };
}

function failed(error) {
    const said = [];
    for (let at = error; at; at = at.cause) {
        said.push(`${at.name}: ${at.message}`);
    }
    return { status: null, text: said.join(' / ') };
}

const client = CLIENTS[which]();
const done = {};
for (const [name, verb, target] of job.steps) {
    done[name] = await client[verb](target).then(answer => told(...answer), failed);
}
console.log(JSON.stringify(done));
process.exit(0);
