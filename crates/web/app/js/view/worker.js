// The service worker as the page sees it: registering, a new version that waits, where a notification leads.
// Promises: a new version is never loaded by itself. Must not know: what the worker keeps.

import { registerWorker } from '../ui/notify.js';

/** A worker that does not come within this time is done without. */
const TAKE_OVER_MS = 8_000;

/** @param {{store: any, onHash: (hash: string) => void}} given */
export async function startWorker({ store, onHash }) {
  const registration = await registerWorker();
  if (!registration) return; // an address without service workers: the page works without
  navigator.serviceWorker.addEventListener('message', ({ data }) => {
    if (data?.kind === 'go' && typeof data.hash === 'string' && data.hash.startsWith('#/')) onHash(data.hash);
  });
  const look = () => {
    // The first worker of a device has nothing to replace.
    if (registration.waiting && navigator.serviceWorker.controller) store.markNewVersion();
  };
  registration.addEventListener('updatefound', () => registration.installing?.addEventListener('statechange', look));
  look();
}

/** Loads the new version; only when somebody asked for it. */
export async function loadNewVersion() {
  const registration = await navigator.serviceWorker?.getRegistration();
  if (!registration) return location.reload();
  navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
  const takeOver = () => registration.waiting?.postMessage('take-over');
  // The old worker would give the old page once more.
  setTimeout(async () => {
    await registration.unregister();
    location.reload();
  }, TAKE_OVER_MS);
  if (!registration.waiting) await registration.update();
  registration.installing?.addEventListener('statechange', takeOver);
  takeOver();
}
