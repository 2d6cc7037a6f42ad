// A client of the TypeScript SDK whose connection breaks in the middle of a call: it connects through
// a relay, which cuts its connections once the stream of the call can be resumed. It prints what it
// got. Its arguments: a folder with the SDK, the gate's address and path, the token, the tool, and the
// file that lets the tool finish.

import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [sdk, address, path, token, tool, release] = process.argv.slice(2);
const require = createRequire(pathToFileURL(join(sdk, 'package.json')));
const load = name => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)));
const { Client } = await load('client/index.js');
const { StreamableHTTPClientTransport } = await load('client/streamableHttp.js');
const { CallToolResultSchema } = await load('types.js');

const [host, port] = address.split(':');
const open = new Set();
const relay = createServer(near => {
    const far = connect(Number(port), host);
    for (const socket of [near, far]) {
        open.add(socket);
        socket.on('error', () => {});
        socket.on('close', () => (open.delete(socket), near.destroy(), far.destroy()));
    }
    // The gate expects its own address in Host.
    const own = `127.0.0.1:${relay.address().port}`;
    near.on('data', bytes => far.write(bytes.toString('latin1').replace(own, address), 'latin1'));
    far.pipe(near);
});
await new Promise(resolve => relay.listen(0, '127.0.0.1', resolve));

const client = new Client({ name: 'resumes', version: '1' });
const headers = { authorization: `Bearer ${token}` };
await client.connect(
    new StreamableHTTPClientTransport(new URL(`http://127.0.0.1:${relay.address().port}${path}`), {
        requestInit: { headers },
        reconnectionOptions: {
            initialReconnectionDelay: 100,
            maxReconnectionDelay: 1000,
            reconnectionDelayGrowFactor: 1.5,
            maxRetries: 10,
        },
    }),
);
const tokens = [];
let cuts = 0;
const result = await client.request(
    { method: 'tools/call', params: { name: tool, arguments: {} } },
    CallToolResultSchema,
    {
        onresumptiontoken: token => {
            tokens.push(token);
            if (cuts === 0) {
                cuts += 1;
                for (const socket of open) {
                    socket.destroy();
                }
                writeFileSync(release, '');
            }
        },
    },
);
console.log(JSON.stringify({ result, tokens, cuts }));
await client.close();
process.exit(0);
