// The graph of many agents: every name can be read, no label lies on another; pointing at one dims the
// rest, filters narrow it, and a line leads to its calls.
import { addressed, check, goTo, pointAt, same, scenario, scene, signIn } from './browser.mjs';

// Labels that lie on each other or outside of the picture.
const unreadable = () => {
  const picture = document.querySelector('.graph-box svg').getBoundingClientRect();
  const boxes = [...document.querySelectorAll('.node text')].map((text) => ({ words: text.lastChild.textContent, box: text.getBoundingClientRect() }));
  const found = boxes.filter(({ box }) => box.left < picture.left || box.right > picture.right || box.height < 10).map(({ words }) => `outside: ${words}`);
  boxes.forEach((one, at) => boxes.slice(at + 1).forEach((other) => {
    const isApart = one.box.bottom <= other.box.top + 2 || other.box.bottom <= one.box.top + 2 || one.box.right <= other.box.left || other.box.right <= one.box.left;
    if (!isApart) found.push(`${one.words} on ${other.words}`);
  }));
  return found;
};

await scenario(async ({ page }) => {
  await signIn(page);
  await goTo(page, '#/contention?shape=graph');
  await page.locator('g.strand').first().waitFor({ state: 'attached' });
  same(await page.locator('.node.agent').count(), scene.agents);
  same(await page.locator('.node.resource').count(), scene.resources);
  same(await page.evaluate(unreadable), [], 'labels');
  const names = await page.locator('.node.agent text').allTextContents();
  check(names.every((name) => !name.includes('…')), `names are whole: ${names}`);

  // Pointing at an agent leaves its own lines and resources.
  const agent = page.locator('.node.agent').nth(3);
  await pointAt(page, agent.locator('circle'), () => document.querySelector('.node.agent.far'));
  const lines = await page.locator('g.strand').count();
  const near = await page.locator('g.strand:not(.far)').count();
  check(near > 0 && near < lines / 4, `${near} of ${lines} lines stay`);
  same(await page.locator('.node.resource:not(.far)').count(), near, 'and what they lead to');
  const opacity = await page.locator('g.strand.far').first().evaluate((strand) => { strand.getAnimations().forEach((a) => a.finish()); return getComputedStyle(strand).opacity; });
  check(Number(opacity) < 0.3, `dimmed: ${opacity}`);
  await page.mouse.move(2, 2);
  await page.waitForFunction(() => !document.querySelector('.node.far'));

  // Filters: an agent, a kind, a word.
  const choice = (name) => page.locator('.field').filter({ has: page.getByText(name, { exact: true }) }).locator('select');
  const name = await agent.locator('title').textContent();
  await choice('Agent').selectOption(name);
  await page.waitForFunction((all) => { const now = document.querySelectorAll('g.strand').length; return now > 0 && now < all; }, lines);
  await addressed(page, 'agent=');
  await choice('Agent').selectOption('');
  await page.waitForFunction((all) => document.querySelectorAll('g.strand').length === all, lines);
  await choice('Kind').selectOption('write-write');
  await page.waitForFunction(() => [...document.querySelectorAll('.graph-box g.strand')].every((strand) => strand.classList.contains('write-write')));
  await choice('Kind').selectOption('');
  await page.waitForFunction((all) => document.querySelectorAll('g.strand').length === all, lines);
  await page.getByLabel('Search').fill('component-7/');
  await addressed(page, 'q=component-7');
  await page.waitForFunction((all) => { const now = document.querySelectorAll('g.strand').length; return now > 0 && now < all; }, lines);
  await page.locator('.edges tr[data-id]').first().click();
  await page.getByRole('complementary', { name: 'Details' }).getByText('The calls behind it').waitFor();
});
