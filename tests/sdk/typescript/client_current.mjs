// The TypeScript SDK's current major as a client, in the era that it negotiates. Arguments: see steps.mjs.

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { CAPABILITIES, run } from './steps.mjs';

const NAME = { name: 'sdk-typescript-current', version: '1.0.0' };
const LOG_LEVEL = 'io.modelcontextprotocol/logLevel';

await run(async (url, user) => {
    const client = new Client(NAME, { capabilities: CAPABILITIES, versionNegotiation: { mode: 'auto' } });
    client.setRequestHandler('elicitation/create', user.elicit);
    client.setRequestHandler('sampling/createMessage', user.sample);
    client.setRequestHandler('roots/list', user.roots);
    client.setNotificationHandler('notifications/message', user.log);
    client.setNotificationHandler('notifications/resources/updated', user.updated);
    client.setNotificationHandler('notifications/tools/list_changed', () => user.changed('tools'));
    client.setNotificationHandler('notifications/resources/list_changed', () => user.changed('resources'));
    await client.connect(new StreamableHTTPClientTransport(url));
    const version = client.getNegotiatedProtocolVersion();
    const call = (params, options) => client.callTool(params, options);
    const at = async endpoint => {
        const other = new Client(NAME, { versionNegotiation: { mode: 'auto' } });
        await other.connect(new StreamableHTTPClientTransport(new URL(endpoint, url)));
        return params => other.callTool(params);
    };
    const listening = async filter => {
        const subscription = await client.listen(filter);
        return () => subscription.close();
    };
    return { client, version, call, at, ...(version >= '2026-07-28' ? modern(call, listening) : legacy(client, call)) };
});

function modern(call, listening) {
    return {
        log: (level, params) => call({ ...params, _meta: { [LOG_LEVEL]: level } }),
        subscribed: uri => listening({ resourceSubscriptions: [uri] }),
        watching: kind => listening({ [`${kind}ListChanged`]: true })
    };
}

function legacy(client, call) {
    return {
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
}
