// A real authorization server (oidc-provider) and an MCP server behind it, on the TypeScript SDK. Its
// arguments: the folder of oidc-provider, the folder of the SDK, and options in JSON: `lifetime` of
// access tokens in seconds, `early` (the MCP server takes tokens for expired by so many seconds
// before they are), `asks` (people fill in forms; otherwise they agree at once). Prints the address
// of the MCP server, which says who a call was made for. Tests ask and tell it things below `/test/`.

import { AsyncLocalStorage } from 'node:async_hooks';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { randomUUID } from 'node:crypto';
import { pathToFileURL } from 'node:url';

const [provider, sdk, text] = process.argv.slice(2);
const options = { lifetime: 3600, early: 0, asks: false, ...JSON.parse(text ?? '{}') };
const entry = createRequire(pathToFileURL(`${provider}/package.json`)).resolve('oidc-provider');
const { default: Provider } = await import(pathToFileURL(entry));
const require = createRequire(`${sdk}/package.json`);
const { Server } = require('@modelcontextprotocol/server');
const { NodeStreamableHTTPServerTransport } = require('@modelcontextprotocol/node');

// Written to stderr, its warnings about development would hide what matters.
console.info = console.warn = () => {};

const listening = server =>
    new Promise(resolve => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));

const mcp = createServer((request, response) => protect(request, response));
const resource = `http://127.0.0.1:${await listening(mcp)}/mcp`;
const authority = createServer((request, response) => authorize(request, response));
const issuer = `http://127.0.0.1:${await listening(authority)}`;

// What the tests want to know: requests for tokens by grant, refused ones too, and what was issued.
const DEVICE = 'urn:ietf:params:oauth:grant-type:device_code';
const counts = { authorization_code: 0, refresh_token: 0, register: 0, [DEVICE]: 0 };
const issued = [];
let isOut = false;
// The person that signs in next, and the one for whom the tool has another description.
let person = 'person';
let odd;
// The answer to the first request with a token that was not used before is withheld.
let held = 'off';
const used = new Set();

const oidc = new Provider(issuer, {
    features: {
        devInteractions: { enabled: options.asks },
        registration: { enabled: true },
        revocation: { enabled: true },
        deviceFlow: { enabled: true },
        resourceIndicators: {
            enabled: true,
            useGrantedResource: () => true,
            getResourceServerInfo: (_, asked) => ({
                scope: 'mcp:use mcp:admin',
                audience: asked,
                accessTokenTTL: options.lifetime,
                accessTokenFormat: 'opaque',
            }),
        },
    },
    scopes: ['openid', 'offline_access', 'mcp:use', 'mcp:admin'],
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    issueRefreshToken: () => true,
    rotateRefreshToken: true,
    pkce: { required: () => true },
    cookies: { keys: [randomUUID()] },
});
oidc.use(async (context, next) => {
    await next();
    if (context.path === '/token') {
        counts[context.oidc.params.grant_type] += 1;
        issued.push(context.body?.access_token, context.body?.refresh_token);
    }
    if (context.path === '/reg' && context.status === 201) {
        counts.register += 1;
    }
});

async function authorize(request, response) {
    if (isOut) {
        response.writeHead(503).end();
    } else if (!options.asks && request.url.startsWith('/interaction/')) {
        await agree(request, response);
    } else {
        oidc.callback()(request, response);
    }
}

// Answers every question of the authorization server with yes.
async function agree(request, response) {
    const { prompt, params, session, grantId } = await oidc.interactionDetails(request, response);
    if (prompt.name === 'login') {
        await oidc.interactionFinished(request, response, { login: { accountId: person } });
        return;
    }
    const known = grantId && (await oidc.Grant.find(grantId));
    const grant = known ?? new oidc.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope ?? '');
    for (const [asked, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
        grant.addResourceScope(asked, scopes.join(' '));
    }
    const consent = { grantId: await grant.save() };
    await oidc.interactionFinished(request, response, { consent }, { mergeWithLastSubmission: true });
}

const sessions = new Map();

async function protect(request, response) {
    const { pathname } = new URL(request.url, resource);
    if (pathname.startsWith('/test/')) {
        response.end(JSON.stringify(await tested(pathname.slice('/test/'.length))));
    } else if (pathname === '/.well-known/oauth-protected-resource/mcp') {
        response.setHeader('content-type', 'application/json');
        response.end(JSON.stringify({
            resource,
            authorization_servers: [issuer],
            scopes_supported: ['mcp:use'],
        }));
    } else if (!(await admitted(request))) {
        const metadata = new URL('/.well-known/oauth-protected-resource/mcp', resource);
        response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` });
        response.end();
    } else if (held === 'armed' && isNew(request)) {
        held = 'held';
    } else {
        isNew(request);
        await serve(request, response);
    }
}

function isNew({ headers }) {
    const before = used.size;
    return used.add(headers.authorization).size > before;
}

async function tested(path) {
    const [what, whom] = path.split('/');
    switch (what) {
        case 'person':
            person = whom;
            return {};
        case 'odd':
            odd = whom;
            return {};
        case 'crossed':
            return { crossed };
        case 'counts':
            return counts;
        case 'issued':
            return issued.filter(Boolean);
        case 'out':
            isOut = true;
            return {};
        case 'back':
            isOut = false;
            return {};
        case 'hold':
            held = 'armed';
            return {};
        case 'held':
            return { held };
        case 'expire': {
            for (const token of issued.filter(Boolean)) {
                await (await oidc.AccessToken.find(token))?.destroy();
            }
            return {};
        }
        case 'revoke': {
            // As if the person, or everybody, had withdrawn the grant at the authorization server.
            for (const token of issued.filter(Boolean)) {
                for (const kind of [oidc.RefreshToken, oidc.AccessToken]) {
                    const found = await kind.find(token);
                    if (found && (whom === undefined || found.accountId === whom)) {
                        await found.destroy();
                    }
                }
            }
            return {};
        }
        default:
            throw new Error(what);
    }
}

// Returns the person that a request is made for, if its token is valid.
async function admitted(request) {
    const [, token] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
    const found = token && (await oidc.AccessToken.find(token));
    const isValid = Boolean(found)
        && [found.aud].flat().includes(resource)
        && found.remainingTTL > options.early;
    return isValid ? found.accountId : undefined;
}

// Requests in a session that was opened for somebody else.
let crossed = 0;
const whose = new AsyncLocalStorage();

async function serve(request, response) {
    const id = request.headers['mcp-session-id'];
    if (id !== undefined && !sessions.has(id)) {
        response.writeHead(404).end();
        return;
    }
    const whom = await admitted(request);
    const { transport, of } = sessions.get(id) ?? { transport: await open(whom), of: whom };
    crossed += of === whom ? 0 : 1;
    await whose.run(whom, () => transport.handleRequest(request, response));
}

async function open(whom) {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: id => sessions.set(id, { transport, of: whom }),
    });
    const server = new Server({ name: 'protected', version: '1' }, { capabilities: { tools: {} } });
    const annotations = { readOnlyHint: true };
    server.setRequestHandler('tools/list', () => {
        const description = whose.getStore() === odd ? 'Looks elsewhere' : 'Looks';
        return { tools: [{ name: 'look', description, inputSchema: { type: 'object' }, annotations }] };
    });
    server.setRequestHandler('tools/call', () => {
        const text = `seen by ${whose.getStore()}`;
        return { content: [{ type: 'text', text }] };
    });
    await server.connect(transport);
    return transport;
}

console.log(resource);
