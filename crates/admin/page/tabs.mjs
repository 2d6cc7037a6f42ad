// Several tabs of one browser, signed in by one link. A tab that is signed in has the gate make a code
// for another one, which works once and gives that tab a session of its own. No token leaves its tab,
// and codes travel on a channel that only pages of this very address (host and port) can use.
import { post, signedIn } from './api.mjs';

const NAME = 'countersign.tabs';
const ANSWER_WITHIN_MS = 700;

const channel = new BroadcastChannel(NAME);

// Of several tabs, one answers.
export function answerTabs() {
  if (!isSecureContext) return;
  channel.addEventListener('message', ({ data }) => {
    if (!signedIn.value || typeof data?.asks !== 'string') return;
    navigator.locks.request(`${NAME} ${data.asks}`, { ifAvailable: true }, async (lock) => {
      if (!lock) return;
      const { url } = await post('/page/codes');
      channel.postMessage({ to: data.asks, code: url.split('#code=')[1] });
      // The others, which hear the question a moment later, find it taken.
      await new Promise((resolve) => setTimeout(resolve, ANSWER_WITHIN_MS));
    }).catch(() => {});
  });
}

// Tells tabs that are not signed in that they can ask again.
export const tellTabs = () => channel.postMessage({ isSignedIn: true });

export function hearTabs(listener) {
  channel.addEventListener('message', ({ data }) => { if (data?.isSignedIn === true && !signedIn.value) listener(); });
}

// A code from another tab, or null if none is signed in.
export function askTabs() {
  if (!isSecureContext) return null;
  const asks = crypto.randomUUID();
  return new Promise((resolve) => {
    const heard = ({ data }) => { if (data?.to === asks) end(data.code); };
    const end = (code) => {
      clearTimeout(timer);
      channel.removeEventListener('message', heard);
      resolve(code);
    };
    const timer = setTimeout(() => end(null), ANSWER_WITHIN_MS);
    channel.addEventListener('message', heard);
    channel.postMessage({ asks });
  });
}
