// The service worker as the page sees it: registering, a new version that waits, where a notification leads.
// Promises: a new version is never loaded by itself. Must not know: what the worker keeps.

import { registerWorker } from '../ui/notify.js';

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
  document.addEventListener('visibilitychange', () => {
    // Offline it fails, and is tried again when somebody looks the next time.
    if (document.visibilityState === 'visible') registration.update().catch(() => {});
  });
}

/** Loads the version that waits; only when somebody asked for it. */
export async function loadNewVersion() {
  const registration = await navigator.serviceWorker?.getRegistration();
  if (!registration?.waiting) return location.reload();
  navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true });
  registration.waiting.postMessage('take-over');
}
