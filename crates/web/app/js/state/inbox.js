/**
 * Everything that waits for somebody, over all sessions, chats and workers.
 *
 * Promises: each session that is known to need somebody is watched, at most `SESSIONS_MAX` at once; an item is there as long as
 * the host says that it waits, whatever was answered here. Oldest first.
 * Must not know: connections, the document.
 */

import { needsSomebody } from './sessions.js';

/** @typedef {import('../wire/reduce/fields.js').Json} Json */
/**
 * Something that waits. `request` is the question, `toolCall` the call to be confirmed, each whole, as the host sent it.
 * `since` in milliseconds since 1970, as well as this page knows.
 * @typedef {{id: string, sessionUri: string, chatUri: string, turnId?: string, requestId?: string, toolCallId?: string,
 *   kind: 'confirm' | 'question' | 'result' | 'sign-in', title: string, since: number, request?: Json, toolCall?: Json,
 *   sessionTitle: string, chatTitle: string}} InboxItem
 */

const SESSIONS_MAX = 50;

export class Inbox {
  /** @type {Map<string, {release: () => void, isHeard: boolean, state?: Json}>} */
  #watched = new Map();
  /** @type {Map<string, number>} when an item was first seen */
  #since = new Map();
  /** @type {InboxItem[]} */
  #items = [];
  #watch;
  #onChange;

  /**
   * @param {(channel: string, hear: (state: Json | undefined) => void) => () => void} watch
   * @param {() => void} onChange
   */
  constructor(watch, onChange) {
    this.#watch = watch;
    this.#onChange = onChange;
  }

  /** @returns {InboxItem[]} */
  items() {
    return this.#items;
  }

  /** Whether each session that needs somebody has said what for. */
  get isRead() {
    return [...this.#watched.values()].every(({ isHeard }) => isHeard);
  }

  /** Watches the sessions that need somebody, and no others. @param {Json[]} sessions */
  takeSessions(sessions) {
    const wanted = new Map(
      sessions
        .filter(needsSomebody)
        .slice(0, SESSIONS_MAX)
        .map((summary) => [summary.resource, summary]),
    );
    for (const [uri, { release }] of this.#watched) {
      if (!wanted.has(uri)) {
        this.#watched.delete(uri);
        release();
      }
    }
    for (const uri of wanted.keys()) {
      if (!this.#watched.has(uri)) {
        /** @type {{release: () => void, isHeard: boolean, state?: Json}} */
        const entry = { release: () => {}, isHeard: false };
        this.#watched.set(uri, entry);
        entry.release = this.#watch(uri, (state) => {
          entry.state = state;
          entry.isHeard = true;
          this.#refresh(wanted);
        });
      }
    }
    this.#refresh(wanted);
  }

  /** @param {Map<string, Json>} summaries */
  #refresh(summaries) {
    const items = [];
    for (const [uri, { state }] of this.#watched) {
      const modified = Date.parse(summaries.get(uri)?.modifiedAt ?? '');
      for (const request of state?.inputNeeded ?? []) {
        const item = toItem(uri, /** @type {Json} */ (state), request);
        if (item !== undefined) {
          const seen = this.#since.get(item.id) ?? (Number.isNaN(modified) ? Date.now() : Math.min(modified, Date.now()));
          this.#since.set(item.id, seen);
          items.push({ ...item, since: seen });
        }
      }
    }
    items.sort((a, b) => a.since - b.since);
    const ids = new Set(items.map(({ id }) => id));
    for (const id of this.#since.keys()) {
      if (!ids.has(id)) {
        this.#since.delete(id);
      }
    }
    this.#items = items;
    this.#onChange();
  }
}

/** @param {string} sessionUri @param {Json} session @param {Json} needed @returns {Omit<InboxItem, 'since'> | undefined} */
function toItem(sessionUri, session, needed) {
  const { id, chat: chatUri, turnId, request, toolCall } = needed;
  if (typeof id !== 'string' || typeof chatUri !== 'string') {
    return undefined;
  }
  const chat = session.chats.find((/** @type {Json} */ candidate) => candidate.resource === chatUri);
  const common = { id: `${sessionUri} ${id}`, sessionUri, chatUri, sessionTitle: session.title, chatTitle: chat?.title ?? '' };
  const callTitle = textOf(toolCall?.confirmationTitle) ?? textOf(toolCall?.invocationMessage) ?? toolCall?.displayName;
  switch (needed.kind) {
    case 'chatInput':
      return { ...common, kind: 'question', requestId: request?.id, title: textOf(request?.message) ?? 'Question', request };
    case 'toolConfirmation': {
      const kind = toolCall?.status === 'pending-result-confirmation' ? 'result' : 'confirm';
      return { ...common, kind, turnId, toolCallId: toolCall?.toolCallId, title: callTitle ?? 'Approval', toolCall };
    }
    case 'toolAuthentication':
      return { ...common, kind: 'sign-in', turnId, toolCallId: toolCall?.toolCallId, title: callTitle ?? 'Sign in', toolCall };
    default:
      return undefined; // work that a client does is not a question to the user (H-221)
  }
}

/** A text that may be Markdown in an object. @param {any} value @returns {string | undefined} */
const textOf = (value) => {
  const text = typeof value === 'string' ? value : value?.markdown;
  return typeof text === 'string' && text !== '' ? text : undefined;
};
