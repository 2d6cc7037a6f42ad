// What a scenario is to look at, in $PAGE_SCENE, and the test that started it, which does what must
// happen outside of the browser.
import { createInterface } from 'node:readline';

export const scene = JSON.parse(process.env.PAGE_SCENE);

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// Has the test do something, and gives what came of it.
export async function outside(what, args = {}) {
  console.log(JSON.stringify({ do: what, args }));
  const { value } = await lines.next();
  return JSON.parse(value);
}

export function check(holds, words) {
  if (!holds) throw new Error(words);
}

export function same(found, expected, words = '') {
  const [one, other] = [JSON.stringify(found), JSON.stringify(expected)];
  check(one === other, `${words}: ${one} is not ${other}`);
}
