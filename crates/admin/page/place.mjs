// Where in the page one is: `#/view?name=value`. All filters stand there, so that a link or the
// back button leads to the same sight. It stands behind `#`, so that the gate never sees it.
import { signal } from './vendor/signals.mjs';

export const place = signal(read());

function read() {
  const [view, values] = location.hash.replace(/^#\/?/, '').split('?');
  return { view: view || 'overview', values: Object.fromEntries(new URLSearchParams(values)) };
}

export function followLocation() {
  addEventListener('hashchange', () => {
    if (!location.hash.startsWith('#code=')) place.value = read();
  });
}

// The code of a link, if one was followed; it is gone from the address at once.
export function takeCode() {
  const code = /^#code=(.+)$/.exec(location.hash)?.[1];
  if (code) {
    history.replaceState(null, '', '#/overview');
    place.value = read();
  }
  return code;
}

export function link(view, values = {}) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== '');
  const text = new URLSearchParams(given).toString();
  return `#/${view}${text ? '?' + text : ''}`;
}

export function go(view, values) {
  location.hash = link(view, values);
}

// Changes some values of where one is. Small steps, such as typing, leave no trace in the history.
export function change(values, { small = false } = {}) {
  const next = { ...place.value.values, ...values };
  const target = link(place.value.view, next);
  if (small) history.replaceState(null, '', target);
  else history.pushState(null, '', target);
  place.value = read();
}

addEventListener('popstate', () => {
  if (!location.hash.startsWith('#code=')) place.value = read();
});
