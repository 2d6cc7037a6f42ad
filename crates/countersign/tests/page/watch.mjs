// Watching: a call appears without a reload, filters stand in the address, the keyboard is enough.
import { addressed, check, goTo, outside, same, scenario, signIn } from './browser.mjs';

await scenario(async ({ page, context, faults }) => {
  await signIn(page);
  await goTo(page, '#/activity');
  await page.getByText('No calls yet').waitFor();
  await page.locator('.stream.live').waitFor();

  // Live: the list was loaded before the call was made.
  await page.evaluate(() => { window.isTheSamePage = true; });
  await outside('call', { operation: 'read', tool: 's:echo', args: { path: '/notes/one.md' } });
  const row = page.locator('tr[data-id]').filter({ hasText: 's:echo' });
  await row.waitFor();
  check(await row.getByText('success').isVisible(), 'its status is shown');
  await outside('call', { operation: 'read', tool: 's:wipe', args: {} });
  await page.locator('tr[data-id]').filter({ hasText: 's:wipe' }).getByText('refused').waitFor();
  check(await page.evaluate(() => window.isTheSamePage), 'nothing was reloaded');

  // What happens while the connection is lost is told when it is back.
  await context.setOffline(true);
  await page.evaluate(() => fetch('/healthz').catch(() => {}));
  await outside('call', { operation: 'read', tool: 's:echo', args: { path: '/notes/missed.md' } });
  await context.setOffline(false);
  await page.locator('tr[data-id]').filter({ hasText: 'missed.md' }).waitFor();
  await page.locator('.stream.live').waitFor();
  const lost = (fault) => fault.includes('ERR_INTERNET_DISCONNECTED');
  same(faults.splice(0).filter((fault) => !lost(fault)), [], 'other complaints');

  // A gate that is gone is said where one looks, and so is its return.
  let isCut = true;
  await page.route('**/api/v1/events', (route) => (isCut ? route.abort() : route.continue()));
  await page.reload();
  await page.getByText('The gate does not respond').waitFor();
  isCut = false;
  await page.getByText('The gate is back.').waitFor();
  await page.unroute('**/api/v1/events');
  same(faults.splice(0).filter((fault) => !fault.includes('ERR_FAILED')), [], 'other complaints');

  // Filters narrow what is there and what comes, and are in the address.
  await page.getByLabel('Status').selectOption('blocked');
  await page.waitForFunction(() => document.querySelectorAll('tr[data-id]').length === 1);
  await addressed(page, 'status=blocked');
  await outside('call', { operation: 'read', tool: 's:echo', args: {} });
  await outside('call', { operation: 'read', tool: 's:wipe', args: {} });
  await page.waitForFunction(() => document.querySelectorAll('tr[data-id]').length === 2);
  same(await page.locator('tr[data-id]').filter({ hasText: 's:echo' }).count(), 0);
  await page.reload();
  await page.waitForFunction(() => document.querySelectorAll('tr[data-id]').length === 2);
  same(await page.getByLabel('Status').inputValue(), 'blocked');
  await page.goBack();
  await page.waitForFunction(() => document.querySelectorAll('tr[data-id]').length === 6); // with the sign-in

  // The declared operation and the effective class narrow independently; a refused call has both.
  const rows = (number) => page.waitForFunction((wanted) => document.querySelectorAll('tr[data-id]').length === wanted, number);
  await page.getByLabel('Class').selectOption('destructive');
  await rows(2);
  await page.getByLabel('Declared').selectOption('write');
  await page.getByText('No matching records').waitFor();
  await page.getByLabel('Declared').selectOption('read');
  await rows(2);
  await addressed(page, 'intent_type=read');
  await outside('call', { operation: 'write', tool: 's:wipe', args: {} });
  await outside('call', { operation: 'read', tool: 's:wipe', args: {} });
  await rows(3);
  await page.reload();
  await rows(3);
  same(await page.getByLabel('Declared').inputValue(), 'read');
  await page.getByLabel('Class').selectOption('');
  await rows(6);
  await page.getByLabel('Declared').selectOption('');
  await rows(8);

  // A folder, and a slip in its name.
  await page.getByText('More filters').click();
  await page.getByLabel('Under').fill('/notes');
  await rows(2);
  await addressed(page, 'under=%2Fnotes');
  await page.getByLabel('Access').selectOption('write');
  await page.getByText('No matching records').waitFor();
  await page.getByLabel('Access').selectOption('read');
  await rows(2);
  await page.getByLabel('Under').fill('/note');
  await page.getByRole('button', { name: '/notes', exact: true }).click();
  await rows(2);
  await page.getByLabel('Access').selectOption('');
  await page.getByLabel('Under').fill('');
  await rows(8);
  await page.keyboard.press('Escape'); // out of the field

  // By keyboard alone: to the search, to a row, into it and out of it.
  await page.keyboard.press('/');
  await page.keyboard.type('one.md');
  await page.waitForFunction(() => document.querySelectorAll('tr[data-id]').length === 1);
  await addressed(page, 'q=one.md');
  await page.keyboard.press('Escape');
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  const details = page.getByRole('complementary', { name: 'Details' });
  await details.getByText('/notes/one.md').first().waitFor();
  for (const word of ['Intent', 'Target', 'Receipt', 'Trace', 'Arguments', 'Result', 'because of a test']) {
    check(await details.getByText(word).first().isVisible(), `the details tell of ${word}`);
  }
  const url = page.url();
  check(url.includes('open='), url);
  await page.keyboard.press('Escape');
  await details.waitFor({ state: 'detached' });
  await page.keyboard.press('Tab');
  await page.goto(url);
  await page.reload();
  await details.getByText('/notes/one.md').first().waitFor();

  // The first stop of the keyboard leads past the views.
  await goTo(page, '#/overview');
  await page.locator('.figures').waitFor();
  await page.reload();
  await page.locator('.figures').waitFor();
  await page.keyboard.press('Tab');
  same(await page.evaluate(() => document.activeElement.textContent), 'Skip to content');
  await page.keyboard.press('Enter');
  same(await page.evaluate(() => document.activeElement.id), 'main');

  // The overview counts along.
  const calls = page.locator('.figures li').filter({ hasText: 'calls' }).locator('.figure');
  same(await calls.innerText(), '7');
  await outside('call', { operation: 'read', tool: 's:echo', args: {} });
  await page.waitForFunction(() => document.querySelector('.figures .figure').textContent === '8');
  check(await page.locator('.chart rect.read').count() > 0, 'the chart has bars');

  // A slow answer is waited for, whatever happens meanwhile.
  let [answer, isFirst, isLost] = [null, true, false];
  const slow = new Promise((resolve) => { answer = resolve; });
  page.on('requestfailed', (request) => { isLost ||= request.url().includes('/activity/summary'); });
  await page.route('**/api/v1/activity/summary*', async (route) => {
    if (isFirst) { isFirst = false; await slow; }
    await route.continue();
  });
  let looks = 0;
  page.on('request', (request) => { looks += request.url().includes('/api/v1/status') ? 1 : 0; });
  await goTo(page, '#/overview?period=24h');
  // After a call the page fetches the status again, later than it would fetch the summary.
  const before = looks;
  let made = 8;
  while (looks < before + 2) {
    const look = page.waitForRequest(/\/api\/v1\/status/);
    await outside('call', { operation: 'read', tool: 's:echo', args: {} });
    made += 1;
    await look;
  }
  answer();
  await page.waitForFunction((calls) => document.querySelector('.figures .figure')?.textContent === String(calls), made);
  check(!isLost, 'the request was not given up');

  // The answer of a server that died is lost: the call may have taken effect, which is no failure.
  check(await page.locator('.figures').getByText('outcome unknown').count() === 0, 'no outcome is unknown yet');
  same((await outside('call', { operation: 'write', tool: 's:die', args: {} })).code, 'OUTCOME_UNKNOWN');
  const unknown = page.locator('.figures li').filter({ hasText: 'outcome unknown' });
  await unknown.waitFor();
  same(await unknown.locator('.figure').innerText(), '1');
  await goTo(page, '#/activity');
  await page.locator('tr[data-id]').filter({ hasText: 's:echo' }).first().waitFor();
  const died = page.locator('tr[data-id]').filter({ hasText: 's:die' });
  same((await died.locator('.state').innerText()).replace(/\W/g, ''), 'unknown');
  check(await died.getByText('OUTCOME_UNKNOWN', { exact: true }).isVisible(), 'the row shows the code');
  await page.getByLabel('Status').selectOption('unknown');
  await rows(1);
  await addressed(page, 'status=unknown');
  same(await died.count(), 1);
  same(await page.locator('tr[data-id]').filter({ hasText: 's:echo' }).count(), 0);
  await died.click();
  await details.getByText('may have taken effect').waitFor();
});
