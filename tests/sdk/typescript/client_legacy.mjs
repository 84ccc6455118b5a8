// The TypeScript SDK's version 1 as a client, with a session of 2025-11-25. Arguments: see steps.mjs.

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema,
    ResourceListChangedNotificationSchema,
    ResourceUpdatedNotificationSchema,
    ToolListChangedNotificationSchema
} from '@modelcontextprotocol/sdk/types.js';

import { CAPABILITIES, run } from './steps.mjs';

const NAME = { name: 'sdk-typescript-legacy', version: '1.0.0' };

await run(async (url, user) => {
    const client = new Client(NAME, { capabilities: CAPABILITIES });
    client.setRequestHandler(ElicitRequestSchema, user.elicit);
    client.setRequestHandler(CreateMessageRequestSchema, user.sample);
    client.setRequestHandler(ListRootsRequestSchema, user.roots);
    client.setNotificationHandler(LoggingMessageNotificationSchema, user.log);
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, user.updated);
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => user.changed('tools'));
    client.setNotificationHandler(ResourceListChangedNotificationSchema, () => user.changed('resources'));
    const transport = new StreamableHTTPClientTransport(url);
    await client.connect(transport);
    const call = (params, options) => client.callTool(params, undefined, options);
    return {
        client,
        version: transport.protocolVersion,
        call,
        at: async endpoint => {
            const other = new Client(NAME);
            await other.connect(new StreamableHTTPClientTransport(new URL(endpoint, url)));
            return params => other.callTool(params);
        },
        log: async (level, params) => {
            await client.setLoggingLevel(level);
            await call(params);
        },
        subscribed: async uri => {
            await client.subscribeResource({ uri });
            return () => client.unsubscribeResource({ uri });
        },
        // What changed comes without being asked for.
        watching: async () => async () => {}
    };
});
