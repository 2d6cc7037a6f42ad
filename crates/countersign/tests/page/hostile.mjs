// Text of others is shown as text, in every view: no script, no markup, nothing that hides.
import { check, goTo, same, scenario, scene, signIn } from './browser.mjs';

async function harmless(page, where) {
  const found = await page.evaluate(() => ({
    ran: window.hostile ?? null,
    images: document.querySelectorAll('main img[src="x"], main script, main iframe, main b.evil').length,
    wide: document.documentElement.scrollWidth > window.innerWidth,
  }));
  same(found, { ran: null, images: 0, wide: false }, where);
  // Bidi overrides and escapes are visible instead of obeyed, wherever text is.
  const hidden = await page.evaluate(() => /[\u202e\u200b\u001b\u2800\ue041\u{e0041}]/u.test(document.body.innerText));
  check(!hidden, `${where} hides something`);
}

await scenario(async ({ page }) => {
  await signIn(page);
  await page.locator('.figures').waitFor();
  await page.getByText('<img src=x').first().waitFor();
  await harmless(page, 'overview');

  await goTo(page, '#/activity');
  await page.locator('tr[data-id]').first().waitFor();
  await harmless(page, 'activity');
  for (const id of scene.records) {
    await goTo(page, `#/activity?open=${id}`);
    await page.locator('.beside .block').first().waitFor();
    const text = await page.locator('.beside').innerText();
    check(text.includes('<img src=x onerror='), `markup is shown: ${text.slice(0, 800)}`);
    check(text.includes('⟨U+202E⟩') && text.includes('⟨U+001B⟩'), 'what hides is named');
    await harmless(page, `record ${id}`);
  }
  await goTo(page, `#/activity?q=${encodeURIComponent('<img src=x onerror=hostile=1>')}`);
  await page.locator('.counted').getByText('record').waitFor();
  await harmless(page, 'activity with a filter');

  await goTo(page, '#/servers?server=evil');
  await page.locator('tr[data-id]').first().waitFor();
  await harmless(page, 'tools');
  for (const name of scene.tools) {
    await goTo(page, `#/servers?server=evil&tool=${encodeURIComponent(name)}`);
    await page.locator('.beside .verdict').waitFor();
    await harmless(page, `tool ${name.slice(0, 30)}`);
  }
  check((await page.locator('.beside').innerText()).includes('⟨U+202E⟩'), 'the review names what hides');

  // A question names it as well.
  await goTo(page, `#/servers?server=evil&tool=${encodeURIComponent(scene.pending)}`);
  await page.getByRole('button', { name: 'Approve', exact: true }).click();
  const question = await page.locator('dialog .question').innerText();
  check(question.includes('⟨U+202E⟩⟨U+200B⟩⟨U+2800⟩⟨U+E041⟩'), `the question names what hides: ${question}`);
  await harmless(page, 'a question');
  await page.getByRole('button', { name: 'Cancel' }).click();

  await goTo(page, '#/receipts');
  await page.locator('.entries tr[data-id]').first().waitFor();
  await harmless(page, 'receipts');
  await page.locator('.entries tr[data-id]').first().click();
  await page.locator('.beside .block').waitFor();
  await harmless(page, 'a receipt');

  await goTo(page, '#/contention');
  await page.locator('.sentence').first().waitFor();
  await page.locator('g.strand').first().waitFor({ state: 'attached' });
  await harmless(page, 'lanes');
  await goTo(page, '#/contention?shape=graph');
  await page.locator('.graph g.strand').first().waitFor({ state: 'attached' });
  await harmless(page, 'contention');
  await page.locator('.edges tr[data-id]').first().click();
  await page.locator('.calls a').first().waitFor();
  await harmless(page, 'an edge');

  await goTo(page, '#/runs');
  await page.locator('tr[data-id]').first().click();
  await page.locator('.step').first().waitFor();
  await harmless(page, 'a run');
  await goTo(page, '#/servers?review=yes');
  await page.locator('.review-bar').waitFor();
  await harmless(page, 'a review');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Go to' }).fill('evil');
  await page.getByRole('option').filter({ hasText: '<img src=x' }).first().waitFor();
  await harmless(page, 'the finder');
  await page.keyboard.press('Escape');
  await goTo(page, '#/activity?group=session');
  await page.locator('tr.heading').first().waitFor();
  await harmless(page, 'groups');
  await goTo(page, '#/clients');
  await page.getByRole('region', { name: 'Agents seen' }).waitFor();
  await harmless(page, 'clients');
  await goTo(page, '#/tokens');
  await page.getByRole('heading', { name: 'Tokens' }).waitFor();
  await harmless(page, 'tokens');
});
