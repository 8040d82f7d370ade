// Where the screens start. Promises: what a device without a token is shown is how to pair. Must not know: what is in a screen.

import { code, first, returned, token, url } from './entry.js';
import { api } from './state/api.js';
import { device } from './state/device.js';
import { createStore } from './state/store.js';
import { loadStyles, setData } from './ui/dom.js';
import { startShell } from './view/shell.js';

/** Says, until the tab is closed, why this device is not paired any more. */
const SIGNED_OUT = 'greenroom.signed-out';

applyAppearance(device.settings());
device.onChange(applyAppearance);
if (returned !== null) showReturn(returned, token).catch(reportError);
else if (code !== null || token === undefined) showPairing(code);
else start(token).catch(reportError);

/** @param {string} known */
async function openStore(known) {
  return createStore({ url, token: known, clientId: await device.clientId(), checkToken: api.checkToken, first: await first });
}

/** @param {string} known */
async function start(known) {
  const store = await openStore(known);
  const shell = startShell({ store });
  store.onConnection(({ status }) => { if (status === 'signed-out') clearDevice(store); });
  await startRest(store, shell);
}

/** What the first screen does not need comes behind it; where the host is gone just then, when it is back. @param {any} store @param {any} shell */
async function startRest(store, shell) {
  const { startSheet, startShortcuts, startNews, startWorker } = await loadRest().catch(async () => {
    await new Promise((done) => { store.onConnection((/** @type {any} */ { status }) => { if (status === 'live') done(null); }); });
    // Some browsers remember that a module could not be loaded.
    return loadRest().catch((error) => { location.reload(); throw error; });
  });
  const sheet = startSheet({ store, shell });
  startShortcuts({ store, shell, sheet });
  startNews({ store, shell });
  await startWorker({ store, onHash: (hash) => shell.open(hash) });
}

async function loadRest() {
  const [sheet, shortcuts, news, worker] = await Promise.all([
    import('./view/sheet.js'), import('./view/shortcuts.js'), import('./view/news.js'), import('./view/worker.js'), loadStyles(),
  ]);
  return { ...sheet, ...shortcuts, ...news, ...worker };
}

/** @param {string | null} found */
async function showPairing(found) {
  const [{ mountPair }] = await Promise.all([import('./view/pair.js'), loadStyles()]);
  const main = document.getElementById('main');
  const wasSignedOut = sessionStorage.getItem(SIGNED_OUT) !== null;
  if (main) mountPair(main, { code: found, wasSignedOut, onPaired: () => location.reload() });
}

/** A tab that comes back from the page of a sign-in is for that alone. @param {string} address @param {string | undefined} known */
async function showReturn(address, known) {
  const [{ mountReturn }] = await Promise.all([import('./view/sign_in.js'), loadStyles()]);
  const main = document.getElementById('main');
  if (main) await mountReturn(main, { store: known === undefined ? undefined : await openStore(known), address });
}

/** A device that was signed out elsewhere keeps and shows nothing. @param {any} store */
function clearDevice(store) {
  store.close();
  device.forget();
  sessionStorage.setItem(SIGNED_OUT, 'yes');
  location.replace('/');
}

/** Theme and text size of the page. @param {{theme?: string, textSize?: number}} settings a theme of `system` is the device's own; the size is in percent */
function applyAppearance({ theme, textSize }) {
  const root = document.documentElement;
  const chosen = theme === 'light' || theme === 'dark' ? theme : null;
  setData(root, 'theme', chosen);
  root.style.fontSize = textSize && textSize !== 100 ? `${textSize}%` : '';
  // The bars of the browser are as light or dark as the page.
  const bars = [...document.querySelectorAll('meta[name="theme-color"]')];
  for (const bar of bars) {
    const isDark = chosen ? chosen === 'dark' : bar.getAttribute('media')?.includes('dark') === true;
    bar.setAttribute('content', isDark ? '#141715' : '#f7f7f4');
  }
}
