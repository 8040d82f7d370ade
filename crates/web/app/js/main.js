// Where the page starts. Promises: a code in the address is taken out of it before anything else happens; without a token nothing is
// asked of the host but to pair. Must not know: what is in a screen.

import { api } from './state/api.js';
import { device } from './state/device.js';
import { createStore } from './state/store.js';
import { applyAppearance } from './ui/appearance.js';
import { startShell } from './view/shell.js';

/** Says, until the tab is closed, why this device is not paired any more. */
const SIGNED_OUT = 'greenroom.signed-out';

const code = takePairingCode();
applyAppearance(device.settings());
device.onChange(applyAppearance);
const token = device.token();
if (code !== null || token === undefined) showPairing(code);
else start(token).catch(reportError);

/** @param {string} known */
async function start(known) {
  const store = createStore({
    url: new URL('/ahp', location.href).href.replace(/^http/, 'ws'), token: known, clientId: await device.clientId(), checkToken: api.checkToken,
  });
  const shell = startShell({ store });
  store.onConnection(({ status }) => { if (status === 'signed-out') clearDevice(store); });
  document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'visible') store.look(); });
  addEventListener('pagehide', () => store.drafts.flush());
  await startRest(store, shell);
}

/** What the first screen does not need comes behind it. @param {any} store @param {any} shell */
async function startRest(store, shell) {
  const [{ startSheet }, { startShortcuts }, { startNews }, { startWorker }] = await Promise.all([
    import('./view/sheet.js'), import('./view/shortcuts.js'), import('./view/news.js'), import('./view/worker.js'),
  ]);
  const sheet = startSheet({ store, shell });
  startShortcuts({ store, shell, sheet });
  startNews({ store, shell });
  await startWorker({ store, onHash: (hash) => shell.open(hash) });
}

/** @param {string | null} found */
async function showPairing(found) {
  const { mountPair } = await import('./view/pair.js');
  const main = document.getElementById('main');
  const wasSignedOut = sessionStorage.getItem(SIGNED_OUT) !== null;
  if (main) mountPair(main, { code: found, wasSignedOut, onPaired: () => location.reload() });
}

/** A device that was signed out elsewhere keeps and shows nothing. @param {any} store */
function clearDevice(store) {
  store.close();
  device.forget();
  sessionStorage.setItem(SIGNED_OUT, 'yes');
  location.replace('/');
}

/** The code of a pairing link. It works once and for minutes, but it does not belong in a history or on a screen. */
function takePairingCode() {
  if (!location.hash.startsWith('#pair=')) return null;
  const found = /^#pair=([A-Za-z0-9_-]+)$/.exec(location.hash);
  history.replaceState(null, '', '#/');
  return found?.[1] ?? '';
}
