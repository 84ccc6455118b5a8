// What every client of the matrix does, and how it reports: one line of JSON on standard output,
// {"version": "2026-07-28", "steps": {"list": "ok", "call": "what was wrong", …}}

import assert from 'node:assert/strict';

const TOOLS = ['cancelled', 'count', 'echo', 'fail', 'slow'];
const STEP_MILLISECONDS = 20_000;

/**
 * Connects and runs the steps. `connect()` gives `{ version, names, call, ping, cancelSlow }`,
 * without `ping` where the era has none.
 */
export async function run(connect) {
    const report = { version: null, steps: {} };
    const step = async (name, check) => {
        try {
            await Promise.race([check(), late()]);
            report.steps[name] = 'ok';
        } catch (fault) {
            console.error(fault);
            report.steps[name] = String(fault?.message ?? fault).replaceAll('\n', ' ');
        }
    };
    let client;
    await step('connect', async () => {
        client = await connect();
    });
    if (client !== undefined) {
        report.version = client.version;
        await steps(client, step);
    }
    console.log(JSON.stringify(report));
    process.exit();
}

async function steps(client, step) {
    await step('list', async () => assert.deepEqual((await client.names()).sort(), TOOLS));
    await step('call', async () => assert.deepEqual(await client.call('echo', { text: 'héllo' }), [false, 'héllo']));
    await step('progress', async () => {
        const seen = [];
        const note = ({ progress, total }) => seen.push([progress, total]);
        assert.deepEqual(await client.call('count', { n: 3 }, { onprogress: note }), [false, 'counted to 3']);
        assert.deepEqual(seen, [[1, 3], [2, 3], [3, 3]]);
    });
    await step('error', async () => {
        const [isError, text] = await client.call('fail', {});
        assert.equal(isError, true);
        assert.match(text, /refused on purpose/);
    });
    if (client.ping !== undefined) {
        await step('ping', client.ping);
    }
    await step('cancel', async () => {
        const before = await cancelled(client);
        await assert.rejects(cancelSlow(client));
        while ((await cancelled(client)) === before) {
            await new Promise(resolve => setTimeout(resolve, 50));
        }
        assert.equal(await cancelled(client), before + 1);
    });
}

/** Calls `slow` and, once it runs, gives the call up. */
async function cancelSlow(client) {
    const abort = new AbortController();
    await client.call('slow', {}, { signal: abort.signal, onprogress: () => abort.abort('enough') });
}

async function cancelled(client) {
    return Number((await client.call('cancelled', {}))[1]);
}

function late() {
    return new Promise((_, reject) => {
        setTimeout(() => reject(new Error('the step took too long')), STEP_MILLISECONDS).unref();
    });
}

/** A call's result as the steps compare it: whether it is an error, and its text. */
export function outcome({ isError, content }) {
    return [isError === true, content.map(block => block.text).join('')];
}
