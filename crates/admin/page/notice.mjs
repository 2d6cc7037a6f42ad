// Notices of the browser about what waits for a person. They hold numbers and words of ours, nothing
// that a server or an agent wrote.
import { signal } from './vendor/signals.mjs';
import { plural } from './format.mjs';

const KEY = 'countersign.notices';
const isThere = 'Notification' in globalThis;

// 'off', 'on', or 'none' where the browser has none.
export const notices = signal(!isThere ? 'none' : localStorage.getItem(KEY) === 'on' && Notification.permission === 'granted' ? 'on' : 'off');

export async function switchNotices() {
  const isOn = notices.value !== 'on' && (await Notification.requestPermission()) === 'granted';
  notices.value = isOn ? 'on' : 'off';
  localStorage.setItem(KEY, notices.value);
}

let last = null;

// Tells of reviews that were not there before. The tab in front needs no notice.
export function tellOfReviews(pending) {
  const isMore = last !== null && pending > last;
  last = pending;
  if (!isMore || notices.value !== 'on' || document.hasFocus()) return;
  const notice = new Notification('Countersign', { body: `${plural(pending, 'tool')} ${pending === 1 ? 'waits' : 'wait'} for review`, tag: 'countersign.review', icon: '/page/icon.svg' });
  notice.onclick = () => { window.focus(); location.hash = '#/servers?review=yes'; notice.close(); };
}
