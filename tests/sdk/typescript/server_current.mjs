// A server of the TypeScript SDK's current major: both eras on one endpoint. Argument: the port.

import { createServer } from 'node:http';

import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import {
    McpServer,
    ResourceTemplate,
    completable,
    createMcpHandler,
    inputRequired
} from '@modelcontextprotocol/server';

import { sessions } from './sessions.mjs';
import { POEM, SIGN_IN, WHO, register, reporter, told } from './tools.mjs';

function build() {
    const capabilities = {
        logging: {},
        resources: { subscribe: true, listChanged: true },
        tools: { listChanged: true }
    };
    const mcp = new McpServer({ name: 'sdk-typescript-current', version: '1.0.0' }, { capabilities });
    const subscribed = new Set();
    mcp.server.setRequestHandler('resources/subscribe', ({ params }) => (subscribed.add(params.uri), {}));
    mcp.server.setRequestHandler('resources/unsubscribe', ({ params }) => (subscribed.delete(params.uri), {}));
    register(mcp, { ResourceTemplate, completable }, ({ mcpReq }) => {
        // Where a session is open, the SDK sends what is required as requests and calls the tool again.
        const requires = (request, tell) => {
            const answer = mcpReq.inputResponses?.wanted;
            const state = { inputRequests: { wanted: request }, requestState: 'asked once' };
            return answer === undefined ? inputRequired(state) : tell(answer);
        };
        return {
            signal: mcpReq.signal,
            progress: reporter(mcpReq._meta, message => mcpReq.notify(message)),
            warn: data => mcpReq.log('warning', data, 'gauge'),
            ask: () => requires(inputRequired.elicit(WHO), told.ask),
            visit: () => requires(inputRequired.elicitUrl(SIGN_IN), told.visit),
            sample: () => requires(inputRequired.createMessage(POEM), told.sample),
            roots: () => requires(inputRequired.listRoots(), told.roots),
            changed: () => {
                handler.notify.toolsChanged();
                mcp.sendToolListChanged();
            },
            touched: async uri => {
                handler.notify.resourceUpdated(uri);
                if (subscribed.has(uri)) {
                    await mcp.server.sendResourceUpdated({ uri });
                }
            }
        };
    });
    return mcp;
}

const handler = createMcpHandler(build, { legacy: 'reject' });
const modern = toNodeHandler(handler);
const legacy = sessions(NodeStreamableHTTPServerTransport, transport => build().connect(transport));

createServer((req, res) => {
    const isModern = (req.headers['mcp-protocol-version'] ?? '') >= '2026-07-28';
    return isModern ? modern(req, res) : legacy(req, res);
}).listen(Number(process.argv[2]), '127.0.0.1');
