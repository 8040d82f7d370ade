// Signs this device out. Promises: the host is told first; then nothing of the user is left on the device: storage, caches, service worker.
// Must not know: who asked.

import { api } from '../state/api.js';
import { device } from '../state/device.js';

export async function signOut() {
  try {
    const { device: own } = await api.me();
    if (own) await api.revoke(own.id);
  } catch (error) {
    // The host is away or has forgotten this device: what is here goes all the same, and the device can be signed out there.
    console.info('greenroom: the host was not told', error);
  }
  device.forget();
  for (const name of (await globalThis.caches?.keys()) ?? []) await caches.delete(name);
  for (const worker of (await navigator.serviceWorker?.getRegistrations()) ?? []) await worker.unregister();
  location.replace('/');
}
