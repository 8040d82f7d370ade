/**
 * What this device keeps for itself: its token, its settings, the client id of this tab.
 *
 * Promises: the token is in the storage of this origin and nowhere else. A tab has a client id of its own over reloads, and a
 * copy of a tab gets another one. Signing out leaves nothing behind.
 * Must not know: the host, the document.
 */

import { Listeners } from './listeners.js';

/**
 * `textSize` in percent; `enter`: whether Enter sends, where it is not said by the kind of keyboard; `isKeysOn`: whether single
 * letters are commands; `hosts`: other hosts, by name, as links.
 * @typedef {{name: string, theme: 'system' | 'light' | 'dark', textSize: number, enter: 'auto' | 'send' | 'newline',
 *   isKeysOn: boolean, isNotifying: boolean, hosts: {name: string, url: string}[]}} Settings
 */

const TOKEN = 'greenroom.token';
const SETTINGS = 'greenroom.settings';
const CLIENT = 'greenroom.client';
const PREFIX = 'greenroom.';
/** How long a page that was left may take to be gone. */
const RELOAD_MS = 150;

/** @type {Settings} */
const DEFAULTS = {
  name: '',
  theme: 'system',
  textSize: 100,
  enter: 'auto',
  isKeysOn: true,
  isNotifying: false,
  hosts: [],
};

/** @type {Listeners<Settings>} */
const listeners = new Listeners();
/** @type {Promise<string> | undefined} */
let claimed;

export const device = {
  /** @returns {string | undefined} */
  token: () => localStorage.getItem(TOKEN) ?? undefined,

  /** @param {string} token */
  setToken: (token) => localStorage.setItem(TOKEN, token),

  /** @returns {Settings} */
  settings() {
    try {
      const kept = JSON.parse(localStorage.getItem(SETTINGS) ?? '{}');
      return { ...DEFAULTS, ...Object.fromEntries(Object.entries(kept).filter(([key, value]) => fits(key, value))) };
    } catch {
      return { ...DEFAULTS }; // not settings of ours
    }
  },

  /** @param {Partial<Settings>} changes @returns {Settings} */
  change(changes) {
    const settings = { ...device.settings(), ...changes };
    localStorage.setItem(SETTINGS, JSON.stringify(settings));
    listeners.call(settings);
    return settings;
  },

  /** @param {(settings: Settings) => void} listener called when a setting changes, in another tab too @returns {() => void} */
  onChange: (listener) => listeners.add(listener),

  /** The name of this tab towards the host. */
  clientId() {
    claimed ??= claimClientId();
    return claimed;
  },

  /** Forgets the token, the settings and the drafts. */
  forget() {
    for (const storage of [localStorage, sessionStorage]) {
      const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? '');
      for (const key of keys.filter((candidate) => candidate.startsWith(PREFIX))) {
        storage.removeItem(key);
      }
    }
  },
};

/** A value of a setting that can be used. @param {string} key @param {any} value */
function fits(key, value) {
  const standard = /** @type {Record<string, any>} */ (DEFAULTS)[key];
  return standard !== undefined && typeof value === typeof standard && Array.isArray(value) === Array.isArray(standard);
}

/**
 * The id that this tab had before it was reloaded. A tab that was duplicated has a copy of it: the lock, which only one tab
 * holds, tells the two apart. Without locks (an insecure address) the host closes the older connection, and the page says so.
 */
async function claimClientId() {
  const known = sessionStorage.getItem(CLIENT);
  if (known !== null && ((await holdsLock(known)) || (await holdsLockSoon(known)))) {
    return known;
  }
  const fresh = `web-${randomId()}`;
  await holdsLock(fresh);
  sessionStorage.setItem(CLIENT, fresh);
  return fresh;
}

/** Takes the lock of a client id for as long as the tab lives. @param {string} id @returns {Promise<boolean>} */
function holdsLock(id) {
  if (navigator.locks === undefined) {
    return Promise.resolve(true);
  }
  return new Promise((resolve) => {
    navigator.locks.request(`${CLIENT}.${id}`, { ifAvailable: true }, (lock) => {
      resolve(lock !== null);
      return lock === null ? undefined : new Promise(() => {}); // never given back
    });
  });
}

/** A page that is reloaded may ask before the one it replaces has given the lock back. @param {string} id */
async function holdsLockSoon(id) {
  await new Promise((resolve) => {
    setTimeout(resolve, RELOAD_MS);
  });
  return holdsLock(id);
}

/** 128 random bits as text, also where `crypto.randomUUID` is missing (an insecure address). */
export function randomId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

globalThis.addEventListener?.('storage', ({ key }) => {
  if (key === SETTINGS) {
    listeners.call(device.settings());
  }
});
