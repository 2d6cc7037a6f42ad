// What was touched: commands and file names in the list, differences in the details, filters, groups
// and the pause; then the same files as lanes, with one sentence for each meeting.
import { addressed, check, goTo, outside, same, scenario, signIn, WIDTHS } from './browser.mjs';

await scenario(async ({ page, context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']);
  const copied = () => page.evaluate(() => navigator.clipboard.readText());
  await signIn(page);
  await goTo(page, '#/activity');
  const choice = (name) => page.locator('.field').filter({ has: page.getByText(name, { exact: true }) }).locator('select');
  const row = (text) => page.locator('tr[data-id]').filter({ hasText: text });

  // A command stands in the column of targets, and a file's name is whole however long its path is.
  await row('workspace:Bash').getByText('echo a-command-to-read').waitFor();
  const name = row('workspace:Edit').locator('.middle-tail').first();
  same(await name.innerText(), '/the-plan-of-the-day.md');
  check(await name.evaluate((tail) => tail.scrollWidth <= tail.clientWidth), 'the name is not cut');
  check((await row('workspace:Edit').locator('.middle').first().getAttribute('title')).endsWith('/and-another-one-that-is-longer/the-plan-of-the-day.md'), 'the whole path on hover');
  check(await row('workspace:Edit').locator('.middle-head').first().evaluate((head) => head.scrollWidth > head.clientWidth), 'the middle is');

  // A refused call says its class and what it was about.
  const refused = row('SERVER_MISMATCH');
  for (const word of ['refused', 'destructive', 'echo refused']) await refused.getByText(word).first().waitFor();

  // Details lie over the columns, which stay as they are.
  const columns = () => page.locator('.list th').evaluateAll((heads) => heads.map((head) => head.offsetWidth));
  const before = await columns();
  await row('workspace:Edit').click();
  const details = page.getByRole('complementary', { name: 'Details' });
  await details.locator('td.old').getByText('second line').waitFor();
  await details.locator('td.new').getByText('changed line').waitFor();
  const opened = new URLSearchParams(page.url().split('?')[1]).get('open');
  same(await columns(), before, 'no column was pushed out');
  await details.locator('.tree .key', { hasText: 'old_string' }).waitFor();
  await details.getByRole('button', { name: 'Copy Arguments' }).click();
  same(JSON.parse(await copied()).new_string, 'changed line');
  await details.getByRole('button', { name: 'Copy the target' }).click();
  check((await copied()).endsWith('/the-plan-of-the-day.md'), 'the whole path is copied');
  // The next row opens in its place.
  const title = await details.getByRole('heading').first().innerText();
  await page.keyboard.press('j');
  await page.waitForFunction((last) => document.querySelector('.beside h2')?.innerText !== last && document.querySelector('.beside .facts'), title);
  await page.keyboard.press('Escape');

  // Filters by agent, server and period stand in the address.
  const all = await page.locator('tr[data-id]').count();
  const agents = await choice('Agent').locator('option').allInnerTexts();
  const session = agents.find((agent) => agent.includes('#'));
  await choice('Agent').selectOption(session);
  await page.waitForFunction((count) => { const rows = document.querySelectorAll('tr[data-id]').length; return rows > 0 && rows < count; }, all);
  await choice('Server').selectOption('workspace');
  await choice('Period').selectOption('1h');
  for (const part of ['agent=', 'server=workspace', 'since=1h']) await addressed(page, part);
  await page.reload();
  await page.locator('tr[data-id]').first().waitFor();
  same(await choice('Agent').inputValue(), session);
  same(await choice('Period').inputValue(), '1h');

  // Groups: each session has a heading.
  await goTo(page, '#/activity?group=session&server=workspace');
  await page.locator('tr.heading').nth(1).waitFor();
  same(await page.locator('tr.heading').count(), 2, 'two agents');
  await goTo(page, '#/activity?group=run&server=workspace');
  await page.locator('tr.heading').getByText('outside of runs').waitFor();

  // A paused list keeps still; what is new is one click away.
  await goTo(page, '#/activity?server=workspace');
  await row('workspace:Bash').first().waitFor();
  const count = () => page.locator('tr[data-id]').count();
  const still = await count();
  await page.getByRole('button', { name: 'Pause' }).click();
  await outside('read');
  const more = page.getByRole('button', { name: 'Show 1 new record' });
  await more.waitFor();
  same(await count(), still, 'nothing moved');
  await more.click();
  await page.waitForFunction((last) => document.querySelectorAll('tr[data-id]').length === last + 1, still);
  await page.getByRole('button', { name: 'Resume' }).click();
  await outside('read');
  await page.waitForFunction((last) => document.querySelectorAll('tr[data-id]').length === last + 2, still);

  // Lanes: the meeting in one sentence, which leads to what was read and what was written.
  await goTo(page, '#/contention?q=shared.md');
  const lane = page.locator('.lane').filter({ hasText: 'shared.md' });
  await lane.locator('.stale-read .sentence').first().waitFor();
  await page.waitForFunction(() => / wrote it .* after .* read it; .* then wrote over it/.test(document.querySelector('.lane .stale-read .sentence')?.innerText.replaceAll('\n', ' ')));
  check(await lane.locator('.lane-mark rect.write').count() >= 2, 'two wrote');
  check(await lane.locator('.lane-mark circle.read').count() >= 1, 'one read');
  await lane.locator('g.strand.stale-read').first().waitFor({ state: 'attached' });
  await lane.locator('.stale-read .sentence').first().click();
  await details.locator('td.old').getByText('what was read').waitFor();
  await details.locator('td.new').getByText('what one wrote').first().waitFor();
  await details.locator('.calls a').first().waitFor();
  await page.keyboard.press('Escape');

  // A filter that fits nothing says so; a small screen has the sentences alone.
  await page.getByLabel('Search').fill('no-such-file');
  await page.getByText('No matching meetings').waitFor();
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await page.setViewportSize(WIDTHS.narrow);
  await page.waitForFunction(() => document.querySelector('.sentence') && !document.querySelector('.lane-picture'));
  await page.setViewportSize(WIDTHS.wide);

  // What is on its way has a skeleton, and times are absolute on hover.
  let answer;
  const asked = new Promise((resolve) => { answer = resolve; });
  await page.route('**/api/v1/agents', async (route) => { await asked; await route.continue(); });
  await goTo(page, '#/clients');
  await page.locator('.loading .bone').first().waitFor();
  answer();
  await page.locator('.loading').waitFor({ state: 'detached' });
  const times = await page.locator('time').evaluateAll((all) => all.map((time) => `${time.innerText}: ${time.title}`));
  check(times.length > 0 && times.every((time) => /^(now|.* ago): \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} /.test(time)), times.join());
  await page.unroute('**/api/v1/agents');

  // To anywhere by name, and the keys in sight.
  await page.keyboard.press('Control+k');
  for (const [text, kind, words] of [['workspace', 'server', 'workspace'], [session, 'agent', session], ['add a', 'action', 'Add a server'], ['runs', 'view', 'Runs'], [opened, 'record', opened]]) {
    await page.getByRole('combobox', { name: 'Go to' }).fill(text);
    await page.getByRole('option').filter({ hasText: kind }).filter({ hasText: words }).first().waitFor();
  }
  await page.keyboard.press('Enter');
  await page.waitForFunction((id) => location.hash.includes(id), opened);
  await details.getByText(opened).waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Go to' }).fill('workspace:ba');
  await page.getByRole('option', { name: /workspace:Bash/ }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => location.hash.includes('tool=Bash'));
  await details.getByText('call_tool_destructive').first().waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('?');
  await page.getByRole('dialog', { name: 'Keys' }).getByText('search in this view').waitFor();
});
