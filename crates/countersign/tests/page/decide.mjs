// Deciding: a changed tool is read and approved, a server locked, a token made and revoked; each
// time a real client finds it so.
import { check, goTo, outside, same, scenario, signIn } from './browser.mjs';

await scenario(async ({ page, faults }) => {
  await signIn(page);
  await page.locator('nav .badge', { hasText: '2' }).waitFor();
  await goTo(page, '#/servers?server=s&status=pending_approval');
  await page.locator('tr[data-id="s:say"]').click();
  const details = page.getByRole('complementary', { name: 'Details' });
  await details.getByText('changed since it was approved').waitFor();
  const [old, now] = [details.locator('td.old'), details.locator('td.new')];
  check((await old.innerText()).includes('"Says something"'), await old.innerText());
  check((await now.innerText()).includes('"Says something else'), await now.innerText());
  same(await now.locator('.hidden-char').innerText(), '⟨U+200B⟩', 'what it hides is visible');

  let answer = await outside('call', { operation: 'read', tool: 's:say', args: {} });
  same(answer.code, 'TOOL_BLOCKED');
  await details.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve' }).click();
  await details.getByText('callable').waitFor();
  answer = await outside('call', { operation: 'read', tool: 's:say', args: {} });
  same(answer.code, null, 'the client can call it now');
  await page.locator('nav .badge', { hasText: '1' }).waitFor();

  // A tool is switched off, and on again.
  await details.getByRole('button', { name: 'Disable' }).click();
  await details.getByText('disabled by user').waitFor();
  same((await outside('call', { operation: 'read', tool: 's:say', args: {} })).code, 'TOOL_BLOCKED');
  await details.getByRole('button', { name: 'Enable' }).click();
  await details.getByText('callable').waitFor();

  // The whole server is locked, and approved again.
  await goTo(page, '#/servers');
  await page.getByRole('button', { name: 'Quarantine' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Quarantine' }).click();
  await page.locator('.servers .state').getByText('quarantined').waitFor();
  same((await outside('call', { operation: 'read', tool: 's:say', args: {} })).code, 'TOOL_BLOCKED');
  await page.getByRole('link', { name: 'Review' }).click();
  await page.getByRole('region', { name: 'Definition' }).getByText('"command"').waitFor();
  await page.getByRole('button', { name: 'Approve server' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Approve server' }).click();
  await page.locator('.card.server .state').getByText('ready').waitFor();
  same((await outside('call', { operation: 'read', tool: 's:say', args: {} })).code, null);

  // A token is made, works, and is revoked.
  await goTo(page, '#/tokens');
  await page.getByText('No tokens yet').waitFor();
  await page.getByText('Create a token').click();
  await page.getByLabel('Name', { exact: true }).fill('ci');
  await page.getByRole('button', { name: 'Create token' }).click();
  const secret = await page.getByRole('status', { name: 'The new token' }).locator('pre').innerText();
  check(secret.startsWith('cst_'), 'the secret is shown');
  same((await outside('call as', { token: secret })).code, null, 'it works');
  await page.getByRole('button', { name: 'I have saved it' }).click();
  check(!(await page.content()).includes(secret), 'it is shown once');
  await page.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await page.locator('tbody').getByText('revoked').waitFor();
  same((await outside('call as', { token: secret })).code, 401, 'it no longer works');
  await page.getByText('Create a token').click();
  await page.getByText('Create a token').click();
  await page.getByLabel('Name', { exact: true }).fill('not a name');
  await page.getByRole('button', { name: 'Create token' }).click();
  await page.getByRole('alert').getByText('INVALID_REQUEST').waitFor();
  // Browsers note each refusal on the console; this one was asked for.
  same(faults.splice(0).filter((fault) => !fault.includes('400')), [], 'other complaints');
});
