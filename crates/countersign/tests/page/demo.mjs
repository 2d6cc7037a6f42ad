// The demo opens on data that shows all of it.
import { check, goTo, same, scenario, signIn } from './browser.mjs';

await scenario(async ({ page }) => {
  await signIn(page);
  await page.locator('nav .badge', { hasText: '1' }).waitFor();
  await page.locator('.chart rect.bar').first().waitFor();

  // Two agents, a refusal.
  await goTo(page, '#/activity?status=blocked');
  await page.locator('tr[data-id]').first().waitFor();
  await goTo(page, '#/activity');
  await page.waitForFunction(() => ['planner#', 'reviewer#'].every((name) => document.querySelector('.list')?.innerText.includes(name)));

  // A locked tool, whose description has changed.
  await goTo(page, '#/servers?server=mail&tool=send_mail');
  const details = page.getByRole('complementary', { name: 'Details' });
  await details.getByText('changed since it was approved').waitFor();
  check((await details.locator('td.new').innerText()).includes('<IMPORTANT>'), 'what it says now is shown');
  same(await details.locator('td.new .hidden-char').innerText(), '⟨U+200B⟩');

  // A copy that was changed, and one that was not.
  await goTo(page, '#/receipts');
  await page.getByRole('button', { name: 'Verify copy tampered.jsonl' }).click();
  await page.locator('.outcome').getByText('Broken at receipt 3 of 9').waitFor();
  await page.getByRole('button', { name: 'Verify copy as-signed.jsonl' }).click();
  await page.locator('.outcome').getByText('✓ Intact.').waitFor();

  // Agents that met, and the run that they were steps of.
  await goTo(page, '#/contention');
  await page.locator('g.strand.stale-read').first().waitFor({ state: 'attached' });
  await goTo(page, '#/runs');
  await page.locator('tr[data-id]').filter({ hasText: 'release-plan' }).click();
  await page.locator('.step').nth(1).waitFor();
  const steps = await page.locator('.step').allInnerTexts();
  same(steps.map((step) => step.includes('notes:write_note')), [true, true], 'each step has its calls');
});
