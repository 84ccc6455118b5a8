// The TypeScript SDK's version 1 as a client, with a session of 2025-11-25. Argument: the URL.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

import { outcome, run } from './steps.mjs';

await run(async () => {
    const client = new Client({ name: 'sdk-typescript-legacy', version: '1.0.0' });
    const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
    await client.connect(transport);
    return {
        version: transport.protocolVersion,
        names: async () => (await client.listTools()).tools.map(tool => tool.name),
        call: async (name, args, options) =>
            outcome(await client.callTool({ name, arguments: args }, undefined, options)),
        ping: () => client.ping()
    };
});
