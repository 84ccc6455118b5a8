// The tools that every SDK server of the matrix offers; the clients know them by these names.

import { z } from 'zod';

let cancelledCalls = 0;

/**
 * Adds the tools to a server. `contextOf` turns what the SDK hands a tool into
 * `{ signal, progress(value, total) }`.
 */
export function register(server, contextOf) {
    const tool = (name, description, inputSchema, run) =>
        server.registerTool(name, { description, inputSchema: z.object(inputSchema) }, async (args, given) => ({
            content: [{ type: 'text', text: await run(args, contextOf(given)) }]
        }));

    tool('echo', 'returns its argument', { text: z.string() }, async ({ text }) => text);

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
