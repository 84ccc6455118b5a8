// An authorization server: `oidc-provider`, whose people agree to everything at once. Its first line on standard output
// is JSON: the issuer. Settings are environment variables:
//   PORT, ISSUER_PATH ("" or "/name"), METADATA ("appended" as the library has it, "inserted" as RFC 8414 wants it),
//   RESOURCES (JSON: resource -> its scopes, separated by spaces), LIFETIME (of access tokens, in seconds),
//   ROTATE ("0": refresh tokens stay), SUBJECT (who signs in), CIMD (JSON: URL -> client metadata document),
//   REGISTRATION ("0": none), CLIENTS (JSON: clients registered beforehand),
//   JOURNAL (a file: each request with its parameters and its answer, one JSON object a line),
//   HOLD (a file: while it exists, answers to refreshes are held back, after they took effect).
// Asked for the scope `refuse`, it says that the person did not agree.

import { appendFileSync, existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

import Provider, { errors } from 'oidc-provider';

const env = process.env;
const port = Number(env.PORT);
const path = env.ISSUER_PATH ?? '';
const issuer = `http://127.0.0.1:${port}${path}`;
const lifetime = Number(env.LIFETIME ?? 300);
const resources = JSON.parse(env.RESOURCES ?? '{}');
const documents = JSON.parse(env.CIMD ?? '{}');
const REFUSE = 'refuse';
const isOn = name => env[name] !== '0';

const provider = new Provider(issuer, {
    clients: JSON.parse(env.CLIENTS ?? '[]'),
    scopes: ['openid', 'offline_access', REFUSE],
    findAccount: (_, sub) => ({ accountId: sub, claims: () => ({ sub }) }),
    interactions: { url: (_, interaction) => `${path}/interaction/${interaction.uid}` },
    pkce: { required: () => true },
    cookies: { keys: ['a key of the tests, and of nothing else'] },
    issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
    rotateRefreshToken: isOn('ROTATE'),
    expiresWithSession: () => false,
    ttl: {
        ...{ AccessToken: lifetime, AuthorizationCode: 60, Interaction: 600 },
        ...{ Grant: 86400, RefreshToken: 86400, Session: 86400 }
    },
    features: {
        devInteractions: { enabled: false },
        userinfo: { enabled: false },
        revocation: { enabled: true },
        introspection: { enabled: true },
        registration: { enabled: isOn('REGISTRATION') },
        registrationManagement: { enabled: isOn('REGISTRATION') },
        clientIdMetadataDocument: { enabled: env.CIMD !== undefined, ack: 'draft-02' },
        resourceIndicators: {
            enabled: true,
            defaultResource: () => Object.keys(resources)[0],
            useGrantedResource: () => true,
            getResourceServerInfo: (_, resource) => {
                if (!(resource in resources)) {
                    throw new errors.InvalidTarget();
                }
                return {
                    scope: resources[resource],
                    accessTokenFormat: 'jwt',
                    accessTokenTTL: lifetime,
                    jwt: { sign: { alg: 'RS256' } }
                };
            }
        }
    },
    // Client id metadata documents live at https URLs that exist here only.
    fetch: url => {
        const document = documents[String(url)];
        return document === undefined
            ? new Response('', { status: 404 })
            : Response.json(document, { headers: { 'cache-control': 'no-store' } });
    }
});

/** Answers what the library would ask a person. */
async function interact(req, res) {
    const { prompt, params, session, grantId } = await provider.interactionDetails(req, res);
    const finish = result => provider.interactionFinished(req, res, result, { mergeWithLastSubmission: true });
    if ((params.scope ?? '').split(' ').includes(REFUSE)) {
        return finish({ error: 'access_denied', error_description: '<b>the person</b> did not agree' });
    }
    if (prompt.name === 'login') {
        return finish({ login: { accountId: env.SUBJECT ?? 'ann' } });
    }
    const { missingOIDCScope, missingOIDCClaims, missingResourceScopes } = prompt.details;
    const grant =
        (grantId && (await provider.Grant.find(grantId))) ||
        new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope((missingOIDCScope ?? []).join(' '));
    grant.addOIDCClaims(missingOIDCClaims ?? []);
    for (const [resource, scopes] of Object.entries(missingResourceScopes ?? {})) {
        grant.addResourceScope(resource, scopes.join(' '));
    }
    return finish({ consent: { grantId: await grant.save() } });
}

function note(entry) {
    if (env.JOURNAL) {
        appendFileSync(env.JOURNAL, `${JSON.stringify({ at: Date.now() / 1000, ...entry })}\n`);
    }
}

provider.use(async (ctx, next) => {
    const begun = { method: ctx.method, path: ctx.path };
    note({ phase: 'begun', ...begun, query: ctx.query });
    await next();
    const { route, params, body } = ctx.oidc ?? {};
    const isRefresh = route === 'token' && params?.grant_type === 'refresh_token';
    note({
        phase: 'answered',
        ...begun,
        route,
        params: { ...body, ...params },
        authorization: ctx.get('authorization') || undefined,
        status: ctx.status,
        location: ctx.response.get('location') || undefined,
        answer: typeof ctx.body === 'object' && !ctx.body?.pipe ? ctx.body : undefined
    });
    while (isRefresh && env.HOLD && existsSync(env.HOLD)) {
        await sleep(20);
    }
});

/** RFC 8414 inserts the well-known part before the issuer's path; the library knows it only behind it. */
function appended(url) {
    const inserted = new RegExp(`^(/\\.well-known/(?:oauth-authorization-server|openid-configuration))${path}$`);
    return url.replace(inserted, `${path}$1`);
}

const callback = provider.callback();

async function answer(req, res) {
    let url = req.url;
    if (path !== '' && env.METADATA === 'inserted') {
        // And nothing where the library has it.
        url = url.startsWith(`${path}/.well-known/o`) ? '/nothing' : appended(url);
    }
    if (!url.startsWith(`${path}/`)) {
        note({ phase: 'answered', method: req.method, path: req.url, status: 404 });
        return res.writeHead(404).end();
    }
    req.originalUrl = url;
    req.url = url.slice(path.length);
    return req.url.startsWith('/interaction/') ? interact(req, res) : callback(req, res);
}

createServer((req, res) => {
    answer(req, res).catch(error => {
        note({ phase: 'failed', method: req.method, path: req.url, error: String(error) });
        res.writeHead(500).end(String(error));
    });
}).listen(port, '127.0.0.1', () => console.log(JSON.stringify({ issuer })));
