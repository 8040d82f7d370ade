// What the page says outside of itself: its title, the badge of its icon, notifications, and one polite line for screen readers.
// Promises: nothing is shown while somebody looks at the page; permission is asked for only by a button. Must not know: what happened.

const TITLE = document.title || 'greenroom';

/** @param {number} count things that wait @param {string} [place] what is on screen */
export function showCount(count, place = '') {
  const name = place ? `${place} · ${TITLE}` : TITLE;
  const title = count > 0 ? `(${count}) ${name}` : name;
  if (document.title !== title) document.title = title;
  const badge = /** @type {any} */ (navigator);
  // Not every browser has it, and not everywhere it is allowed; the title says the same.
  if (count > 0) badge.setAppBadge?.(count).catch(() => {});
  else badge.clearAppBadge?.().catch(() => {});
}

/** Says something to screen readers. @param {string} text */
export function speak(text) {
  const line = document.getElementById('spoken');
  if (line) line.textContent = text;
}

/** @returns {'missing' | 'insecure' | 'default' | 'granted' | 'denied'} */
export function notificationState() {
  if (!window.isSecureContext) return 'insecure';
  if (!('Notification' in window) || !('serviceWorker' in navigator)) return 'missing';
  return Notification.permission;
}

/** Asks for permission; only to be called from a button. */
export async function allowNotifications() {
  const answer = await Notification.requestPermission();
  return answer === 'granted';
}

/**
 * Shows a notification, if the page is hidden in all of its tabs: the worker sees them.
 * @param {{title: string, body: string, tag: string, hash: string}} about one with the same tag is replaced; `hash` is where it leads
 */
export async function notify({ title, body, tag, hash }) {
  if (document.visibilityState === 'visible' || notificationState() !== 'granted') return; // somebody looks, or nobody wants it
  const worker = await navigator.serviceWorker.ready;
  worker.active?.postMessage({ kind: 'notify', title, body, tag, hash });
}

/** Takes back what is not asked any more. @param {(tag: string) => boolean} isGone */
export async function withdrawNotifications(isGone) {
  if (notificationState() !== 'granted') return; // none was shown
  const worker = await navigator.serviceWorker.ready;
  for (const shown of await worker.getNotifications()) if (isGone(shown.tag)) shown.close();
}

/**
 * Registers the service worker. The policy is the only one that the page's rules permit, and takes this one address.
 * @returns {Promise<ServiceWorkerRegistration | null>} null where there is none
 */
export async function registerWorker() {
  if (!window.isSecureContext || !('serviceWorker' in navigator)) return null;
  const own = (/** @type {string} */ address) => {
    if (address !== '/sw.js') throw new TypeError('not the service worker of this page');
    return address;
  };
  const types = /** @type {any} */ (window).trustedTypes;
  const policy = types ? types.createPolicy('greenroom-sw', { createScriptURL: own }) : { createScriptURL: own };
  return navigator.serviceWorker.register(policy.createScriptURL('/sw.js'), { scope: '/', updateViaCache: 'none' });
}
