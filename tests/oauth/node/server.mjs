// An MCP server of the TypeScript SDK that demands tokens of an authorization server, in both eras. Settings are
// environment variables: PORT, ISSUER and METADATA (where its document is), JOURNAL (a file: each call, one JSON object a
// line), DEMANDS (JSON: the name and the value of a header field; it is demanded in place of a token).
//
// `look` only reads, `add` has an effect, `manage` wants the scope `mcp:manage`, `who` says whose the token is.

import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';

import { toNodeHandler } from '@modelcontextprotocol/node';
import {
    McpServer,
    OAuthError,
    OAuthErrorCode,
    createMcpHandler,
    getOAuthProtectedResourceMetadataUrl,
    oauthMetadataResponse,
    requireBearerAuth,
    requireScopes
} from '@modelcontextprotocol/server';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import * as z from 'zod';

const { PORT, ISSUER, METADATA, JOURNAL, DEMANDS } = process.env;
const resource = new URL(`http://127.0.0.1:${PORT}/mcp`);
const SCOPES = ['mcp:read', 'mcp:write'];

let added = 0;

function build() {
    const mcp = new McpServer({ name: 'demands-tokens', version: '1.0.0' }, { capabilities: { tools: {} } });
    const tool = (name, readOnlyHint, text, more = {}) =>
        mcp.registerTool(
            name,
            { description: `The tool ${name}`, inputSchema: z.object({}), annotations: { readOnlyHint }, ...more },
            (_, { http }) => {
                const { clientId, scopes, extra } = http.authInfo;
                note({ tool: name, client: clientId, scopes, subject: extra.subject, issued: extra.issued });
                return { content: [{ type: 'text', text: text(extra) }] };
            }
        );
    tool('look', true, () => `added ${added} times`);
    tool('who', true, ({ subject }) => `the token of ${subject}`);
    tool('add', false, () => `added ${++added} times`);
    tool('manage', true, () => 'managed', { scopeChallenge: requireScopes('mcp:manage') });
    return mcp;
}

function note(entry) {
    if (JOURNAL) {
        appendFileSync(JOURNAL, `${JSON.stringify({ at: Date.now() / 1000, ...entry })}\n`);
    }
}

const mcp = createMcpHandler(build);

/** Lets through what has the right value in the header field. */
function demandsField(name, value) {
    const authInfo = { token: 'none', clientId: 'none', scopes: [], extra: { subject: 'somebody' } };
    return async request =>
        request.headers.get(name) === value
            ? mcp.fetch(request, { authInfo })
            : new Response('the value is not right', { status: 401 });
}

/** Lets through what has a token of the authorization server for this server. */
async function demandsToken() {
    const metadata = await (await fetch(METADATA)).json();
    const documents = { oauthMetadata: metadata, resourceServerUrl: resource, scopesSupported: SCOPES };
    const keys = createRemoteJWKSet(new URL(metadata.jwks_uri), { cooldownDuration: 0 });
    const gate = requireBearerAuth({
        verifier: { verifyAccessToken: token => verified(token, keys) },
        requiredScopes: ['mcp:read'],
        resourceMetadataUrl: getOAuthProtectedResourceMetadataUrl(resource),
        expectedResource: resource
    });
    return async request => {
        const document = oauthMetadataResponse(request, documents);
        if (document !== undefined) {
            return document;
        }
        const authInfo = await gate(request);
        return authInfo instanceof Response ? authInfo : mcp.fetch(request, { authInfo });
    };
}

async function verified(token, keys) {
    try {
        const { payload } = await jwtVerify(token, keys, { issuer: ISSUER, audience: resource.href, typ: 'at+jwt' });
        const extra = { subject: payload.sub, issued: payload.iat };
        const scopes = (payload.scope ?? '').split(' ').filter(Boolean);
        return { token, clientId: payload.client_id, scopes, expiresAt: payload.exp, resource, extra };
    } catch (error) {
        note({ refused: error.code ?? String(error) });
        throw new OAuthError(OAuthErrorCode.InvalidToken, 'the token is not valid');
    }
}

const respond = DEMANDS ? demandsField(...JSON.parse(DEMANDS)) : await demandsToken();

createServer(toNodeHandler({ fetch: respond })).listen(Number(PORT), '127.0.0.1', () =>
    console.log(JSON.stringify({ resource: resource.href }))
);
