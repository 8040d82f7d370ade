/**
 * Drafts of messages: on the device at once, on the host after a moment.
 *
 * Promises: a draft of another device never replaces text that was typed here: it waits as `foreign` until somebody chooses.
 * What was typed survives a reload and a lost connection.
 * Must not know: connections, the document.
 */

import { isEqual, isObject } from '../wire/reduce/fields.js';
import { Listeners } from './listeners.js';

/** @typedef {import('../wire/reduce/fields.js').Json} Json */
/** @typedef {{message: Json | undefined, foreign?: Json}} Draft a message as it will be sent, and the one of another device that differs */

const SYNC_MS = 500;
const PREFIX = 'greenroom.draft.';
/** Drafts that are kept on the device, and the length of one: the host has the rest. */
const KEPT_MAX = 100;
const KEPT_LENGTH_MAX = 256 * 1_024;

/** @typedef {{message: Json | undefined, isTypedHere: boolean, synced: Json | undefined, foreign: Json | undefined, timer: any}} Entry */

/** @param {Json | undefined} message */
const isEmpty = (message) =>
  message === undefined || ((message.text ?? '') === '' && (message.attachments ?? []).length === 0);

export class Drafts {
  /** @type {Map<string, Entry>} */
  #entries = new Map();
  /** @type {Listeners<{chat: string, draft: Draft}>} */
  #listeners = new Listeners();
  #storage;
  #dispatch;

  /** @param {{storage?: Storage, dispatch: (channel: string, action: Json) => unknown}} options */
  constructor({ storage = globalThis.localStorage, dispatch }) {
    this.#storage = storage;
    this.#dispatch = dispatch;
  }

  /** @param {(chat: string, draft: Draft) => void} listener called when a draft changes otherwise than by `set` @returns {() => void} */
  onChange(listener) {
    return this.#listeners.add(({ chat, draft }) => listener(chat, draft));
  }

  /** @param {string} chat @returns {Entry} */
  #entry(chat) {
    let entry = this.#entries.get(chat);
    if (entry === undefined) {
      const { message, synced } = this.#read(chat);
      entry = { message, isTypedHere: message !== undefined, synced, foreign: undefined, timer: undefined };
      this.#entries.set(chat, entry);
    }
    return entry;
  }

  /** @param {string} chat @returns {Draft} */
  get(chat) {
    const { message, foreign } = this.#entry(chat);
    return { message, foreign };
  }

  /** Somebody typed: kept here now, and on the host when the typing rests. @param {string} chat @param {Json | undefined} message */
  set(chat, message) {
    const entry = this.#entry(chat);
    entry.message = isEmpty(message) ? undefined : message;
    entry.isTypedHere = entry.message !== undefined;
    this.#keep(chat, entry);
    this.#schedule(chat, entry);
  }

  /** The message was sent: nothing is left of the draft. @param {string} chat */
  clear(chat) {
    this.set(chat, undefined);
    this.#sync(chat, this.#entry(chat));
  }

  /** Sends what was typed and not sent yet. */
  flush() {
    for (const [chat, entry] of this.#entries) {
      if (entry.timer !== undefined) {
        this.#sync(chat, entry);
      }
    }
  }

  /** @param {string} chat @param {Entry} entry */
  #sync(chat, entry) {
    clearTimeout(entry.timer);
    entry.timer = undefined;
    if (entry.foreign !== undefined || isEqual(entry.message, entry.synced)) {
      return; // somebody has to choose first, or the host has it
    }
    entry.synced = entry.message;
    this.#keep(chat, entry);
    this.#dispatch(chat, {
      type: 'chat/draftChanged',
      ...(entry.message === undefined ? {} : { draft: entry.message }),
    });
  }

  /** Takes what the host says about a draft. @param {string} chat @param {Json | undefined} draft @param {boolean} isOwn */
  hear(chat, draft, isOwn) {
    const entry = this.#entry(chat);
    const theirs = isEmpty(draft) ? undefined : draft;
    const isKnown = isOwn || isEqual(theirs, entry.synced);
    if (isOwn) {
      return; // the echo of what was typed here, and more may have been typed since
    }
    entry.synced = theirs;
    if (isEqual(theirs, entry.message)) {
      entry.foreign = undefined;
    } else if (!entry.isTypedHere) {
      entry.message = theirs;
      entry.foreign = undefined;
    } else if (theirs === undefined || isKnown) {
      entry.foreign = undefined; // theirs is gone: ours stays, and is sent when it changes
      this.#schedule(chat, entry);
    } else {
      entry.foreign = theirs;
    }
    this.#tell(chat);
  }

  /** @param {string} chat @param {Entry} entry */
  #schedule(chat, entry) {
    clearTimeout(entry.timer);
    entry.timer = setTimeout(() => this.#sync(chat, entry), SYNC_MS);
  }

  /** Takes the draft of the other device. @param {string} chat */
  useForeign(chat) {
    const entry = this.#entry(chat);
    if (entry.foreign !== undefined) {
      entry.message = entry.foreign;
      entry.foreign = undefined;
      entry.isTypedHere = false;
      this.#keep(chat, entry);
      this.#tell(chat);
    }
  }

  /** Keeps what was typed here, on the other devices too. @param {string} chat */
  keepMine(chat) {
    const entry = this.#entry(chat);
    if (entry.foreign !== undefined) {
      entry.foreign = undefined;
      this.#sync(chat, entry);
      this.#tell(chat);
    }
  }

  /** @param {string} chat */
  #tell(chat) {
    this.#listeners.call({ chat, draft: this.get(chat) });
  }

  /** What was typed here before the page was loaded, and what of it the host has. @param {string} chat @returns {{message?: Json, synced?: Json}} */
  #read(chat) {
    const kept = this.#storage?.getItem(PREFIX + chat);
    if (kept === null || kept === undefined) {
      return {};
    }
    try {
      const { message, synced } = JSON.parse(kept);
      return isObject(message) ? { message, synced: isObject(synced) ? synced : undefined } : {};
    } catch {
      this.#storage?.removeItem(PREFIX + chat); // not one of ours
      return {};
    }
  }

  /** Keeps what was typed here; what came from the host needs no keeping. @param {string} chat @param {Entry} entry */
  #keep(chat, { message, synced, isTypedHere }) {
    const storage = this.#storage;
    if (storage === undefined) {
      return; // a page without storage has the host
    }
    if (message === undefined || !isTypedHere) {
      storage.removeItem(PREFIX + chat);
      return;
    }
    const text = JSON.stringify({ at: Date.now(), message, synced });
    if (text.length > KEPT_LENGTH_MAX) {
      return; // the host has it
    }
    try {
      storage.setItem(PREFIX + chat, text);
      dropOldest(storage);
    } catch (error) {
      console.info('greenroom: this device keeps no more drafts', error);
    }
  }
}

/** @param {Storage} storage */
function dropOldest(storage) {
  const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? '');
  const drafts = keys.filter((key) => key.startsWith(PREFIX));
  if (drafts.length <= KEPT_MAX) {
    return;
  }
  const at = (/** @type {string} */ key) => {
    try {
      return Number(JSON.parse(storage.getItem(key) ?? '').at ?? 0);
    } catch {
      return 0;
    }
  };
  for (const key of drafts.sort((a, b) => at(a) - at(b)).slice(0, drafts.length - KEPT_MAX)) {
    storage.removeItem(key);
  }
}
