// A browser for people who agree to everything: opens the address given last, follows redirects, sends
// forms unchanged, keeps cookies, and prints the last address. With `--deny` it declines to confirm a code;
// with `--hold` it does not open the last address, if that is a callback.
import { readFile } from 'node:fs/promises';

const refuses = process.argv.includes('--deny');
let address = await led(process.argv.at(-1));
let form;
const jar = new Map();
const holds = process.argv.includes('--hold');
for (let step = 0; step < 20; step++) {
    const { host, pathname } = new URL(address);
    if (holds && pathname.endsWith('/callback')) break;
    const cookies = [...(jar.get(host) ?? new Map())].map(([name, value]) => `${name}=${value}`);
    const headers = { cookie: cookies.join('; ') };
    const sent = form && { method: 'POST', body: form };
    const response = await fetch(address, { redirect: 'manual', headers, ...sent });
    for (const line of response.headers.getSetCookie()) {
        const [pair] = line.split(';');
        const [name, value] = pair.split(/=(.*)/);
        jar.set(host, (jar.get(host) ?? new Map()).set(name, value));
    }
    const to = response.headers.get('location');
    const text = await response.text();
    if (form?.has('abort')) {
        break;
    } else if (to !== null) {
        [address, form] = [new URL(to, address).href, undefined];
    } else if (!response.ok) {
        throw new Error(`${address}: ${response.status} ${text}`);
    } else {
        const [, action] = /<form[^>]* action="([^"]+)"/.exec(text) ?? [];
        if (action === undefined) {
            break;
        }
        [address, form] = [new URL(action, address).href, filled(text)];
    }
}

console.log(address);

// Returns the address that a file leads to, as a browser reads it, or the given one.
async function led(given) {
    if (!given.startsWith('file:')) return given;
    const [, to] = /http-equiv="refresh" content="0;url=([^"]+)"/.exec(await readFile(new URL(given), 'utf8'));
    return to.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&#39;', "'").replaceAll('&amp;', '&');
}

// Returns the fields of the form on a page.
function filled(page) {
    const inputs = page.matchAll(/<input[^>]* name="([^"]+)" value="([^"]*)"/g);
    const fields = new URLSearchParams([...inputs].map(([, name, value]) => [name, value]));
    if (refuses && fields.has('confirm')) {
        fields.delete('confirm');
        fields.set('abort', 'yes');
    }
    return fields;
}
