// What this page was opened for, and the connection to the host, begun before the screens are loaded. Promises: a code in the
// address, of a pairing or of a sign-in, is taken out of it before anything else happens; without a token nothing is asked of the
// host. Must not know: screens, states. What it imports is all that is loaded before it runs, so it stays little.

import { device } from './state/device.js';
import { beginFirstFlight } from './wire/connection.js';

/** The code of a pairing link; empty if it is none, null if this is no such link. */
export const code = takePairingCode();
/** The address that the page of a sign-in sent this browser to, or null. */
export const returned = takeReturn();
export const token = device.token();
export const url = new URL('/ahp', location.href).href.replace(/^http/, 'ws');
export const first = code === null && returned === null && token !== undefined ? beginFirstFlight(url, token, device.clientId()) : undefined;

/** It works once and for minutes, but it does not belong in a history or on a screen. */
function takePairingCode() {
  if (!location.hash.startsWith('#pair=')) return null;
  const found = /^#pair=([A-Za-z0-9_-]+)$/.exec(location.hash);
  history.replaceState(null, '', '#/');
  return found?.[1] ?? '';
}

/** Its code does not belong in a history either. */
function takeReturn() {
  if (!/[?&]state=/.test(location.search)) return null;
  const address = location.href;
  history.replaceState(null, '', '/');
  return address;
}
