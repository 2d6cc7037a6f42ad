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

const folder = mkdtempSync(join(tmpdir(), 'conformance-'));
const config = join(folder, 'config.json');
writeFileSync(config, JSON.stringify({ mcpServers: { s: { url } } }));
const home = join(folder, 'home');
const env = { ...process.env, COUNTERSIGN_HOME: home, HOME: folder };
const args = ['--config', config, 'serve', '--listen', '127.0.0.1:0', '-o', 'json'];
const serving = spawn(gate, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
const ended = new Promise(resolve => serving.once('exit', resolve));
try {
    const [line] = await Array.fromAsync(firstLine(serving.stdout));
    const { listen } = JSON.parse(line);
    const token = readFileSync(join(home, 'agent-token'), 'utf8').trim();
    const capabilities = { elicitation: { form: { applyDefaults: true } } };
    const client = new Client({ name: 'conformance', version: '1' }, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, () => ({ action: 'accept', content: {} }));
    await client.connect(
        new StreamableHTTPClientTransport(new URL(`http://${listen}/mcp/s/s`), {
            requestInit: { headers: { authorization: `Bearer ${token}` } },
        }),
    );
    await scenarios[process.env.MCP_CONFORMANCE_SCENARIO](client);
    await client.close();
} finally {
    serving.kill('SIGTERM');
    await ended;
    rmSync(folder, { recursive: true, force: true });
}

async function* firstLine(stream) {
    for await (const line of createInterface({ input: stream })) {
        yield line;
        return;
    }
}
