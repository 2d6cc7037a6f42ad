// The filters of the Activity view behind "More filters": a session by the end of its id, a resource by
// its name or a part of it, and the containers of it. Each narrows what is there and what comes in.
import { addressed, check, goTo, outside, same, scenario, scene, signIn } from './browser.mjs';

await scenario(async ({ page }) => {
  await signIn(page);
  await goTo(page, '#/activity?server=s');
  const rows = page.locator('tr[data-id]');
  const count = (wanted) => page.waitForFunction((number) => document.querySelectorAll('tr[data-id]').length === number, wanted);
  const call = (who, path) => outside('call', { who, path });
  const agents = async () => [...new Set(await rows.locator('td:nth-last-child(2)').allInnerTexts())];
  await count(scene.calls);
  await page.getByText('More filters').click();

  // A resource by its name, then with whatever contains it.
  await page.getByLabel('Resource').fill('/shared/plan.md');
  await count(2);
  await addressed(page, 'target_resource=%2Fshared%2Fplan.md');
  same(await rows.filter({ hasText: '/shared/plan.md' }).count(), 2);
  await page.getByLabel('Containers').check();
  await count(3);
  await addressed(page, 'containers=true');
  await call('one', '/shared');
  await call('one', '/shared/other.md');
  await call('one', '/shared/plan.md');
  await count(5);
  same(await rows.filter({ hasText: 'other.md' }).count(), 0, 'what lies beside it stays out');
  await page.reload();
  await count(5);
  check(await page.getByLabel('Containers').isChecked(), 'the address keeps the switch');
  same(await page.getByLabel('Resource').inputValue(), '/shared/plan.md');
  await page.getByLabel('Containers').uncheck();
  await count(3);

  // A part of a name, and a slip in it.
  await page.getByLabel('Resource').fill('/shared/*');
  await count(4);
  await page.getByLabel('Resource').fill('*/plan*');
  await count(3);
  await page.getByLabel('Resource').fill('/shared/plan.m');
  await page.getByRole('button', { name: '/shared/plan.md', exact: true }).click();
  await count(3);

  // A session by the end of its id, with the other filter and alone.
  await page.getByLabel('Session').fill(scene.other.slice(-8));
  await count(1);
  await addressed(page, `session_id=${scene.other.slice(-8)}`);
  await page.getByLabel('Resource').fill('');
  await count(scene.ofOther);
  same((await agents()).length, 1, 'one agent');
  await call('one', '/shared/late.md');
  await call('other', '/shared/late.md');
  await count(scene.ofOther + 1);
  same((await agents()).length, 1, 'no other agent came in');
  await page.reload();
  await count(scene.ofOther + 1);
  await page.getByLabel('Session').fill(scene.one);
  await count(scene.calls - scene.ofOther + 4);
  await page.getByLabel('Session').fill('no-such-session');
  await page.getByText('No matching records').waitFor();
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await page.waitForFunction(() => !/session_id|target_resource|containers/.test(location.hash));
  await rows.filter({ hasText: '/elsewhere' }).first().waitFor();
});
