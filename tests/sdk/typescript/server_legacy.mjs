// A server of the TypeScript SDK's version 1: sessions of 2025-11-25. Argument: the port.

import { createServer } from 'node:http';

import { completable } from '@modelcontextprotocol/sdk/server/completable.js';
import { McpServer, ResourceTemplate } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
    CreateMessageResultSchema,
    ElicitResultSchema,
    ListRootsResultSchema,
    SubscribeRequestSchema,
    UnsubscribeRequestSchema
} from '@modelcontextprotocol/sdk/types.js';

import { sessions } from './sessions.mjs';
import { POEM, SIGN_IN, WHO, register, reporter, told } from './tools.mjs';

function build() {
    const capabilities = { logging: {}, resources: { subscribe: true }, tools: { listChanged: true } };
    const mcp = new McpServer({ name: 'sdk-typescript-legacy', version: '1.0.0' }, { capabilities });
    const subscribed = new Set();
    mcp.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => (subscribed.add(params.uri), {}));
    mcp.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => (subscribed.delete(params.uri), {}));
    register(mcp, { ResourceTemplate, completable }, ({ signal, _meta, sendNotification, sendRequest }) => ({
        signal,
        progress: reporter(_meta, sendNotification),
        warn: data => {
            const params = { level: 'warning', logger: 'gauge', data };
            return sendNotification({ method: 'notifications/message', params });
        },
        ask: async () =>
            told.ask(await sendRequest({ method: 'elicitation/create', params: WHO }, ElicitResultSchema)),
        visit: async () => {
            const params = { ...SIGN_IN, mode: 'url', elicitationId: 'sign-in-1' };
            return told.visit(await sendRequest({ method: 'elicitation/create', params }, ElicitResultSchema));
        },
        sample: async () =>
            told.sample(
                await sendRequest({ method: 'sampling/createMessage', params: POEM }, CreateMessageResultSchema)
            ),
        roots: async () => told.roots(await sendRequest({ method: 'roots/list' }, ListRootsResultSchema)),
        changed: () => mcp.sendToolListChanged(),
        touched: async uri => subscribed.has(uri) && mcp.server.sendResourceUpdated({ uri })
    }));
    return mcp;
}

createServer(
    sessions(StreamableHTTPServerTransport, transport => build().connect(transport))
).listen(Number(process.argv[2]), '127.0.0.1');
