// A browser for people who agree to everything: opens the address given last, follows redirects and
// keeps cookies.

let address = process.argv.at(-1);
const jar = new Map();
for (let step = 0; step < 20; step++) {
    const { host } = new URL(address);
    const cookies = [...(jar.get(host) ?? new Map())].map(([name, value]) => `${name}=${value}`);
    const headers = { cookie: cookies.join('; ') };
    const response = await fetch(address, { redirect: 'manual', headers });
    for (const line of response.headers.getSetCookie()) {
        const [pair] = line.split(';');
        const [name, value] = pair.split(/=(.*)/);
        jar.set(host, (jar.get(host) ?? new Map()).set(name, value));
    }
    const to = response.headers.get('location');
    if (to === null) {
        const text = await response.text();
        if (!response.ok) {
            throw new Error(`${address}: ${response.status} ${text}`);
        }
        break;
    }
    address = new URL(to, address).href;
}
