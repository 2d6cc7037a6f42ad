// Proving: a chain is whole, a changed copy is broken at its place; the graph leads to the calls
// behind its edges; a run has steps.
import { check, goTo, outside, pointAt, same, scenario, scene, signIn } from './browser.mjs';

// Drags a file over the page and lets go of it, as the system of windows does.
async function dropped(page, file) {
  const place = page.getByRole('region', { name: 'Check an export' });
  await place.scrollIntoViewIfNeeded();
  const { x, y, width, height } = await place.boundingBox();
  const devtools = await page.context().newCDPSession(page);
  const drag = (type) => devtools.send('Input.dispatchDragEvent', { type, x: x + width / 2, y: y + height / 2, data: { items: [], files: [file], dragOperationsMask: 1 } });
  await drag('dragEnter');
  await drag('dragOver');
  await page.locator('.drop.over').waitFor();
  await drag('drop');
}

await scenario(async ({ page }) => {
  await signIn(page);
  await goTo(page, '#/receipts');
  const standing = page.getByRole('region', { name: 'Verdict on the ledger' });
  await standing.getByText('The ledger is intact.').waitFor();
  await standing.getByText(/\d+ receipts in \d+ chains?, checked (now|.* ago)/).first().waitFor();
  await page.getByRole('button', { name: /^Verify chain/ }).first().click();
  const outcome = page.locator('.outcome');
  await outcome.getByText('✓ Intact.').waitFor();
  // The sign-in has a receipt as well.
  await outcome.getByText(`${scene.length + 1} receipts`).first().waitFor();
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

  // An export that is dropped on the page, as from a folder, is checked by the same auditor, and not
  // kept; so is one that is chosen.
  await page.getByRole('button', { name: '✕ close' }).click();
  await outcome.waitFor({ state: 'detached' });
  await dropped(page, scene.file);
  await outcome.getByText(`Broken at receipt ${scene.broken + 1} of ${scene.length}`).waitFor();
  await page.locator('.drop input').setInputFiles({ name: 'sent.jsonl', mimeType: 'text/plain', buffer: Buffer.from(scene.tampered) });
  await outcome.getByText('sent.jsonl').waitFor();
  await outcome.getByText(`Broken at receipt ${scene.broken + 1} of ${scene.length}`).waitFor();
  await page.getByRole('button', { name: 'Take the head' }).click();
  // A line to keep elsewhere.
  await page.locator('.head-line code').getByText(/^sha256:[0-9a-f]{64} \d+ /).last().waitFor();

  // One receipt in words and as it was signed, and all of them as a file.
  await page.locator('.entries tr[data-id]').filter({ hasText: 'put' }).first().click();
  const details = page.getByRole('complementary', { name: 'Details' });
  await details.getByText('proofValue').waitFor();
  await details.getByText(/called s:put on \/shared\/plan\.md/).waitFor();
  await details.getByText(/number \d+ of \d+/).waitFor();
  await details.getByRole('button', { name: 'Verify receipt' }).click();
  await details.getByText('signature, link and order are valid').waitFor();
  await page.keyboard.press('Escape');
  await details.waitFor({ state: 'detached' });
  const [file] = await Promise.all([page.waitForEvent('download'), page.getByRole('button', { name: 'Export all' }).click()]);
  same(file.suggestedFilename(), 'receipts.jsonl');

  // The edges of the graph, as a picture and as a table.
  await goTo(page, '#/contention?shape=graph');
  await page.locator('g.strand.stale-read').first().waitFor({ state: 'attached' });
  const kinds = await page.locator('.edges tr[data-id] .kind').allInnerTexts();
  same([...new Set(kinds.map((kind) => kind.trim()))].sort(), ['both wrote', 'one read, the other wrote', 'wrote after an outdated read']);
  const drawn = await page.locator('g.strand').evaluateAll((strands) => new Set(strands.flatMap((s) => s.dataset.edges.split(' '))).size);
  same(drawn, kinds.length, 'the table says what the picture says');
  const dashes = await page.evaluate(() => ['write-write', 'stale-read', 'read-write']
    .map((kind) => getComputedStyle(document.querySelector(`.forms .strand.${kind} .line`)).strokeDasharray));
  same(new Set(dashes).size, 3, `each kind has a form of its own: ${dashes}`);
  // Pointing at an agent dims what it has no part in.
  await pointAt(page, page.locator('.node.agent circle').first(), () => document.querySelectorAll('g.strand.far').length === 1);
  await page.locator('g.strand.stale-read .hit').first().dispatchEvent('click');
  await details.getByText('The calls behind it').waitFor();
  await details.getByText('did not read it again').waitFor();
  await details.locator('.calls a').first().click();
  await page.getByRole('heading', { name: 'Activity' }).waitFor();
  await details.getByText('/shared/plan.md').first().waitFor();

  // A switch includes containers.
  await goTo(page, '#/contention?shape=graph');
  await page.getByRole('checkbox').check();
  await page.waitForFunction(() => location.hash.includes('containers=true'));
  await page.locator('.edges tr[data-id]').filter({ hasText: 'in /shared' }).first().waitFor();

  // A shorter window finds fewer; nobody meets within ten seconds of an hour ago.
  await goTo(page, '#/contention?shape=graph');
  const slider = page.getByRole('slider');
  await slider.focus();
  await page.keyboard.press('Home');
  await page.waitForFunction(() => location.hash.includes('window=10s'));
  await page.getByRole('button', { name: 'Zoom in' }).click();
  await page.getByRole('button', { name: '125 %' }).waitFor();

  // A run and its steps, with the calls that they made.
  await goTo(page, '#/runs');
  await page.locator('tr[data-id]').filter({ hasText: 'failed' }).click();
  await page.getByText('it took too long').waitFor();
  const step = page.locator('.step').first();
  for (const word of [/refactor/, /timed out/, /TIMEOUT/, /1,200 tokens/, /1\.5 s/]) {
    await step.filter({ hasText: word }).waitFor();
  }
  // On one axis: the step, what its agent wrote, and its calls; the reason of the failure is at the top.
  await page.getByRole('region', { name: 'Why it failed' }).getByText('it was killed').waitFor();
  check(await page.locator('.fall-head .tick').count() > 2, 'the axis has times');
  const wide = await step.locator('.span.timed_out').evaluate((span) => span.offsetWidth / span.parentElement.offsetWidth);
  check(wide > 0.1 && wide < 0.15, `1.5 s of 12 s: ${wide}`);
  await step.locator('.fall-text summary').getByText('I look at the plan.').click();
  await step.getByRole('region', { name: 'Text of the agent' }).getByText('I look at the plan.').waitFor();
  await step.getByRole('region', { name: 'Stderr' }).getByText('it was killed').waitFor();
  await step.getByRole('link', { name: 's:put' }).first().click();
  await details.getByText('/shared/plan.md').first().waitFor();

  // A run is told of live.
  await goTo(page, '#/runs');
  await page.locator('tr[data-id]').first().waitFor();
  await outside('run');
  await page.locator('tr[data-id]').filter({ hasText: 'a-new-run' }).waitFor();
});
