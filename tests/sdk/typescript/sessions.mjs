// Sessions of 2025-11-25 over Streamable HTTP, with the transport of either major of the SDK.

import { randomUUID } from 'node:crypto';

/** Gives a handler for `(req, res)` that opens, finds and ends sessions. */
export function sessions(Transport, connect) {
    const open = new Map();
    return async (req, res) => {
        const id = req.headers['mcp-session-id'];
        if (id !== undefined && !open.has(id)) {
            res.writeHead(404).end();
            return;
        }
        let transport = open.get(id);
        if (transport === undefined) {
            transport = new Transport({
                sessionIdGenerator: () => randomUUID(),
                onsessioninitialized: opened => void open.set(opened, transport),
                onsessionclosed: closed => void open.delete(closed)
            });
            await connect(transport);
        }
        await transport.handleRequest(req, res);
    };
}
