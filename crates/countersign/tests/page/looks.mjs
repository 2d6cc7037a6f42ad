// Every view, in both themes and at both widths: nothing that keeps people out, nothing that
// sticks out at the side, and a picture for people to look at.
import { goTo, judged, same, scenario, scene, shot, signIn, THEMES, WIDTHS } from './browser.mjs';

await scenario(async ({ page }) => {
  await signIn(page);
  await page.locator('.stream.live').waitFor();
  for (const [width, size] of Object.entries(WIDTHS)) {
    await page.setViewportSize(size);
    for (const theme of THEMES) {
      await page.emulateMedia({ colorScheme: theme, reducedMotion: 'reduce' });
      for (const [name, place, ready] of scene.places) {
        await goTo(page, place);
        await page.locator(ready).first().waitFor();
        await page.locator('.loading').first().waitFor({ state: 'detached' });
        const where = `${name}-${theme}-${width}`;
        await shot(page, where);
        await judged(page, where);
        const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
        same(wide > 0, false, `${where} is ${wide} px too wide`);
      }
    }
  }
  // The switch overrules the system.
  await page.setViewportSize(WIDTHS.wide);
  await page.emulateMedia({ colorScheme: 'light' });
  await goTo(page, '#/overview');
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  await page.getByRole('button', { name: /^Theme/ }).click();
  same(await ground(), light, 'light is light');
  await page.getByRole('button', { name: /^Theme/ }).click();
  same((await ground()) === light, false, 'dark is not');
});
