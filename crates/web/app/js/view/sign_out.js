// Signs this device out. Promises: the host is told first, and if it was not, nothing is removed here unless the user says so; then
// nothing of the user is left on the device: storage, caches, notifications, service worker. Must not know: who asked.

import { ApiError, api } from '../state/api.js';
import { device } from '../state/device.js';
import { askYesNo } from '../ui/menu.js';
import { writeOutName } from '../ui/visible.js';

export async function signOut() {
  if (!(await tellHost()) && !(await askAnyway())) return; // it stays signed in
  device.forget();
  for (const name of (await globalThis.caches?.keys()) ?? []) await caches.delete(name);
  for (const worker of (await navigator.serviceWorker?.getRegistrations()) ?? []) {
    for (const shown of await worker.getNotifications()) shown.close();
    await worker.unregister();
  }
  location.replace('/');
}

/** @returns {Promise<boolean>} whether the token of this device counts no more */
async function tellHost() {
  try {
    const { device: own } = await api.me();
    if (own) await api.revoke(own.id);
    return true;
  } catch (error) {
    console.info('greenroom: the host was not told', error);
    // A host that does not know the token or the device has signed it out before.
    return error instanceof ApiError && (error.status === 401 || error.status === 404);
  }
}

function askAnyway() {
  const name = writeOutName(device.settings().name) || 'NAME';
  const word = /^[\w.-]+$/.test(name) ? name : `'${name.replaceAll("'", "'\\''")}'`;
  const text = `The host was not told; this device stays paired there until \`greenroom devices revoke ${word}\`. Remove it here anyway?`;
  return askYesNo({ title: 'Not signed out at the host', text, yes: 'Remove it here', danger: true });
}
