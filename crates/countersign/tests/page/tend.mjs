// What needs a person: it is first on the overview, one click from its cure; tools are reviewed one by
// one with the keyboard; a server is pasted and lands in quarantine; one is restarted; clients have been
// seen.
import { check, goTo, outside, same, scenario, scene, signIn } from './browser.mjs';

await scenario(async ({ page, context }) => {
  await context.grantPermissions(['notifications']);
  // Notices are shown by the system; here they are only counted. A tab in front gets none.
  await page.addInitScript(() => {
    window.noticed = [];
    window.Notification = class { static permission = 'granted'; static requestPermission = async () => 'granted'; constructor(title, { body }) { window.noticed.push(body); } close() {} };
    document.hasFocus = () => false;
  });
  await signIn(page);
  await page.getByText('Nothing needs you').waitFor();
  await page.getByRole('button', { name: 'Notices: off' }).click();
  await page.getByRole('button', { name: 'Notices: on' }).waitFor();

  await outside('grow');
  const need = page.locator('.needs li').filter({ hasText: 'has 3 items to review' });
  await need.waitFor();
  await page.waitForFunction(() => window.noticed.includes('3 tools wait for review'));
  await need.getByRole('link', { name: 'Review' }).click();

  // One by one: a approves what is shown and nothing else, s skips.
  const details = page.getByRole('complementary', { name: 'Details' });
  await details.getByText('1 of 3').waitFor();
  const first = (await details.getByRole('heading').first().innerText()).replace('s:', '');
  await page.keyboard.press('s');
  await details.getByText('2 of 3').waitFor();
  const second = (await details.getByRole('heading').first().innerText()).replace('s:', '');
  check(first !== second, 'another one is shown');
  await details.locator('td.new').first().waitFor();
  await page.keyboard.press('a');
  await details.getByText('3 of 3').waitFor();
  await details.getByRole('button', { name: 'Skip' }).click();
  await details.getByText('1 approved, 2 skipped').waitFor();
  same((await outside('call', { tool: `s:${first}` })).code, 'TOOL_BLOCKED', 'what was skipped still waits');
  same((await outside('call', { tool: `s:${second}` })).code, null, 'what was approved can be called');
  await page.keyboard.press('Escape');
  await details.waitFor({ state: 'detached' });

  // A block from a README becomes a server in quarantine, which has not been started.
  await goTo(page, '#/servers?add=yes');
  await page.getByLabel('Paste a JSON block').fill('{"mcpServers": {"pasted": {"command": "no-such-program", "args": ["--flag", "two words"]}}}');
  await page.locator('.found').getByText('no-such-program --flag two words').waitFor();
  await page.getByRole('button', { name: 'Add to quarantine' }).click();
  await page.waitForFunction(() => location.hash.includes('server=pasted'));
  await page.locator('.card.server .state').getByText('quarantined').waitFor();
  same(await outside('server'), { state: 'quarantined', command: 'no-such-program', args: ['--flag', 'two words'] });
  await goTo(page, '#/overview');
  await page.locator('.needs li').filter({ hasText: 'pasted is in quarantine' }).waitFor();

  // A server in quarantine is inspected: what it lists can be read, and not called, until it is approved.
  await goTo(page, '#/servers?add=yes');
  await page.getByLabel('Paste a JSON block').fill(scene.block);
  await page.getByRole('button', { name: 'Add to quarantine' }).click();
  await page.waitForFunction(() => location.hash.includes('server=second'));
  await page.getByText('It was not started yet').waitFor();
  await page.waitForTimeout(1_500); // until the events of the addition have been answered
  await page.getByRole('button', { name: 'Inspect' }).click();
  await page.getByRole('region', { name: 'Tools' }).getByText('second:look').waitFor();
  await page.getByText('The approval includes 1 item').waitFor();
  same((await outside('call', { tool: 'second:look' })).code, 'TOOL_BLOCKED', 'nobody has approved it');
  await page.getByRole('button', { name: 'Approve server' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve server' }).click();
  await page.getByText('To be approved').waitFor({ state: 'detached' });
  same((await outside('call', { tool: 'second:look' })).code, null, 'now it can be called');

  // One that cannot start is down, and one click from why.
  await goTo(page, '#/servers?server=pasted');
  await page.getByRole('button', { name: 'Approve server' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve server' }).click();
  await goTo(page, '#/overview');
  const down = page.locator('.needs li').filter({ hasText: 'pasted is down' });
  await down.getByRole('link', { name: 'Open' }).click();
  await page.locator('.card.server .notice.bad').getByText('no-such-program').waitFor();

  // Restarting a server ends its process and starts another; its log is shown as it is written.
  await goTo(page, '#/servers?server=s&log=yes');
  await page.getByText('The log is empty.').waitFor();
  await page.getByRole('button', { name: 'Restart' }).click();
  await outside('restarted');
  await page.locator('.card.server .state').getByText('ready').waitFor();
  for (const message of ['the disk is full', 'and so is the cup']) {
    same((await outside('complain', { message })).code, null);
    await page.getByRole('region', { name: 'Log' }).getByText(message).waitFor();
  }

  // Clients, with what was last seen.
  await goTo(page, '#/clients');
  await page.getByText('countersign connect claude', { exact: true }).waitFor();
  await page.getByRole('region', { name: 'Agents seen' }).locator('tbody tr').first().waitFor();
});
