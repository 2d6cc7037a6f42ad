// The page: signs in, follows the address, and shows one view beside the way to the others.
import { render } from './vendor/preact.mjs';
import { useEffect } from './vendor/hooks.mjs';
import { signal } from './vendor/signals.mjs';
import { signedIn, signIn, signOut } from './api.mjs';
import { listen, stream } from './live.mjs';
import { followLocation, link, place, takeCode } from './place.mjs';
import { html, useAnswer } from './part/shown.mjs';
import { Activity } from './view/activity.mjs';
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

// Why signing in did not work, if it did not.
const signInError = signal(null);
const isSigningIn = signal(false);

async function enter() {
  const code = takeCode();
  if (!code) return;
  isSigningIn.value = true;
  signInError.value = null;
  try {
    await signIn(code);
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
    <main id="main" tabindex="-1" class=${`view-${known ? view : 'overview'}`}><${View} key=${view} /></main>`;
}

// The address names the view, so the link cannot lead there by itself.
function toMain(event) {
  event.preventDefault();
  document.getElementById('main').focus();
}

function Bar({ view }) {
  const { answer: status } = useAnswer('/status', ['tool', 'server'], 500);
  const pending = status?.tools?.pending_approval ?? 0;
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
      <button class="quiet" onClick=${nextTheme} title="Switch between automatic, light and dark">Theme: ${theme.value}</button>
      <button class="quiet" onClick=${signOut} title="Sign out every browser">Sign out</button>
    </div>
  </header>`;
}

const STREAM_WORDS = { connecting: 'connecting', live: 'live', lost: 'connection lost' };

const Stream = () => html`<span class=${'stream ' + stream.value} role="status"
  title=${stream.value === 'live' ? 'Updates arrive live' : 'The gate does not respond; trying again'}>
  <span class="pulse" aria-hidden="true"></span>${STREAM_WORDS[stream.value]}</span>`;

showTheme();
followLocation();
addEventListener('hashchange', enter);
await enter();
listen();
render(html`<${App} />`, document.getElementById('app'));
