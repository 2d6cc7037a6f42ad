// Many items wait: the same change in some of them is approved by one decision, and then all that is
// left. Nothing is approved before the question is answered.
import { goTo, outside, same, scenario, signIn } from './browser.mjs';

async function codes() {
  const found = [];
  for (const tool of ['one', 'two', 'three', 'four']) {
    found.push((await outside('call', { operation: 'write', tool: `s:${tool}`, args: {} })).code);
  }
  return found;
}

await scenario(async ({ page }) => {
  const blocked = 'TOOL_BLOCKED';
  await signIn(page);
  await goTo(page, '#/servers?server=s');
  const all = page.getByRole('button', { name: 'Approve all 4 pending' });
  await all.click();
  await page.getByRole('dialog').getByText('Approve all pending items of').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  same(await codes(), [blocked, blocked, blocked, blocked], 'nothing was approved');

  await goTo(page, '#/servers?server=s&tool=one');
  const details = page.getByRole('complementary', { name: 'Details' });
  await details.getByText('The same change waits in 1 other item: two').waitFor();
  await details.getByRole('button', { name: 'Approve this change in all 2' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve this change in all 2' }).click();
  await details.getByText('callable').waitFor();
  same(await codes(), [null, null, blocked, blocked], 'the same change alone');

  await goTo(page, '#/servers?server=s');
  await page.getByRole('button', { name: 'Approve all 2 pending' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve all 2 pending' }).click();
  await page.getByRole('button', { name: 'Approve all' }).first().waitFor({ state: 'detached' });
  same(await codes(), [null, null, null, null], 'all that was left');
});
