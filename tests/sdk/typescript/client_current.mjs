// The TypeScript SDK's current major as a client, in the era that it negotiates. Argument: the URL.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { outcome, run } from './steps.mjs';

await run(async () => {
    const client = new Client(
        { name: 'sdk-typescript-current', version: '1.0.0' },
        { versionNegotiation: { mode: 'auto' } }
    );
    await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
    const version = client.getNegotiatedProtocolVersion();
    return {
        version,
        names: async () => (await client.listTools()).tools.map(tool => tool.name),
        call: async (name, args, options) => outcome(await client.callTool({ name, arguments: args }, options)),
        // Ping ended with the sessions.
        ping: version < '2026-07-28' ? () => client.ping() : undefined
    };
});
