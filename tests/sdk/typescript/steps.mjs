// What every client of the matrix does, and how it reports: one line of JSON on standard output,
// {"version": "2026-07-28", "steps": {"list": "ok", "call": "what was wrong", …}}
//
// Which steps, with what and with what outcome, is the client's second argument: [["list", {…}], …].
// A name such as `read-blob` is the step `read` once more.

import assert from 'node:assert/strict';

const STEP_MILLISECONDS = 20_000;

const ROOT = { uri: 'file:///project', name: 'project' };
const SECOND_ROOT = { uri: 'file:///second', name: 'second' };
const POEM = {
    role: 'assistant',
    content: { type: 'text', text: 'an old silent pond' },
    model: 'pond-1',
    stopReason: 'endTurn'
};

/** What every client declares. */
export const CAPABILITIES = { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } };

/** What is behind the client: it answers what a server asks, and keeps what a server tells. */
class User {
    answer = { action: 'cancel' };
    asked = null;
    open = [ROOT];
    #events = [];
    #waiting = null;

    elicit = ({ params }) => {
        this.asked = params.message;
        return this.answer;
    };
    sample = () => POEM;
    roots = () => ({ roots: this.open });
    log = ({ params }) => this.#tell('log', params.data);
    updated = ({ params }) => this.#tell('updated', params.uri);
    changed = kind => this.#tell('changed', kind);

    #tell(...event) {
        this.#events.push(event);
        this.#waiting?.();
    }

    /** Waits for an event of this kind whose text contains `part`. */
    async until(kind, part) {
        for (;;) {
            for (const [found, text] of this.#events.splice(0)) {
                if (found === kind && text.includes(part)) {
                    return;
                }
            }
            await new Promise(resolve => (this.#waiting = resolve));
        }
    }
}

/** Connects and runs the steps. `connect(url, user)` gives the SDK's client and what its major does its own way. */
export async function run(connect) {
    const [url, wanted] = process.argv.slice(2);
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
    const user = new User();
    let steps;
    await step('connect', async () => {
        steps = new Steps(await connect(new URL(url), user), user);
    });
    if (steps !== undefined) {
        report.version = steps.way.version;
        for (const [name, parameters] of JSON.parse(wanted)) {
            await step(name, () => steps[name.split('-')[0]](parameters));
        }
    }
    console.log(JSON.stringify(report));
    process.exit();
}

/**
 * The steps. `way` has the SDK's `client`, the `version`, and `call(params, options)`,
 * `log(level, params)`, `subscribed(uri)` and `watching(kind)`; the last two give what ends them.
 * `at(endpoint)` connects to another endpoint of the same host, and gives its `call`.
 */
class Steps {
    constructor(way, user) {
        this.way = way;
        this.client = way.client;
        this.user = user;
    }

    async capabilities({ has }) {
        const found = Object.keys(this.client.getServerCapabilities());
        assert.deepEqual(has.filter(name => !found.includes(name)), []);
    }

    async list({ names, optional = [] }) {
        const found = (await this.client.listTools()).tools.map(tool => tool.name);
        assert.deepEqual(found.filter(name => !optional.includes(name)).sort(), [...names].sort());
    }

    async call({ tool, arguments: args, text, contains }) {
        const [isError, found] = outcome(await this.way.call({ name: tool, arguments: args }));
        assert.equal(isError, false);
        compare(found, text, contains);
    }

    async structured({ tool, arguments: args, value }) {
        assert.deepEqual((await this.way.call({ name: tool, arguments: args })).structuredContent, value);
    }

    /** A result of which a part is missing passes the client's check, says so, and can be read on. */
    async cut({ tool, arguments: args, value, says, reader, endpoint }) {
        const promised = (await this.client.listTools()).tools.find(({ name }) => name === tool);
        assert.notEqual(promised.outputSchema, undefined);
        const result = await this.way.call({ name: tool, arguments: args });
        const [isError, found] = outcome(result);
        assert.deepEqual([isError, result.structuredContent], [true, undefined]);
        for (const part of says) {
            compare(found, undefined, part);
        }
        const cut = result._meta['io.tollgate/cut'];
        assert.deepEqual([cut.why, cut.tool, cut.endpoint], ['result', reader, endpoint]);
        const call = endpoint === undefined ? this.way.call : await this.way.at(endpoint);
        const texts = await readOn(call, cut, 0);
        assert.deepEqual(JSON.parse(texts.at(-1)), value);
        const rest = (await readOn(call, cut, cut.offset)).join('');
        assert.deepEqual([rest !== '', texts.join('').endsWith(rest)], [true, true]);
    }

    async progress({ tool, arguments: args, contains, seen }) {
        const found = [];
        const onprogress = ({ progress, total }) => found.push([progress, total]);
        const result = await this.way.call({ name: tool, arguments: args }, { onprogress });
        compare(outcome(result)[1], undefined, contains);
        assert.deepEqual(found, seen);
    }

    async error({ tool, arguments: args, contains }) {
        const [isError, found] = outcome(await this.way.call({ name: tool, arguments: args }));
        assert.equal(isError, true);
        compare(found, undefined, contains);
    }

    async ping() {
        await this.client.ping();
    }

    async resources({ uris }) {
        const found = (await this.client.listResources()).resources.map(resource => resource.uri);
        assert.deepEqual(found.sort(), [...uris].sort());
    }

    async templates({ templates }) {
        const { resourceTemplates } = await this.client.listResourceTemplates();
        const found = resourceTemplates.map(template => template.uriTemplate);
        assert.deepEqual(found.sort(), [...templates].sort());
    }

    async read({ uri, text, contains, blob }) {
        const { contents } = await this.client.readResource({ uri });
        assert.equal(contents.length, 1);
        compare(blob === undefined ? contents[0].text : contents[0].blob, blob ?? text, contains);
    }

    async prompts({ names }) {
        const found = (await this.client.listPrompts()).prompts.map(prompt => prompt.name);
        assert.deepEqual(found.sort(), [...names].sort());
    }

    async prompt({ name, arguments: args, text }) {
        const { messages } = await this.client.getPrompt({ name, arguments: args });
        assert.equal(messages.map(message => message.content.text).join(''), text);
    }

    async complete({ ref, argument, values }) {
        assert.deepEqual((await this.client.complete({ ref, argument })).completion.values, values);
    }

    async log({ level, tool, arguments: args, contains }) {
        await this.way.log(level, { name: tool, arguments: args });
        await this.user.until('log', contains);
    }

    async subscribe({ uri, tool, arguments: args }) {
        const end = await this.way.subscribed(uri);
        await this.way.call({ name: tool, arguments: args });
        await this.user.until('updated', uri);
        await end();
    }

    async changed({ kind, tool, arguments: args }) {
        const end = await this.way.watching(kind);
        await this.way.call({ name: tool, arguments: args });
        await this.user.until('changed', kind);
        await end();
    }

    async elicit({ tool, arguments: args, asked, answer, contains }) {
        this.user.answer = answer;
        compare(outcome(await this.way.call({ name: tool, arguments: args }))[1], undefined, contains);
        assert.equal(this.user.asked, asked);
    }

    async sample(parameters) {
        await this.call(parameters);
    }

    async roots(parameters) {
        await this.call(parameters);
    }

    /** The user opens a second folder, of which the server is told. */
    async update({ contains }) {
        this.user.open = [ROOT, SECOND_ROOT];
        await this.client.sendRootsListChanged();
        await this.user.until('log', contains);
    }

    /** Calls the tool and, once it runs, gives the call up. */
    async cancel({ tool, counter }) {
        const before = await this.#count(counter);
        const abort = new AbortController();
        const options = { signal: abort.signal, onprogress: () => abort.abort('enough') };
        await assert.rejects(this.way.call({ name: tool, arguments: {} }, options));
        while ((await this.#count(counter)) === before) {
            await new Promise(resolve => setTimeout(resolve, 50));
        }
        assert.equal(await this.#count(counter), before + 1);
    }

    async #count(counter) {
        return Number(outcome(await this.way.call({ name: counter, arguments: {} }))[1]);
    }
}

/** The texts of a result from there on; what is structured is the last of them. */
async function readOn(call, { tool, handle }, offset) {
    const texts = [];
    for (let end = null; offset !== undefined; ) {
        const result = await call({ name: tool, arguments: { handle, offset } });
        assert.equal(outcome(result)[0], false);
        const place = result._meta['io.tollgate/read'];
        const before = place.offset === end ? texts.pop() : '';
        texts.push(before + result.content[0].text);
        end = place.end;
        offset = place.next;
    }
    return texts;
}

function compare(found, text, contains) {
    if (contains === undefined) {
        assert.equal(found, text);
    } else {
        assert.ok(found.includes(contains), `found \`${found}\`, expected it to contain \`${contains}\``);
    }
}

function late() {
    return new Promise((_, reject) => {
        setTimeout(() => reject(new Error('the step took too long')), STEP_MILLISECONDS).unref();
    });
}

/** Whether a call's result is an error, and its text. */
function outcome({ isError, content }) {
    return [isError === true, content.map(block => block.text).join('')];
}
