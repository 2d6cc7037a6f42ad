// A short conversation with a gate by a client of the TypeScript SDK: lists, calls, is refused, reads a
// resource and uses a prompt. It prints what it got. Its arguments: the SDK's generation, a folder with
// it, the gate's address, and the token.

import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [generation, folder, url, token] = process.argv.slice(2);
const require = createRequire(pathToFileURL(join(folder, 'package.json')));
const load = name => import(pathToFileURL(require.resolve(`@modelcontextprotocol/${name}`)));
const { Client, StreamableHTTPClientTransport } =
    generation === '1'
        ? {
              ...(await load('sdk/client/index.js')),
              ...(await load('sdk/client/streamableHttp.js')),
          }
        : await load('client');

const client = new Client({ name: `typescript-${generation}`, version: '1' });
const requestInit = { headers: { authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
const { tools } = await client.listTools();
const called = await client.callTool({ name: 'add', arguments: { a: 2, b: 40 } });
const refused = await client.callTool({ name: 'locked', arguments: {} });
const read = await client.readResource({ uri: 'memo://one' });
const got = await client.getPrompt({ name: 'greet', arguments: { name: 'Ada' } });
await client.close();
console.log(
    JSON.stringify({
        tools: tools.map(tool => tool.name),
        called: called.content[0].text,
        refused: [refused.isError, refused.content[0].text],
        read: read.contents[0].text,
        got: got.messages[0].content.text,
    }),
);
process.exit(0);
