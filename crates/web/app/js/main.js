// Where the page starts. Promises: a code in the address is taken out of it before anything else happens; without a token nothing is
// asked of the host but to pair. Must not know: what is in a screen.

import { api } from './state/api.js';
import { device } from './state/device.js';
import { createStore } from './state/store.js';
import { applyAppearance } from './ui/appearance.js';
import { startNews } from './view/news.js';
import { startSheet } from './view/sheet.js';
import { startShell } from './view/shell.js';
import { startShortcuts } from './view/shortcuts.js';
import { startWorker } from './view/worker.js';

const code = takePairingCode();
applyAppearance(device.settings());
device.onChange(applyAppearance);
const token = device.token();
if (code !== null || token === undefined) showPairing(code, false);
else start(token);

/** @param {string} known */
async function start(known) {
  const store = createStore({
    url: new URL('/ahp', location.href).href.replace(/^http/, 'ws'), token: known, clientId: await device.clientId(), checkToken: api.checkToken,
  });
  const shell = startShell({ store });
  const sheet = startSheet({ store, shell });
  startShortcuts({ store, shell, sheet });
  startNews({ store, shell });
  startWorker({ store, onHash: (hash) => shell.open(hash) }).catch(reportError);
  document.addEventListener('visibilitychange', () => { if (document.visibilityState === 'visible') store.look(); });
  addEventListener('pagehide', () => store.drafts.flush());
}

/** @param {string | null} found @param {boolean} wasSignedOut */
async function showPairing(found, wasSignedOut) {
  const { mountPair } = await import('./view/pair.js');
  const main = document.getElementById('main');
  if (main) mountPair(main, { code: found, wasSignedOut, onPaired: () => location.reload() });
}

/** The code of a pairing link. It works once and for minutes, but it does not belong in a history or on a screen. */
function takePairingCode() {
  if (!location.hash.startsWith('#pair=')) return null;
  const found = /^#pair=([A-Za-z0-9_-]+)$/.exec(location.hash);
  history.replaceState(null, '', '#/');
  return found?.[1] ?? '';
}
