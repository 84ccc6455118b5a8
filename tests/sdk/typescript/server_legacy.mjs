// A server of the TypeScript SDK's version 1: sessions of 2025-11-25. Argument: the port.

import { createServer } from 'node:http';

import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';

import { sessions } from './sessions.mjs';
import { register, reporter } from './tools.mjs';

function build() {
    const server = new McpServer({ name: 'sdk-typescript-legacy', version: '1.0.0' });
    register(server, ({ signal, _meta, sendNotification }) => ({
        signal,
        progress: reporter(_meta, sendNotification)
    }));
    return server;
}

createServer(
    sessions(StreamableHTTPServerTransport, transport => build().connect(transport))
).listen(Number(process.argv[2]), '127.0.0.1');
