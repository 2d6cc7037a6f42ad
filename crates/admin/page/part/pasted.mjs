// A server as people paste it: the JSON block of a README, a command, or an address. Pure; the gate
// alone says whether an entry is valid.

// `{ servers: [{ name, …entry }] }`, or `{ error }` in words.
export function pasted(text) {
  const given = text.trim();
  if (!given) return { servers: [] };
  if (/^https?:\/\/\S+$/i.test(given)) return fromAddress(given);
  return /^[{["]/.test(given) ? fromJson(given) : fromCommand(given);
}

function fromAddress(url) {
  try {
    return { servers: [{ name: nameOfHost(new URL(url).hostname), url }] };
  } catch {
    return { error: 'this is not an address' };
  }
}

// `mcp.linear.app` is linear; an address of this machine has no name of its own.
function nameOfHost(host) {
  const parts = host.split('.').filter((part) => !['www', 'mcp', 'api', 'sse'].includes(part));
  return named(/^[\d.:[\]]+$/.test(host) || host === 'localhost' ? 'local' : parts.at(parts.length > 2 ? -2 : 0) ?? host);
}

// Blocks are often cut out of a larger file: without braces around, or with a comma at the end.
function fromJson(text) {
  const cleaned = text.replace(/,\s*$/, '');
  for (const attempt of [cleaned, `{${cleaned}}`]) {
    try {
      return fromValue(JSON.parse(attempt));
    } catch {
      // The next attempt, or the error below.
    }
  }
  return { error: 'this is not valid JSON' };
}

const isEntry = (value) => value && typeof value === 'object' && (typeof value.command === 'string' || typeof value.url === 'string' || typeof value.serverUrl === 'string' || typeof value.httpUrl === 'string');

function fromValue(value) {
  const inner = value?.mcpServers ?? value?.servers ?? value?.context_servers ?? value?.mcp?.servers ?? value;
  if (isEntry(inner)) return { servers: [entry(inner.name ?? guessed(inner), inner)] };
  const servers = Object.entries(inner ?? {}).filter(([, member]) => isEntry(member)).map(([name, member]) => entry(name, member));
  return servers.length ? { servers } : { error: 'there is no server in it: an entry has a command or a url' };
}

// Names that other clients use for the address.
function entry(name, { serverUrl, httpUrl, ...members }) {
  const url = members.url ?? serverUrl ?? httpUrl;
  return { ...members, ...(url === undefined ? {} : { url }), name: named(name) };
}

const guessed = (member) => (member.command ? nameOfCommand([member.command, ...(member.args ?? [])]) : nameOfHost(hostOf(member)));
const hostOf = (member) => { try { return new URL(member.url ?? member.serverUrl ?? member.httpUrl).hostname; } catch { return 'server'; } };

// `KEY=value npx -y server …`, or another client's command: `claude mcp add NAME -- COMMAND`.
function fromCommand(text) {
  const all = words(text);
  if (!all) return { error: 'a quote is not closed' };
  const added = /^(claude|codex|gemini) mcp add$/.test(all.slice(0, 3).join(' ')) ? all.slice(3) : null;
  const name = added?.find((word) => !word.startsWith('-'));
  const dashes = added?.indexOf('--') ?? -1;
  const left = added ? (dashes >= 0 ? added.slice(dashes + 1) : added.slice(added.indexOf(name) + 1)) : all;
  const env = {};
  while (/^[A-Za-z_][A-Za-z0-9_]*=/.test(left[0] ?? '')) {
    const [key, ...value] = left.shift().split('=');
    env[key] = value.join('=');
  }
  const [command, ...args] = left;
  if (!command) return { error: 'there is no command in it' };
  if (/^https?:\/\//.test(command)) return { servers: [{ name: named(name ?? nameOfHost(hostOf({ url: command }))), url: command }] };
  return { servers: [{ name: named(name ?? nameOfCommand(left)), command, args, ...(Object.keys(env).length ? { env } : {}) }] };
}

// `npx -y @modelcontextprotocol/server-filesystem ~/notes` is filesystem.
function nameOfCommand(all) {
  const runners = ['npx', 'uvx', 'bunx', 'pnpm', 'dlx', 'node', 'python', 'python3', 'docker', 'run', 'uv', 'deno'];
  const word = all.find((part) => !part.startsWith('-') && !runners.includes(part.split('/').at(-1))) ?? all[0];
  const last = word.replace(/@[\d.]+$|@latest$/, '').split('/').at(-1).replace(/\.(m?js|ts|py)$/, '');
  return last.replace(/^(mcp-server-|server-|mcp-)|(-mcp-server|-mcp|-server)$/g, '') || last;
}

const named = (text) => String(text).toLowerCase().replace(/[^a-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 64) || 'server';

// The words of a command as a shell reads them, without expansions; null if a quote is open.
export function words(text) {
  const found = [];
  let word = null;
  let quote = null;
  for (let at = 0; at < text.length; at += 1) {
    const sign = text[at];
    if (quote) {
      if (sign === quote) quote = null;
      else if (sign === '\\' && quote === '"' && at + 1 < text.length) { at += 1; word += text[at]; }
      else word += sign;
    } else if (sign === '"' || sign === "'") { quote = sign; word ??= ''; }
    else if (sign === '\\' && at + 1 < text.length) { at += 1; if (text[at] !== '\n') word = (word ?? '') + text[at]; }
    else if (/\s/.test(sign)) { if (word !== null) found.push(word); word = null; }
    else word = (word ?? '') + sign;
  }
  if (quote) return null;
  return word === null ? found : [...found, word];
}
