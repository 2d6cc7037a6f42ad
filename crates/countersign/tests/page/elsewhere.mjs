// The attack of squatter.mjs in a browser other than Chromium: Firefox by WebDriver BiDi, or WebKitGTK
// by WebDriver. Needs a Node with WebSocket.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { check, outside, same, scene } from './outside.mjs';

const WORKER = 'the worker answers';
const PATIENCE_MS = 60_000;
const LOOK_MS = 100;
const LOOKS = 20;

const children = [];

// Starts a program; gives what the first line that matches says.
async function started(program, args, { env = {}, from = 'stdout', line }) {
  const stdio = ['ignore', from === 'stdout' ? 'pipe' : 'ignore', from === 'stderr' ? 'pipe' : 'ignore'];
  const child = spawn(program, args, { stdio, env: { ...process.env, ...env } });
  children.push(child);
  for await (const said of createInterface({ input: child[from] })) {
    const found = line.exec(said);
    if (found) {
      child[from].resume();
      return found[1];
    }
  }
  throw new Error(`${program} ended`);
}

// Firefox: one socket, on which each command has a number.
async function firefox(folder) {
  const args = ['--headless', '--no-remote', '--profile', folder, '--remote-debugging-port', '0', 'about:blank'];
  const line = /WebDriver BiDi listening on (ws:\S+)/;
  const address = await started('firefox-esr', args, { from: 'stderr', line, env: { HOME: folder } });
  const socket = new WebSocket(`${address}/session`);
  await once(socket, 'open');
  const waiting = new Map();
  socket.onmessage = ({ data }) => {
    const answer = JSON.parse(data);
    waiting.get(answer.id)?.(answer);
  };
  let last = 0;
  const command = async (method, params) => {
    const id = ++last;
    socket.send(JSON.stringify({ id, method, params }));
    const answer = await new Promise((then) => waiting.set(id, then));
    check(answer.type === 'success', `${method}: ${answer.message}`);
    return answer.result;
  };
  const { capabilities } = await command('session.new', { capabilities: {} });
  const { contexts: [{ context }] } = await command('browsingContext.getTree', {});
  return {
    name: `Firefox ${capabilities.browserVersion}`,
    goTo: (url) => command('browsingContext.navigate', { context, url, wait: 'complete' }),
    evaluate: async (expression) => {
      const target = { context };
      const { result, exceptionDetails } = await command('script.evaluate', { expression, target, awaitPromise: true });
      check(!exceptionDetails, `${expression}: ${exceptionDetails?.text}`);
      return result.value;
    },
  };
}

// WebKitGTK: a driver that answers over HTTP, and a display that nobody sees.
async function webkit(folder) {
  const display = await started('Xvfb', ['-displayfd', '1', '-nolisten', 'tcp'], { line: /^(\d+)$/ });
  const port = scene.port;
  const env = { DISPLAY: `:${display}`, HOME: folder, XDG_RUNTIME_DIR: folder, WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1' };
  children.push(spawn('WebKitWebDriver', [`--port=${port}`], { stdio: 'ignore', env: { ...process.env, ...env } }));
  const command = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body) });
    const { value } = await answer.json();
    check(answer.ok, `${path}: ${value?.message}`);
    return value;
  };
  await until(() => command('GET', '/status').catch(() => null), 'the driver answers');
  const { sessionId, capabilities } = await command('POST', '/session', { capabilities: {} });
  const at = (path) => `/session/${sessionId}/${path}`;
  return {
    name: `${capabilities.browserName} (WebKitGTK) ${capabilities.browserVersion}`,
    goTo: (url) => command('POST', at('url'), { url }),
    evaluate: (expression) => {
      const script = `const [then] = arguments; Promise.resolve(${expression}).then(then)`;
      return command('POST', at('execute/async'), { script, args: [] });
    },
  };
}

async function until(look, words) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    check(Date.now() < end, `never: ${words}`);
    await new Promise((then) => setTimeout(then, LOOK_MS));
  }
}

// The worker stays in the browser, and learns nothing of the page; says what the browser does.
async function play({ name, goTo, evaluate }) {
  const shows = (words) => until(() => evaluate(`document.body?.innerText.includes(${JSON.stringify(words)})`), words);
  const registrations = () => evaluate('navigator.serviceWorker.getRegistrations().then((all) => all.length)');
  await goTo(scene.plain);
  await until(() => evaluate('Boolean(navigator.serviceWorker.controller)'), 'the worker controls the address');
  await outside('serve');

  // Control: it stands between the browser and the gate.
  for (const path of ['/again#code=csl_control', '/oauth/callback?code=authorization&state=control']) {
    await goTo(scene.plain + path);
    await shows(WORKER);
    await outside('seen', { part: path });
  }

  const { link } = await outside('link');
  const { hostname, origin } = new URL(link);
  check(/^gate-[0-9a-f]{32}\.localhost$/.test(hostname), link);
  await goTo(link);
  await until(() => evaluate(`Boolean(document.querySelector('nav[aria-label="Views"]'))`), 'the page signs in');
  same(await evaluate('location.origin'), origin, 'the page is where the link leads');
  same(await evaluate('Boolean(navigator.serviceWorker.controller)'), false, 'nothing controls the page');
  same(await registrations(), 0, 'no worker at the address of the page');

  const { seen } = await outside('all seen');
  const secret = seen.filter((what) => what.includes(hostname) || /csl_(?!control)|css_|csc_/.test(what));
  same(secret, [], 'the worker saw the page');

  // The gate sends Clear-Site-Data as soon as the browser asks for the worker's script again.
  await goTo(`${scene.plain}/again`);
  await evaluate('navigator.serviceWorker.getRegistration().then((it) => { it.update().catch(() => {}); })');
  let left = 1;
  for (let look = 0; look < LOOKS && left; look++) {
    await new Promise((then) => setTimeout(then, LOOK_MS));
    left = await registrations();
  }
  console.error(`${name} opens ${hostname}; after Clear-Site-Data it has ${left} worker(s)`);
  same(left, 1, 'docs/security.md says that this browser keeps the worker');
}

const folder = await mkdtemp(join(tmpdir(), 'page-'));
let status = 0;
try {
  await play(await { firefox, webkit }[scene.browser](folder));
} catch (error) {
  console.error(error.stack);
  status = 1;
}
for (const child of children.reverse()) {
  child.kill();
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
}
await rm(folder, { recursive: true, force: true, maxRetries: 10 });
process.exit(status);
