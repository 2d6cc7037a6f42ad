// More records than a page holds: what is new waits for whoever reads further down. With a hundred
// thousand of them (`scene.isTimed`) every view is also quick to open, and the list smooth to scroll and
// to watch, bounded in memory.
import { check, goTo, outside, same, scenario, scene, signIn } from './browser.mjs';

const LONG_MS = 100;
const PAINT_MS = 1_000;
const HEAP_GROWTH_MAX = 60 * 1024 * 1024;

// Each view, and what is there when it is complete.
const VIEWS = [
  ['overview', '#/overview?period=24h', '.chart rect.bar'],
  ['activity', '#/activity', 'tr[data-id]'],
  ['activity by session', '#/activity?group=session', 'tr.heading'],
  ['activity by run', '#/activity?group=run', 'tr.heading'],
  ['servers', '#/servers', '.servers td'],
  ['receipts', '#/receipts', '.entries tr[data-id]'],
  ['contention', '#/contention', '.lane .sentence'],
  ['graph', '#/contention?shape=graph', 'g.strand .line'],
  ['runs', '#/runs', '.empty'],
  ['clients', '#/clients', '.client'],
  ['tokens', '#/tokens', '.empty'],
];

// Opens every view anew; the first paint is in time, and no task on the way to all of it is long.
async function openedQuickly(page) {
  for (const [name, place, ready] of VIEWS) {
    await goTo(page, place);
    await page.reload();
    await page.locator(ready).first().waitFor({ state: 'attached' });
    await page.locator('.loading').first().waitFor({ state: 'detached' });
    // What the events of the beginning ask for again is part of opening it.
    await page.locator('.stream.live').waitFor();
    await page.waitForFunction(() => performance.now() > 3_000);
    const [paint, longest] = await page.evaluate(() => [performance.getEntriesByName('first-contentful-paint')[0].startTime, Math.max(0, ...window.longTasks)]);
    console.error(`${name}: first paint ${Math.round(paint)} ms, longest task ${longest < 50 ? 'under 50' : Math.round(longest)} ms`);
    check(paint < PAINT_MS, `${name}: first paint after ${paint} ms`);
    check(longest < LONG_MS, `${name}: a task of ${longest} ms`);
  }
}

await scenario(async ({ page, context }) => {
  await page.addInitScript(() => {
    window.longTasks = [];
    new PerformanceObserver((list) => window.longTasks.push(...list.getEntries().map((task) => task.duration)))
      .observe({ type: 'longtask', buffered: true });
  });
  await signIn(page);
  if (scene.isTimed) await openedQuickly(page);
  await goTo(page, '#/activity');
  await page.locator('tr[data-id]').first().waitFor();
  await page.getByText(new RegExp(`${scene.counted} records`)).waitFor();
  // From here on it is about scrolling and watching.
  await page.evaluate(() => { window.longTasks.length = 0; });
  const devtools = await context.newCDPSession(page);
  const heap = async () => {
    await devtools.send('HeapProfiler.collectGarbage');
    return (await devtools.send('Runtime.getHeapUsage')).usedSize;
  };
  const before = await heap();
  const list = page.locator('.list');
  let height = 0;
  for (let turn = 0; turn < scene.turns; turn += 1) {
    await list.evaluate((box) => { box.scrollTop = box.scrollHeight; });
    const grown = (last) => document.querySelector('.list').scrollHeight > last;
    await page.waitForFunction(grown, height);
    height = await list.evaluate((box) => box.scrollHeight);
  }
  check((await page.locator('tr[data-id]').count()) < 100, 'only rows in sight are in the document');
  const place = await list.evaluate((box) => box.scrollTop);
  await outside('few');
  await page.getByRole('button', { name: 'Show 32 new records' }).waitFor();
  await outside('burst');
  const newer = page.getByRole('button', { name: 'Show newer records' });
  await newer.waitFor();
  same(await list.evaluate((box) => box.scrollTop), place, 'rows stay under their reader');
  await newer.click();
  await page.locator('tr[data-id]').filter({ hasText: 'burst' }).first().waitFor();
  await newer.waitFor({ state: 'hidden' });
  const growth = (await heap()) - before;
  check(growth < HEAP_GROWTH_MAX, `memory grew by ${growth} bytes`);
  const tasks = await page.evaluate(() => window.longTasks);
  if (!scene.isTimed) return;
  check(Math.max(0, ...tasks) < LONG_MS, `long tasks: ${tasks}`);
  console.error(`scrolling and watching: longest task ${Math.round(Math.max(0, ...tasks))} ms, memory grew by ${growth} bytes`);
});
