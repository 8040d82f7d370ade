// Where the page starts. Promises: a code in the address is taken out of it before anything else happens; without a token nothing
// is asked of the host but to pair. Must not know: what is in a screen.

import { device } from './state/device.js';
import { createStore } from './state/store.js';
import { applyAppearance } from './ui/appearance.js';
import { startShell } from './view/shell.js';

const code = takePairingCode();
applyAppearance(device.settings());
if (code !== null || !device.token()) {
  const { mountPair } = await import('./view/pair.js');
  mountPair(document.getElementById('main'), { code, onPaired: () => location.reload() });
} else {
  const store = createStore({ url: new URL('/ahp', location.href), token: device.token(), clientId: await device.clientId() });
  startShell({ store });
}

/** The code of a pairing link. It works once and for minutes, but it does not belong in a history or on a screen. */
function takePairingCode() {
  const found = /^#pair=([A-Za-z0-9_-]+)/.exec(location.hash);
  if (location.hash.startsWith('#pair=')) history.replaceState(null, '', '#/');
  return found?.[1] ?? null;
}
