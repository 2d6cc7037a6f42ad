// Proving: a chain is whole, a changed copy is broken at its place; the graph leads to the calls
// behind its edges; a run has steps.
import { check, goTo, outside, same, scenario, scene, signIn } from './browser.mjs';

await scenario(async ({ page }) => {
  await signIn(page);
  await goTo(page, '#/receipts');
  await page.getByRole('button', { name: /^Verify chain/ }).first().click();
  const outcome = page.locator('.outcome');
  await outcome.getByText('✓ Intact.').waitFor();
  // The sign-in has a receipt as well.
  check((await outcome.innerText()).includes(`${scene.length + 1} receipts`), await outcome.innerText());
  await page.getByRole('button', { name: 'Verify all chains' }).click();
  await outcome.getByRole('heading', { name: 'All chains' }).waitFor();
  await outcome.getByText('✓ Intact.').first().waitFor();
  await page.getByRole('button', { name: 'Verify copy tampered.jsonl' }).click();
  await outcome.getByText(`Broken at receipt ${scene.broken + 1} of ${scene.length}`).waitFor();
  const broken = outcome.locator('tr[aria-current="true"]');
  same(await broken.locator('td').first().innerText(), String(scene.broken + 1));
  check((await broken.innerText()).includes('✕ broken'), await broken.innerText());
  const before = outcome.locator(`tr[data-id="${scene.broken - 1}"]`);
  check(!(await before.innerText()).includes('broken'), 'what comes before holds');
  await page.getByRole('button', { name: 'Verify copy whole.jsonl' }).click();
  await outcome.getByText('✓ Intact.').waitFor();

  // One receipt as it was signed, and all of them as a file.
  await page.locator('.entries tr[data-id]').first().click();
  const details = page.getByRole('complementary', { name: 'Details' });
  await details.getByText('proofValue').waitFor();
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export all' }).click()]);
  same(file.suggestedFilename(), 'receipts.jsonl');

  // The edges of the graph, as a picture and as a table.
  await goTo(page, '#/contention');
  await page.locator('g.strand.stale-read').first().waitFor({ state: 'attached' });
  const kinds = await page.locator('.edges tr[data-id] .kind').allInnerTexts();
  same([...new Set(kinds.map((kind) => kind.trim()))].sort(), ['both wrote', 'one read, the other wrote', 'wrote after an outdated read']);
  const drawn = await page.locator('g.strand').evaluateAll((strands) => [...new Set(strands.map((s) => s.dataset.edge))].length);
  same(drawn, kinds.length, 'the table says what the picture says');
  const dashes = await page.evaluate(() => ['write-write', 'stale-read', 'read-write']
    .map((kind) => getComputedStyle(document.querySelector(`g.strand.${kind} .line`)).strokeDasharray));
  same(new Set(dashes).size, 3, `each kind has a form of its own: ${dashes}`);
  await page.locator('g.strand.stale-read .hit').first().dispatchEvent('click');
  await details.getByText('The calls behind it').waitFor();
  await details.getByText('did not read it again').waitFor();
  await details.locator('.calls a').first().click();
  await page.getByRole('heading', { name: 'Activity' }).waitFor();
  await details.getByText('/shared/plan.md').first().waitFor();

  // A switch includes containers.
  await goTo(page, '#/contention');
  await page.getByRole('checkbox').check();
  await page.waitForFunction(() => location.hash.includes('containers=true'));
  await page.locator('.edges tr[data-id]').filter({ hasText: 'in /shared' }).first().waitFor();

  // A shorter window finds fewer; nobody meets within ten seconds of an hour ago.
  await goTo(page, '#/contention');
  const slider = page.getByRole('slider');
  await slider.focus();
  await page.keyboard.press('Home');
  await page.waitForFunction(() => location.hash.includes('window=10s'));
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await page.getByRole('button', { name: '125 %' }).waitFor();

  // A run and its steps, with the calls that they made.
  await goTo(page, '#/runs');
  await page.locator('tr[data-id]').filter({ hasText: 'failure' }).click();
  await page.getByText('it took too long').waitFor();
  const step = page.locator('.step').first();
  for (const word of ['refactor', 'timed out', 'TIMEOUT', '1,200 tokens', '1.5 s']) {
    check((await step.innerText()).includes(word), `${word}: ${await step.innerText()}`);
  }
  await step.getByText('What the agent wrote').click();
  await step.getByText('I look at the plan.').waitFor();
  await step.getByText('it was killed').waitFor();
  await step.getByRole('link', { name: 's:put' }).first().click();
  await details.getByText('/shared/plan.md').first().waitFor();

  // A run is told of live.
  await goTo(page, '#/runs');
  await page.locator('tr[data-id]').first().waitFor();
  await outside('run');
  await page.locator('tr[data-id]').filter({ hasText: 'a-new-run' }).waitFor();
});
