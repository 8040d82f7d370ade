/**
 * The list of the host's sessions: its pages, and what the host says about it since.
 *
 * Promises: a page that was asked for is taken with everything that was heard while it was on its way. Newest first. Sessions
 * that need somebody are found however old they are; others come page by page.
 * Must not know: connections, the document.
 */

import { LIST_PAGE } from '../wire/connection.js';
import { STATUS, isObject } from '../wire/reduce/fields.js';

/** @typedef {import('../wire/reduce/fields.js').Json} Json */

/** A page of the list where nobody waits for it: what the host gives at most. */
const SEARCH_PAGE = 500;
/** How long to wait before the list is read anew because of a session that is not in it. */
const UNKNOWN_MS = 300;
/** Of no more sessions anything is remembered. */
const SESSIONS_MAX = 10_000;

export class SessionList {
  /** @type {Map<string, Json>} */
  #summaries = new Map();
  /** @type {Json[] | undefined} in order, made when it is asked for */
  #sorted;
  /** @type {string | undefined} */
  #cursor;
  /** @type {{method: string, params: any}[] | undefined} what was heard while a list was on its way */
  #heard;
  #pages = 0;
  /** Whether those that need somebody were looked for, however old they are. */
  isSearched = false;
  /** @type {Promise<void> | undefined} */
  #loading;
  /** @type {any} */
  #timer;
  #request;
  #onChange;

  /** @param {(method: string, params: Json) => Promise<any>} request @param {() => void} onChange */
  constructor(request, onChange) {
    this.#request = request;
    this.#onChange = onChange;
  }

  /** @returns {Json[]} */
  all() {
    this.#sorted ??= [...this.#summaries.values()].sort((a, b) => compareTexts(b.modifiedAt, a.modifiedAt));
    return this.#sorted;
  }

  /** @param {string} uri */
  get(uri) {
    return this.#summaries.get(uri);
  }

  /** Whether the host has told what is in it. */
  get isRead() {
    return this.#pages > 0;
  }

  get hasMore() {
    return this.#cursor !== undefined;
  }

  /**
   * Reads the list anew, as far as it was read before: what was missed is not repeated (H-086). What is heard from the call on is
   * taken into account, also of a first page that was asked for earlier.
   * @param {Promise<any>} [firstPage]
   */
  async reload(firstPage) {
    if (this.#loading !== undefined) {
      await this.#loading.catch(() => {});
    }
    const pages = Math.max(this.#pages, 1);
    await this.#load(async () => {
      const fresh = new Map();
      let cursor;
      let count = 0;
      do {
        cursor = await this.#page(fresh, cursor, LIST_PAGE, count === 0 ? firstPage : undefined);
        count += 1;
      } while (cursor !== undefined && count < pages);
      this.#summaries = fresh;
      this.#cursor = cursor;
      this.#pages = count;
    });
    await this.#findWaiting();
    if (!this.isSearched) {
      this.isSearched = true;
      this.#changed();
    }
  }

  /** Looks through what is not shown yet for sessions that need somebody: a request may be old. */
  async #findWaiting() {
    let cursor = this.#cursor;
    for (let seen = this.#summaries.size; cursor !== undefined && seen < SESSIONS_MAX; seen += SEARCH_PAGE) {
      /** @type {Map<string, Json>} */
      const page = new Map();
      cursor = await this.#page(page, cursor, SEARCH_PAGE);
      const found = [...page.values()].filter((summary) => needsSomebody(summary) && !this.#summaries.has(summary.resource));
      for (const summary of found) {
        this.#set(summary.resource, summary);
      }
      if (found.length > 0) {
        this.#changed();
      }
    }
  }

  /** A session that is not in the list changed: it is one of the newest now. */
  #reloadSoon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.reload().catch((error) => console.info('greenroom: the list of sessions was not read', error));
    }, UNKNOWN_MS);
  }

  /** Reads the next page, if there is one. */
  async loadMore() {
    if (this.#loading !== undefined) {
      await this.#loading;
      return;
    }
    if (this.#cursor === undefined || this.#summaries.size >= SESSIONS_MAX) {
      return;
    }
    await this.#load(async () => {
      const fresh = new Map(this.#summaries);
      this.#cursor = await this.#page(fresh, this.#cursor);
      this.#summaries = fresh;
      this.#pages += 1;
    });
  }

  /** @param {() => Promise<void>} load */
  async #load(load) {
    this.#heard = [];
    this.#loading = load();
    try {
      await this.#loading;
    } finally {
      const heard = this.#heard;
      this.#heard = undefined;
      this.#loading = undefined;
      for (const { method, params } of heard) {
        this.#apply(method, params);
      }
      this.#changed();
    }
  }

  /** @param {Map<string, Json>} into @param {string | undefined} cursor @param {number} [limit] @param {Promise<any>} [asked] its answer, if it was asked for @returns {Promise<string | undefined>} */
  async #page(into, cursor, limit = LIST_PAGE, asked = undefined) {
    const result = await (asked ?? this.#request('listSessions', { limit, ...(cursor === undefined ? {} : { cursor }) }));
    for (const summary of Array.isArray(result?.items) ? result.items : []) {
      if (isObject(summary) && typeof summary.resource === 'string' && into.size < SESSIONS_MAX) {
        into.set(summary.resource, summary);
      }
    }
    return typeof result?.nextCursor === 'string' ? result.nextCursor : undefined;
  }

  #changed() {
    this.#sorted = undefined;
    this.#onChange();
  }

  /** Takes what the host says about its list. `true` if it was about that. @param {string} method @param {any} params */
  hear(method, params) {
    const isKnown = this.#apply(method, params);
    if (isKnown) {
      this.#heard?.push({ method, params });
      this.#changed();
    }
    return isKnown;
  }

  /** @param {string} method @param {any} params */
  #apply(method, params) {
    switch (method) {
      case 'root/sessionAdded':
        if (isObject(params?.summary) && typeof params.summary.resource === 'string') {
          this.#set(params.summary.resource, params.summary);
        }
        return true;
      case 'root/sessionSummaryChanged': {
        const known = this.#summaries.get(params?.session);
        if (known === undefined) {
          this.#reloadSoon();
        } else if (isObject(params.changes)) {
          this.#set(params.session, { ...known, ...params.changes });
        }
        return true;
      }
      case 'root/sessionRemoved':
        this.#summaries.delete(params?.session);
        return true;
      default:
        return false;
    }
  }

  /** @param {string} uri @param {Json} summary */
  #set(uri, summary) {
    if (this.#summaries.size < SESSIONS_MAX || this.#summaries.has(uri)) {
      this.#summaries.set(uri, summary);
    }
  }
}

/** Whether a session waits for somebody. Archived ones are out of sight. @param {{status?: number}} summary */
export const needsSomebody = ({ status = 0 }) =>
  (status & STATUS.ACTIVITY_MASK) === STATUS.INPUT_NEEDED && (status & STATUS.IS_ARCHIVED) === 0;

/** @param {unknown} a @param {unknown} b */
function compareTexts(a, b) {
  const [left, right] = [String(a ?? ''), String(b ?? '')];
  return left < right ? -1 : Number(left > right);
}
