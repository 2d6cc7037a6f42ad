// A real browser, driven as a person would. What it is to look at stands in $PAGE_SCENE; what must
// happen outside of it (calls of agents, files) it asks of the test that started it, line by line.
// Whatever the page complains of, or asks of another host, fails the scenario. With $PAGE_FILES the
// page's own files are those of that folder, so that a change of them needs no build.
import { once } from 'node:events';
import { get } from 'node:http';
import { createRequire } from 'node:module';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { check, outside, same, scene } from './outside.mjs';
import { palette } from './palette.mjs';

const load = createRequire(join(process.env.PAGE_TOOLS, 'node_modules', 'here.js'));
const { chromium } = load('playwright-core');
const axeSource = load('axe-core').source;

export { check, outside, same, scene };
export const WIDTHS = { wide: { width: 1440, height: 900 }, narrow: { width: 390, height: 844 } };
export const THEMES = ['light', 'dark'];

const FLAGS = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
  '--disable-background-networking', '--disable-component-update', '--disable-sync'];
const PATIENCE_MS = 60_000;

// Waits until the address has this part: it follows what a person does a moment later.
export async function addressed(page, part) {
  await page.waitForFunction((part) => location.hash.includes(part), part);
}

// Runs a scenario in a browser of its own, and ends the process.
export async function scenario(play) {
  const folder = await mkdtemp(join(tmpdir(), 'page-'));
  const context = await chromium.launchPersistentContext(folder, {
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: FLAGS, chromiumSandbox: false,
    viewport: WIDTHS.wide, acceptDownloads: true, colorScheme: 'light',
  });
  context.setDefaultTimeout(PATIENCE_MS);
  if (process.env.PAGE_FILES) await context.route(/^[^?#]*:\d+\/(page\/.*)?(#.*)?$/, fromFolder);
  const faults = [];
  let status = 0;
  try {
    const page = context.pages()[0] ?? await context.newPage();
    watch(page, faults);
    await play({ page, context, faults });
    same(faults, [], 'the page complained');
  } catch (error) {
    const page = context.pages()[0];
    console.error(error.stack, '\nfaults:', faults, '\nat', page?.url());
    console.error((await page?.innerText('body').catch(() => ''))?.slice(0, 3_000));
    status = 1;
  }
  await context.close();
  await rm(folder, { recursive: true, force: true });
  process.exit(status);
}

const KINDS = { html: 'text/html', css: 'text/css', svg: 'image/svg+xml', mjs: 'text/javascript' };

// The gate's own answer, its rules included, with another body.
async function fromFolder(route) {
  const { host, pathname, port } = new URL(route.request().url());
  const name = pathname === '/' ? 'index.html' : pathname.slice('/page/'.length);
  // Node does not know names below `localhost`.
  const asked = get({ host: '127.0.0.1', port, headers: { host } });
  const [{ headers }] = await once(asked, 'response');
  asked.destroy();
  const rules = { 'content-security-policy': headers['content-security-policy'] };
  const body = await readFile(join(process.env.PAGE_FILES, name));
  await route.fulfill({ body, contentType: `${KINDS[name.split('.').pop()]}; charset=utf-8`, headers: rules });
}

// What a page says on its console, and where it reaches for.
export function watch(page, faults) {
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`error: ${error.message}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.protocol.startsWith('http') && url.origin !== scene.origin) faults.push(`another host: ${url}`);
  });
  page.on('dialog', (dialog) => { faults.push(`a script ran: ${dialog.message()}`); dialog.dismiss(); });
}

// A fresh link. It says where the page is: each start of the gate has an address of its own.
export async function freshLink() {
  const { link } = await outside('link');
  scene.origin = new URL(link).origin;
  return link;
}

// Follows a fresh link.
export async function signIn(page) {
  await page.goto(await freshLink());
  await page.locator('nav[aria-label="Views"]').waitFor();
}

// Waits until the page has followed; until then it still shows the previous view.
export async function goTo(page, place) {
  await page.evaluate(async (hash) => {
    const before = location.hash;
    location.hash = hash;
    if (location.hash === before) return;
    await new Promise((then) => addEventListener('hashchange', then, { once: true }));
    await new Promise(requestAnimationFrame);
  }, place);
}

// Points at something until the page shows that it noticed: it may still move while it is drawn.
export async function pointAt(page, there, noticed) {
  const end = Date.now() + PATIENCE_MS;
  for (;;) {
    await page.mouse.move(0, 0);
    await there.hover();
    try {
      return await page.waitForFunction(noticed, null, { timeout: 2_000 });
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

// Faults that keep people out, as axe-core finds them.
export async function judged(page, where) {
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axeSource);
  const found = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  const serious = found.violations.filter((fault) => ['serious', 'critical'].includes(fault.impact));
  const told = serious.map((fault) => `${fault.id}: ${fault.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(' | ')}`);
  same(told, [], `axe-core at ${where}`);
}

// Kept where $PAGE_SHOTS says, for people to look at.
export async function shot(page, name) {
  const folder = process.env.PAGE_SHOTS;
  if (!folder) return;
  await mkdir(folder, { recursive: true });
  // Commands of shells are fetched row by row.
  await page.waitForFunction(() => !document.querySelector('.fall .rest bdi:empty'));
  await writeFile(join(folder, `${name}.png`), palette(await page.screenshot()));
}
