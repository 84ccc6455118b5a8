// A server of the TypeScript SDK's current major: both eras on one endpoint. Argument: the port.

import { createServer } from 'node:http';

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { McpServer, createMcpHandler } from '@modelcontextprotocol/server';

import { sessions } from './sessions.mjs';
import { register, reporter } from './tools.mjs';

function build() {
    const server = new McpServer({ name: 'sdk-typescript-current', version: '1.0.0' });
    register(server, ({ mcpReq }) => ({
        signal: mcpReq.signal,
        progress: reporter(mcpReq._meta, message => mcpReq.notify(message))
    }));
    return server;
}

const modern = toNodeHandler(createMcpHandler(build, { legacy: 'reject' }));
const legacy = sessions(NodeStreamableHTTPServerTransport, transport => build().connect(transport));

createServer((req, res) => {
    const isModern = (req.headers['mcp-protocol-version'] ?? '') >= '2026-07-28';
    return isModern ? modern(req, res) : legacy(req, res);
}).listen(Number(process.argv[2]), '127.0.0.1');
