// Forwards HTTP requests to the view of all servers and adds a token, for programs that can send none
// and know one server alone: tools and prompts get the name of that server in front, and lose it again
// in responses. With a fourth argument the addresses of resources do too. It prints its own address.

import { createServer, request } from 'node:http';
import { createInterface } from 'node:readline';

const [target, token, server, addresses] = process.argv.slice(2);
const { host, hostname, port, pathname } = new URL(target);
const NAME = `${server}__`;
const ADDRESS = addresses ? `countersign://server/${server}/` : '';

function sent(body) {
    let message;
    try {
        message = JSON.parse(body);
    } catch {
        return body;
    }
    const params = message.params ?? {};
    const named = params.ref ?? params;
    const hasName =
        ['tools/call', 'prompts/get'].includes(message.method) || named.type === 'ref/prompt';
    if (hasName) {
        named.name = NAME + named.name;
    }
    if (typeof named.uri === 'string') {
        named.uri = ADDRESS + named.uri;
    }
    return JSON.stringify(message);
}

function received(line) {
    const named = line.replaceAll(`"name":"${NAME}`, '"name":"');
    return ADDRESS ? named.replaceAll(ADDRESS, '') : named;
}

const http = createServer((incoming, outgoing) => {
    const own = `127.0.0.1:${http.address().port}`;
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    for (const name of ['host', 'origin'].filter(name => name in headers)) {
        headers[name] = headers[name].replace(own, host);
    }
    const parts = [];
    incoming.on('data', part => parts.push(part));
    incoming.on('end', () => {
        const body = Buffer.from(sent(Buffer.concat(parts).toString()));
        if ('content-length' in headers) {
            headers['content-length'] = body.length;
        }
        const options = { hostname, port, path: pathname, method: incoming.method, headers };
        const forwarded = request(options, response => {
            const { 'content-length': _, ...kept } = response.headers;
            outgoing.writeHead(response.statusCode, kept);
            // An event stream must begin before its first event.
            outgoing.flushHeaders();
            // A client that leaves early ends the response in the middle.
            response.on('error', () => outgoing.destroy());
            const lines = createInterface({ input: response, crlfDelay: Infinity });
            lines.on('error', () => outgoing.destroy());
            lines.on('line', line => outgoing.write(`${received(line)}\n`));
            lines.on('close', () => outgoing.end());
        });
        forwarded.on('error', () => outgoing.destroy());
        outgoing.on('close', () => forwarded.destroy());
        forwarded.end(body);
    });
});
http.listen(0, '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${http.address().port}${pathname}`);
});
