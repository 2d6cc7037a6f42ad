// Forwards HTTP requests to an address and adds a token, for programs that cannot send one. Where Host
// and Origin name this program, they name that address then; any other passes unchanged. It prints its
// own address.

import { createServer, request } from 'node:http';

const [target, token] = process.argv.slice(2);
const { host, hostname, port, pathname } = new URL(target);

const http = createServer((incoming, outgoing) => {
    const own = `127.0.0.1:${http.address().port}`;
    const headers = { ...incoming.headers, authorization: `Bearer ${token}` };
    for (const name of ['host', 'origin'].filter(name => name in headers)) {
        headers[name] = headers[name].replace(own, host);
    }
    const options = { hostname, port, path: pathname, method: incoming.method, headers };
    const forwarded = request(options, response => {
        outgoing.writeHead(response.statusCode, response.headers);
        // An event stream must begin before its first event.
        outgoing.flushHeaders();
        response.pipe(outgoing);
    });
    forwarded.on('error', () => outgoing.destroy());
    outgoing.on('close', () => forwarded.destroy());
    incoming.pipe(forwarded);
});
http.listen(0, '127.0.0.1', () => {
    console.log(`http://127.0.0.1:${http.address().port}${pathname}`);
});
