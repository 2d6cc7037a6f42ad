// The page: signs in, follows the address, and shows one view beside the way to the others.
import { render } from './vendor/preact.mjs';
import { useEffect } from './vendor/hooks.mjs';
import { signal } from './vendor/signals.mjs';
import { refuseWorkers, signedIn, signIn, signOut } from './api.mjs';
import { backSince, listen, lostSince, stream } from './live.mjs';
import { hour, now } from './format.mjs';
import { followLocation, link, place, takeCode } from './place.mjs';
import { notices, switchNotices, tellOfReviews } from './notice.mjs';
import { openPalette, Palette } from './part/palette.mjs';
import { html, useAnswer } from './part/shown.mjs';
import { answerTabs, askTabs, hearTabs, tellTabs } from './tabs.mjs';
import { Activity } from './view/activity.mjs';
import { Clients } from './view/clients.mjs';
import { Contention } from './view/contention.mjs';
import { Overview } from './view/overview.mjs';
import { Receipts } from './view/receipts.mjs';
import { Runs } from './view/runs.mjs';
import { Servers } from './view/servers.mjs';
import { SignIn } from './view/signin.mjs';
import { Tokens } from './view/tokens.mjs';

const VIEWS = [
  ['overview', 'Overview', Overview],
  ['activity', 'Activity', Activity],
  ['servers', 'Servers and tools', Servers],
  ['receipts', 'Receipts', Receipts],
  ['contention', 'Contention', Contention],
  ['runs', 'Runs', Runs],
  ['clients', 'Clients', Clients],
  ['tokens', 'Tokens', Tokens],
];

const THEMES = ['auto', 'light', 'dark'];
const THEME_KEY = 'countersign.theme';
const theme = signal(localStorage.getItem(THEME_KEY) ?? 'auto');

function showTheme() {
  document.documentElement.dataset.theme = theme.value;
}

function nextTheme() {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length];
  localStorage.setItem(THEME_KEY, theme.value);
  showTheme();
}

// What can be done from anywhere.
const ACTIONS = [
  { kind: 'action', name: 'Review what waits for approval', href: link('servers', { review: 'yes' }) },
  { kind: 'action', name: 'Add a server', href: link('servers', { add: 'yes' }) },
  { kind: 'action', name: 'Verify all receipts', href: link('receipts') },
  { kind: 'action', name: 'Switch the theme', run: nextTheme },
  { kind: 'action', name: 'Sign out', run: signOut },
];

// Why signing in did not work, if it did not.
const signInError = signal(null);
const isSigningIn = signal(false);

async function enter() {
  const given = takeCode();
  isSigningIn.value = true;
  signInError.value = null;
  try {
    await refuseWorkers();
    const code = given ?? (signedIn.value ? null : await askTabs());
    if (code) await signIn(code);
    if (given) tellTabs();
  } catch (error) {
    signInError.value = error;
  }
  isSigningIn.value = false;
}

function App() {
  if (isSigningIn.value) return html`<p class="signing-in" role="status">Signing in…</p>`;
  if (!signedIn.value) return html`<${SignIn} error=${signInError.value} />`;
  return html`<${Inside} />`;
}

function Inside() {
  const { view } = place.value;
  const known = VIEWS.find(([name]) => name === view);
  const View = known ? known[2] : Overview;
  return html`
    <a class="skip" href="#main" onClick=${toMain}>Skip to content</a>
    <${Bar} view=${known ? view : 'overview'} />
    <${Palette} views=${VIEWS} actions=${ACTIONS} />
    <main id="main" tabindex="-1" class=${`view-${known ? view : 'overview'}`}><${Gone} /><${View} key=${view} /></main>`;
}

// The address names the view, so the link cannot lead there by itself.
function toMain(event) {
  event.preventDefault();
  document.getElementById('main').focus();
}

function Bar({ view }) {
  const { answer: status } = useAnswer('/status', ['tool', 'server'], 500);
  const pending = status?.tools?.pending_approval ?? 0;
  useEffect(() => { if (status) tellOfReviews(pending); }, [pending, Boolean(status)]);
  // On a small screen the views stand in a row that scrolls.
  useEffect(() => {
    document.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
  }, [view]);
  return html`<header class="side">
    <a class="brand" href=${link('overview')}><img src="/page/icon.svg" alt="" width="22" height="22" />Countersign</a>
    <nav aria-label="Views"><ul>${VIEWS.map(([name, title]) => html`<li><a href=${link(name)}
      aria-current=${name === view ? 'page' : undefined}>${title}${name === 'servers' && pending > 0
        ? html`<span class="badge" title=${`${pending} waiting for approval`}>${pending}<span class="sr"> waiting for approval</span></span>` : ''}</a></li>`)}
    </ul></nav>
    <div class="side-end">
      <${Stream} />
      <button class="quiet wide" onClick=${openPalette}>Go to <kbd>Ctrl K</kbd></button>
      ${notices.value !== 'none' && html`<button class="quiet wide" aria-pressed=${notices.value === 'on'} onClick=${switchNotices} title="Notices of the browser when something waits for review">Notices: ${notices.value}</button>`}
      <button class="quiet" onClick=${nextTheme} title="Switch between automatic, light and dark">Theme: ${theme.value}</button>
      <button class="quiet" onClick=${signOut} title="Sign out every browser">Sign out</button>
    </div>
  </header>`;
}

const BACK_MS = 6_000;

// The gate is gone, or back: said where one looks, since all that is shown may be out of date.
function Gone() {
  if (stream.value === 'lost' && lostSince.value) {
    return html`<p class="gone notice bad" role="alert"><strong>The gate does not respond</strong> since ${hour(lostSince.value)}. What you see may be out of date. Trying again…</p>`;
  }
  return backSince.value && now.value - backSince.value < BACK_MS
    ? html`<p class="gone notice good" role="status"><strong>The gate is back.</strong> Everything is up to date.</p>` : null;
}

const STREAM_WORDS = { connecting: 'connecting', live: 'live', lost: 'connection lost' };

const Stream = () => html`<span class=${'stream ' + stream.value} role="status"
  title=${stream.value === 'live' ? 'Updates arrive live' : 'The gate does not respond; trying again'}>
  <span class="pulse" aria-hidden="true"></span>${STREAM_WORDS[stream.value]}</span>`;

showTheme();
followLocation();
addEventListener('hashchange', () => { if (location.hash.startsWith('#code=')) enter(); });
answerTabs();
hearTabs(enter);
const entered = enter();
render(html`<${App} />`, document.getElementById('app'));
await entered;
listen();
