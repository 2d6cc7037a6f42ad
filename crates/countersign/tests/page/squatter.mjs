// A program that had the port before the gate left a service worker in the browser. It answers at the
// plain address of the gate for good, and learns nothing of the page.
import { check, goTo, outside, same, scenario, scene, signIn, watch } from './browser.mjs';

const WORKER = 'the worker answers';

await scenario(async ({ page, context, faults }) => {
  const left = await context.newPage();
  await left.goto(scene.plain);
  await left.waitForFunction(() => navigator.serviceWorker.controller);
  await outside('serve');

  // Control: it stands between the browser and the gate, and reads what a link to there would carry.
  const lured = await context.newPage();
  for (const path of ['/#code=csl_control', '/oauth/callback?code=authorization&state=control']) {
    await lured.goto(scene.plain + path);
    await lured.getByText(WORKER).waitFor();
    await outside('seen', { part: path });
  }
  await lured.evaluate(() => {
    window.heard = [];
    const channel = new BroadcastChannel('countersign.tabs');
    channel.onmessage = ({ data }) => window.heard.push(data);
    window.ask = () => channel.postMessage({ asks: 'lured' });
  });

  await signIn(page);
  check(/^http:\/\/gate-[0-9a-f]{32}\.localhost:/.test(scene.origin), scene.origin);
  await page.locator('.stream.live').waitFor();
  same(await page.evaluate(() => navigator.serviceWorker.controller), null, 'nothing controls the page');
  await lured.evaluate(() => window.ask());
  // A tab of the page itself is answered, after the other one would have been.
  const other = await context.newPage();
  watch(other, faults);
  await other.goto(scene.origin);
  await other.getByRole('heading', { name: 'Overview' }).waitFor();
  same(await lured.evaluate(() => window.heard), [], 'the channel answers tabs of the page alone');
  await goTo(page, '#/activity');
  await page.getByText('No calls yet').waitFor();

  const { seen } = await outside('all seen');
  const name = new URL(scene.origin).hostname;
  const secret = seen.filter((what) => what.includes(name) || /csl_(?!control)|css_|csc_/.test(what));
  same(secret, [], 'the worker saw the page');

  // The gate's own answer at the plain address, once the browser asks for the worker's script again.
  await lured.evaluate(async () => (await navigator.serviceWorker.getRegistration())?.update().catch(() => {}));
  await lured.waitForFunction(async () => !(await navigator.serviceWorker.getRegistration()));
  await lured.goto(scene.plain);
  await lured.getByText("'countersign page' prints a link").waitFor();
});
