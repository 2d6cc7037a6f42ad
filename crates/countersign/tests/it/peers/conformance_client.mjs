// Performs what a client scenario of the official suite wants, through a gate of its own in front of
// the scenario's server. Its arguments: the gate's program, a folder with the SDK, the address of the
// scenario's server.

import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [gate, sdk, url] = process.argv.slice(2);
const require = createRequire(pathToFileURL(join(sdk, 'package.json')));
const load = name => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load('client/index.js');
const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js');
const { ElicitRequestSchema } = await load('types.js');

const scenarios = {
    initialize: client => client.listTools(),
    tools_call: async client => {
        await client.listTools();
        await client.callTool({ name: 'add_numbers', arguments: { a: 5, b: 3 } });
    },
    'elicitation-sep1034-client-defaults': async client => {
        await client.listTools();
        await client.callTool({ name: 'test_client_elicitation_defaults', arguments: {} });
    },
    'sse-retry': async client => {
        await client.listTools();
        await client.callTool({ name: 'test_reconnection', arguments: {} });
    },
    'json-schema-2020-12-preservation': async client => {
        const { tools } = await client.listTools();
        const { inputSchema } = tools.find(tool => tool.name === 'json_schema_2020_12_tool');
        await client.callTool({ name: 'json_schema_echo', arguments: { schema: inputSchema } });
    },
};

// What the scenarios of authorization need in the config, besides the server's address.
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const oauth = {
    'auth/basic-cimd': { client_id: 'https://conformance-test.local/client-metadata.json' },
    'auth/pre-registration': { client_id: context.client_id, client_secret: context.client_secret },
    'auth/client-credentials-basic': {
        client_id: context.client_id,
        client_secret: context.client_secret,
        grant: 'client_credentials',
    },
    'auth/client-credentials-jwt': {
        client_id: context.client_id,
        private_key: context.private_key_pem,
        grant: 'client_credentials',
    },
};

const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const folder = mkdtempSync(join(tmpdir(), 'conformance-'));
const config = join(folder, 'config.json');
writeFileSync(config, JSON.stringify({ mcpServers: { s: { url, oauth: oauth[scenario] } } }));
const home = join(folder, 'home');
const env = { ...process.env, COUNTERSIGN_HOME: home, HOME: folder };
const args = ['--config', config, 'serve', '--listen', '127.0.0.1:0', '-o', 'json'];
const serving = spawn(gate, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
const ended = new Promise(resolve => serving.once('exit', resolve));
try {
    const [line] = await Array.fromAsync(firstLine(serving.stdout));
    const { listen } = JSON.parse(line);
    if (scenario.startsWith('auth/')) {
        await signedIn(listen);
    }
    const capabilities = { elicitation: { form: { applyDefaults: true } } };
    const client = new Client({ name: 'conformance', version: '1' }, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: {} }));
    await client.connect(
        new StreamableHTTPClientTransport(new URL(`http://${listen}/mcp/s/s`), {
            requestInit: { headers: { authorization: `Bearer ${secret('agent-token')}` } },
        }),
    );
    await (scenarios[scenario] ?? (client => calledSignedIn(client, listen)))(client);
    await client.close();
} finally {
    serving.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
}

function secret(name) {
    return readFileSync(join(home, name), 'utf8').trim();
}

// Signs in as often as the gate says that it must, until the server can be used.
async function signedIn(listen) {
    for (;;) {
        const server = await settled(listen);
        if (server.state === 'ready') {
            return;
        }
        if (server.state !== 'needs_login') {
            throw new Error(`the server cannot be used: ${JSON.stringify(server)}`);
        }
        await signIn();
    }
}

async function settled(listen) {
    for (;;) {
        const headers = { authorization: `Bearer ${secret('api-key')}` };
        const answer = await fetch(`http://${listen}/api/v1/servers/s`, { headers });
        const server = await answer.json();
        if (!['idle', 'connecting'].includes(server.state)) {
            return server;
        }
        await new Promise(resolve => setTimeout(resolve, 50));
    }
}

// Runs `upstream login`, and does what a browser would.
async function signIn() {
    const args = ['--config', config, 'upstream', 'login', 's', '--no-browser'];
    const login = spawn(gate, args, { env, stdio: ['ignore', 'inherit', 'pipe'] });
    const ended = new Promise(resolve => login.once('exit', resolve));
    for await (const line of createInterface({ input: login.stderr })) {
        console.error(line);
        if (line.startsWith('http')) {
            await (await fetch(line)).text();
        }
    }
    const code = await ended;
    if (code !== 0) {
        throw new Error(`upstream login: exit code ${code}`);
    }
}

// Calls the only tool, after another sign-in where the server wants more scopes.
async function calledSignedIn(client, listen) {
    const { tools } = await client.listTools();
    for (let attempt = 0; attempt < 3; attempt++) {
        let words;
        try {
            const answer = await client.callTool({ name: tools[0].name, arguments: {} });
            words = answer.isError ? JSON.stringify(answer) : undefined;
        } catch (error) {
            words = error.message;
        }
        if (words === undefined) {
            return;
        }
        if (!words.includes('upstream login')) {
            throw new Error(words);
        }
        await signIn();
        await signedIn(listen);
    }
    throw new Error('the tool could not be called');
}

async function* firstLine(stream) {
    for await (const line of createInterface({ input: stream })) {
        yield line;
        return;
    }
}
