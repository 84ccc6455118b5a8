// What every TypeScript server of the matrix offers; the clients know it by these names.
//
// Both majors of the SDK take the same registrations. They differ in how a tool asks its caller for
// something and tells of a change: that is in the servers themselves, and `register` takes it.

import { z } from 'zod';

let cancelledCalls = 0;

/**
 * Adds tools, resources and prompts to a server.
 *
 * `sdk` has the SDK's `ResourceTemplate` and `completable`. `contextOf` turns what the SDK hands a
 * tool into `{ signal, progress(value, total), warn(data), ask(), visit(), sample(), roots(),
 * changed(), touched(uri) }`; the four that ask give the tool's text, or a whole result.
 */
export function register(server, { ResourceTemplate, completable }, contextOf) {
    const tool = (name, description, inputSchema, run) =>
        server.registerTool(name, { description, inputSchema: z.object(inputSchema) }, async (args, given) => {
            const result = await run(args, contextOf(given));
            return typeof result === 'string' ? { content: [{ type: 'text', text: result }] } : result;
        });

    tool('echo', 'returns its argument', { text: z.string() }, async ({ text }) => text);

    tool('measure', 'returns a structured result', { town: z.string() }, async ({ town }) => ({
        content: [{ type: 'text', text: `12 degrees in ${town}` }],
        structuredContent: { town, degrees: 12 }
    }));

    const towns = z.array(z.object({ town: z.string(), degrees: z.number().int() }));
    const survey = {
        description: 'returns as many towns as are asked for, under a schema',
        inputSchema: z.object({ count: z.number().int() }),
        outputSchema: z.object({ towns })
    };
    server.registerTool('survey', survey, async ({ count }) => ({
        content: [{ type: 'text', text: `${count} towns` }],
        structuredContent: { towns: Array.from({ length: count }, (_, n) => ({ town: `town ${n}`, degrees: n })) }
    }));

    tool('count', 'reports progress n times', { n: z.number().int() }, async ({ n }, context) => {
        for (let step = 1; step <= n; step++) {
            await context.progress(step, n);
        }
        return `counted to ${n}`;
    });

    tool('fail', 'always fails', {}, async () => {
        throw new Error('refused on purpose');
    });

    tool('slow', 'reports progress once, then waits to be cancelled', {}, async (_, context) => {
        await context.progress(1, 2);
        await cancellation(context.signal, 30_000);
        return 'never cancelled';
    });

    tool('cancelled', 'tells how many slow calls were cancelled', {}, async () => String(cancelledCalls));

    tool('warn', "writes a warning to the caller's log", {}, async (_, context) => {
        await context.warn('low water');
        return 'warned';
    });

    tool('ask', 'asks who is there', {}, async (_, context) => context.ask());
    tool('visit', 'asks the caller to sign in elsewhere', {}, async (_, context) => context.visit());
    tool('sample', "asks the caller's model for a poem", {}, async (_, context) => context.sample());
    tool('roots', "asks for the caller's roots", {}, async (_, context) => context.roots());

    tool('change', 'tells that the list of tools changed', {}, async (_, context) => {
        await context.changed();
        return 'changed';
    });

    tool('touch', 'tells that a resource changed', { uri: z.string() }, async ({ uri }, context) => {
        await context.touched(uri);
        return 'touched';
    });

    const plain = { mimeType: 'text/plain' };
    server.registerResource('note', 'test://note', plain, async uri => ({
        contents: [{ uri: uri.href, ...plain, text: 'a nöte' }]
    }));
    server.registerResource('bytes', 'test://bytes', { mimeType: 'application/octet-stream' }, async uri => ({
        contents: [{ uri: uri.href, mimeType: 'application/octet-stream', blob: 'AAH+/w==' }]
    }));
    const item = new ResourceTemplate('test://item/{number}', { list: undefined, complete: { number: candidates } });
    server.registerResource('item', item, plain, async (uri, { number }) => ({
        contents: [{ uri: uri.href, ...plain, text: `item ${number}` }]
    }));

    const argsSchema = { name: completable(z.string(), candidates) };
    server.registerPrompt('greet', { description: 'greets somebody', argsSchema }, ({ name }) => ({
        messages: [{ role: 'user', content: { type: 'text', text: `Greet ${name}.` } }]
    }));
}

/** What the servers ask their callers. */
export const WHO = {
    message: 'Who is there?',
    requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
};
export const SIGN_IN = { message: 'Sign in there.', url: 'https://example.com/sign-in' };
export const POEM = {
    messages: [{ role: 'user', content: { type: 'text', text: 'a haiku' } }],
    maxTokens: 50
};

/** What the tools make of the answers. */
export const told = {
    ask: ({ action, content }) => (action === 'accept' ? `hello ${content.name}` : action),
    visit: ({ action }) => action,
    sample: ({ model, content }) => `${model}: ${content.text}`,
    roots: ({ roots }) => roots.map(root => root.uri).join(', ')
};

/** Completions of the prompt's `name` and of the template's `number`. */
function candidates(value) {
    return ['Ada', 'Adele', 'Grace', '7', '77'].filter(name => name.startsWith(value));
}

function cancellation(signal, milliseconds) {
    return new Promise((resolve, reject) => {
        const timer = setTimeout(resolve, milliseconds);
        const stop = () => {
            clearTimeout(timer);
            cancelledCalls += 1;
            reject(new Error('cancelled'));
        };
        if (signal.aborted) {
            stop();
        } else {
            signal.addEventListener('abort', stop, { once: true });
        }
    });
}

/** Sends `notifications/progress` where the request asked for it. */
export function reporter(meta, notify) {
    return async (progress, total) => {
        const progressToken = meta?.progressToken;
        if (progressToken !== undefined) {
            await notify({ method: 'notifications/progress', params: { progressToken, progress, total } });
        }
    };
}
