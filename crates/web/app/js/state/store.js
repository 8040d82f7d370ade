/**
 * What the screens read and do: states of channels, the list of sessions, the inbox, drafts, the connection.
 *
 * Promises: a state that was handed out never changes; a watcher is called with the state and what changed in it, in order;
 * what is dispatched shows at once, and `sent` says what became of it; nothing shows as confirmed before the host said so. A
 * channel is watched as long as somebody watches it or waits for an answer on it.
 * Must not know: the document. A screen imports from here and never from `wire/`.
 */

import { CLIENT_INFO, ROOT } from '../wire/connection.js';
import { Live } from '../wire/live.js';
import { addKinds, diffStates } from '../wire/mirror.js';
import { STATUS, partKey } from '../wire/reduce/fields.js';
import { api } from './api.js';
import { Drafts } from './draft.js';
import { Inbox } from './inbox.js';
import { Listeners, tellSafely } from './listeners.js';
import { Outbox } from './sent.js';
import { SessionList, needsSomebody } from './sessions.js';
import { TurnWindow } from './turn_window.js';

export { STATUS, needsSomebody, partKey };

/** @typedef {import('../wire/reduce/fields.js').Json} Json */
/** @typedef {import('../wire/reduce/fields.js').Change} Change */
/** @typedef {import('../types.d.ts').RootState} RootState */
/** @typedef {import('../types.d.ts').SessionSummary} SessionSummary */
/** @typedef {import('../wire/mirror.js').State} State */
/** @typedef {import('./sent.js').Sent} Sent */
/** @typedef {import('./inbox.js').InboxItem} InboxItem */
/**
 * The connection as it is shown. `isLive`: answers come; also true of `new-version`, which works and should be reloaded.
 * @typedef {{status: import('../wire/live.js').LiveStatus | 'new-version', isLive: boolean, retryAt?: number, behind?: number,
 *   why?: string, retryNow: () => void}} ConnectionView
 */
/** @typedef {(state: any, changes: Change[]) => void} Watcher `state` is none while it is on its way, and once the channel is gone */

/** @type {Change[]} */
const ALL = [{ kind: 'all' }];
/** How many turns of a chat are sent at first. */
const VIEW_TURNS = 20;
/** How long a channel is watched after its last watcher left: who goes back finds it there. */
const LINGER_MS = 5_000;

/** @typedef {{watcher: Watcher, isTold: boolean}} WatchEntry who was told nothing yet is told everything */
/** @typedef {{watchers: Set<WatchEntry>, shown: State | undefined, view: Json, timer: any, error?: Error}} Watch */

/**
 * Connects, and keeps everything up to date until `close()`.
 * @param {{url: string | URL, token?: string, clientId: string, checkToken?: () => Promise<'taken' | 'refused' | 'unreachable'>,
 *   isPageCurrent?: () => Promise<boolean>, storage?: Storage, clientInfo?: Json, first?: import('../wire/connection.js').FirstFlight}} options
 */
export function createStore(options) {
  return new Store(options);
}

export class Store {
  /** @type {Map<string, Watch>} */
  #watches = new Map();
  #live;
  #sessions;
  #inbox;
  #outbox;
  #window;
  #isPageCurrent;
  /** @type {Listeners<ConnectionView>} */
  #connectionListeners = new Listeners();
  /** @type {Listeners<SessionSummary[]>} */
  #sessionListeners = new Listeners();
  /** @type {Listeners<InboxItem[]>} */
  #inboxListeners = new Listeners();
  /** @type {Listeners<RootState | undefined>} */
  #rootListeners = new Listeners();
  /** @type {Listeners<any>} */
  #progressListeners = new Listeners();
  #isNewVersion = false;
  #ends = new AbortController();
  /** Drafts of messages, by chat. */
  drafts;

  /** @param {Parameters<typeof createStore>[0]} options */
  constructor({ url, token, clientId, checkToken = api.checkToken, isPageCurrent = api.isPageCurrent, storage, clientInfo = CLIENT_INFO, first }) {
    this.#isPageCurrent = isPageCurrent;
    this.#outbox = new Outbox((sent) => this.#lingerOrLeave(sent.channel));
    this.#sessions = new SessionList(
      (method, params) => this.#live.request(method, params),
      () => this.#sessionsChanged(),
    );
    this.#inbox = new Inbox(
      (channel, hear) => this.watch(channel, hear),
      () => this.#inboxListeners.call(this.#inbox.items()),
    );
    this.#window = new TurnWindow({
      stateOf: (chat) => this.confirmed(chat),
      replace: (chat, state) => {
        this.#live.replica.replaceConfirmed(chat, state);
        this.#show(chat);
      },
      fetch: (chat, cursor) => this.#live.request('fetchTurns', { channel: chat, cursor }),
      renew: (chat) => {
        const watch = this.#watches.get(chat);
        if (watch !== undefined) {
          this.#subscribe(chat, watch);
        }
      },
    });
    this.drafts = new Drafts({ storage, dispatch: (channel, action) => this.dispatch(channel, action) });
    this.#live = new Live(
      { url: socketUrl(url), token, clientId, checkToken, initializeParams: { clientInfo }, first },
      {
        onState: () => this.#connectionListeners.call(this.connection),
        onEnvelope: (envelope, effect) => this.#takeReplay([{ envelope, effect }]),
        onReplay: (missed) => this.#takeReplay(missed),
        onReset: (channel) => this.#takeReset(channel),
        onGone: (channel) => this.#takeGone(channel),
        onDropped: (dropped) => this.#takeDropped(dropped),
        onNotification: (method, params) => (method === 'root/progress' ? this.#progressListeners.call(params) : this.#sessions.hear(method, params)),
        onRestored: (how, listed) => this.#takeRestored(how, listed),
      },
    );
    this.#live.start();
    this.#listenToPage();
  }

  /** Asks whether the host is there when somebody begins to look, and when the network is back. */
  #listenToPage() {
    const look = () => {
      if (globalThis.document?.visibilityState !== 'hidden') {
        this.#live.look();
      }
    };
    const { signal } = this.#ends;
    globalThis.document?.addEventListener('visibilitychange', look, { signal });
    for (const event of ['online', 'focus', 'pageshow']) {
      globalThis.addEventListener?.(event, look, { signal });
    }
    globalThis.addEventListener?.('pagehide', () => this.drafts.flush(), { signal });
  }

  /** Ends the connection and everything that waits on it. */
  close() {
    this.#ends.abort();
    this.drafts.flush();
    this.#live.close();
  }

  // The connection.

  /** @returns {ConnectionView} */
  get connection() {
    const { status, retryAt, behind, why } = this.#live.state;
    const isLive = status === 'live';
    const shown = isLive && this.#isNewVersion ? 'new-version' : status;
    return { status: shown, isLive, retryAt, behind, why, retryNow: () => this.#live.retryNow() };
  }

  /** @param {(connection: ConnectionView) => void} listener @returns {() => void} */
  onConnection(listener) {
    return this.#connectionListeners.add(listener);
  }

  /** The name of this tab towards the host. */
  get clientId() {
    return this.#live.replica.clientId;
  }

  /** The folder that sessions work in unless another is named, as a URI; none while it is not known. */
  get defaultDirectory() {
    return this.#live.defaultDirectory;
  }

  /** Somebody looks at the page: the host has two seconds to answer, then the connection is made anew. */
  look() {
    return this.#live.look();
  }

  /** The host serves another version of this page than this one. */
  markNewVersion() {
    this.#isNewVersion = true;
    this.#connectionListeners.call(this.connection);
  }

  // States of channels.

  /** The root state: agents, models, configuration. @returns {RootState | undefined} */
  root() {
    return this.state(ROOT);
  }

  /** @param {(root: RootState | undefined) => void} listener @returns {() => void} */
  onRoot(listener) {
    return this.#rootListeners.add(listener);
  }

  /** How creations go on that were asked for with a token. @param {(progress: {progressToken: string, progress: number, total?: number, message?: string}) => void} listener */
  onProgress(listener) {
    return this.#progressListeners.add(listener);
  }

  /** The state of a watched channel, ahead of the host by what is on its way. @param {string} channel @returns {any} */
  state(channel) {
    return this.#live.replica.state(channel)?.value;
  }

  /** The same without what is on its way: what the host confirmed. @param {string} channel @returns {any} */
  confirmed(channel) {
    return this.#live.replica.confirmed(channel)?.value;
  }

  /** Why a channel that is watched has no state: the host refused the subscription. @param {string} channel @returns {Error | undefined} */
  errorOf(channel) {
    return this.#watches.get(channel)?.error;
  }

  /**
   * Watches a channel: the watcher is called with its state as soon as it is there, then with every change, until it is released.
   * @param {string} channel @param {Watcher} watcher @param {{view?: Json}} [further] @returns {() => void} release
   */
  watch(channel, watcher, { view } = {}) {
    let watch = this.#watches.get(channel);
    if (watch === undefined) {
      const shown = this.#live.replica.state(channel);
      watch = { watchers: new Set(), shown, view: view ?? { turns: VIEW_TURNS }, timer: undefined };
      this.#watches.set(channel, watch);
      this.#subscribe(channel, watch);
    }
    clearTimeout(watch.timer);
    const own = { watcher, isTold: false };
    watch.watchers.add(own);
    queueMicrotask(() => {
      const isKnown = watch.shown !== undefined || watch.error !== undefined;
      if (isKnown && !own.isTold && watch.watchers.has(own)) {
        own.isTold = true;
        tellSafely(() => watcher(watch.shown?.value, ALL));
      }
    });
    return () => {
      if (watch.watchers.delete(own)) {
        this.#lingerOrLeave(channel);
      }
    };
  }

  /** What is neither the root nor a session of the list may be of any kind: how it is read must be there first. @param {string} channel @param {Watch} watch */
  async #subscribe(channel, watch) {
    try {
      if (!hasAllKinds && channel !== ROOT && this.#sessions.get(channel) === undefined) {
        await loadKinds();
        if (this.#watches.get(channel) !== watch) {
          return; // left meanwhile
        }
      }
      await this.#live.subscribe(channel, channel === ROOT ? {} : { view: watch.view });
    } catch (error) {
      if (this.#watches.get(channel) === watch) {
        watch.error = error instanceof Error ? error : new Error(String(error));
        this.#show(channel, ALL);
      }
    }
  }

  /** Leaves a channel some time after its last watcher, unless an answer is waited for on it. @param {string} channel */
  #lingerOrLeave(channel) {
    const watch = this.#watches.get(channel);
    if (watch === undefined || watch.watchers.size > 0 || channel === ROOT) {
      return; // not watched, or by somebody else
    }
    clearTimeout(watch.timer);
    watch.timer = setTimeout(() => {
      if (watch.watchers.size === 0 && !this.isPending(channel, () => true)) {
        this.#watches.delete(channel);
        this.#window.reset(channel);
        this.#live.unsubscribe(channel);
      }
    }, LINGER_MS);
  }

  /** Calls the watchers of a channel. Without changes they are found by comparing. @param {string} channel @param {Change[]} [known] */
  #show(channel, known) {
    const after = this.#live.replica.state(channel);
    if (channel === ROOT) {
      this.#rootListeners.call(this.root());
    }
    const watch = this.#watches.get(channel);
    if (watch === undefined) {
      return; // state that nobody looks at
    }
    const changes = known ?? diffStates(watch.shown, after);
    watch.shown = after;
    if (changes.length > 0) {
      for (const entry of [...watch.watchers]) {
        const told = entry.isTold ? changes : ALL;
        entry.isTold = true;
        // One that was told before may have done something: the others are not told what was so before that.
        tellSafely(() => entry.watcher(watch.shown?.value, told));
      }
    }
  }

  /**
   * Takes what the host did. The states have all of it, so watchers are told once for all of it: one that does something when it is
   * told of the first would make the rest look as if it had been told already.
   * @param {{envelope: import('../wire/envelope.js').Envelope, effect: import('../wire/replica.js').EnvelopeEffect}[]} done
   */
  #takeReplay(done) {
    /** @type {Map<string, Change[] | undefined>} */
    const changed = new Map();
    for (const { envelope, effect } of done) {
      this.#takeEnvelope(envelope, effect);
      if (effect.kind === 'not-for-us') {
        continue;
      }
      const channel = effect.kind === 'refused' ? effect.channel : envelope.channel;
      // What the reducer says is right of what is shown only while nothing is ahead of it; else the two are compared.
      const shown = this.#watches.get(channel)?.shown;
      const isExact = effect.kind === 'foreign' && !this.#live.replica.isAhead(channel) && shown?.value !== undefined;
      const before = changed.has(channel) ? changed.get(channel) : [];
      changed.set(channel, isExact && before !== undefined ? [...before, ...effect.changes] : undefined);
    }
    for (const [channel, changes] of changed) {
      this.#show(channel, changes);
    }
    for (const { envelope, effect } of done) {
      this.#takeTurns(envelope, effect);
    }
  }

  /** @param {import('../wire/envelope.js').Envelope} envelope @param {import('../wire/replica.js').EnvelopeEffect} effect */
  #takeEnvelope(envelope, effect) {
    const { replica } = this.#live;
    this.#outbox.takeEffect(effect, (channel) => this.confirmed(channel));
    const { channel, action, origin } = envelope;
    if (origin !== undefined && origin.clientId === replica.clientId) {
      // Later ones have answers of their own, which may be in the same replay.
      this.#outbox.takePending(replica.pending(), origin.clientSeq);
    }
    const isTaken = effect.kind !== 'refused' && effect.kind !== 'not-for-us';
    if (isTaken && action.type === 'chat/draftChanged') {
      this.drafts.hear(channel, action.draft ?? undefined, origin?.clientId === replica.clientId);
    }
  }

  /** @param {import('../wire/envelope.js').Envelope} envelope @param {import('../wire/replica.js').EnvelopeEffect} effect */
  #takeTurns({ channel, action }, effect) {
    if (effect.kind === 'refused' || effect.kind === 'not-for-us') {
      return; // nothing changed
    }
    if (action.type === 'chat/turnsLoaded') {
      this.#window.takePage(channel, action);
    } else if (effect.changes.some((change) => change.kind === 'list')) {
      this.#window.takeList(channel);
    }
  }

  /** @param {string} channel */
  #takeReset(channel) {
    const watch = this.#watches.get(channel);
    if (watch !== undefined) {
      watch.error = undefined;
    }
    this.#window.reset(channel);
    this.#outbox.takePending(this.#live.replica.pending());
    const confirmed = this.#live.replica.confirmed(channel);
    if (confirmed?.kind === 'chat') {
      this.drafts.hear(channel, confirmed.value.draft ?? undefined, false);
    }
    this.#show(channel, ALL);
  }

  /** @param {string} channel */
  #takeGone(channel) {
    const watch = this.#watches.get(channel);
    if (watch !== undefined) {
      watch.error = new Error('It no longer exists.');
    }
    this.#show(channel, ALL);
  }

  /** @param {import('../wire/replica.js').DroppedAction} dropped */
  #takeDropped(dropped) {
    this.#outbox.takeDropped(dropped, (channel) => this.confirmed(channel));
    this.#show(dropped.channel);
  }

  // Doing things.

  /**
   * Dispatches an action: it shows at once, and `sent.done` says what became of it. Throws if far too much is on its way.
   * @param {string} channel @param {Json} action @returns {Sent}
   */
  dispatch(channel, action) {
    const clientSeq = this.#live.dispatch(channel, action);
    const sent = this.#outbox.add(clientSeq, channel, action);
    this.#show(channel);
    return sent;
  }

  /**
   * Answers something that waits in a chat. The chat is watched before that, because what is taken on a channel that nobody watches
   * is not echoed (ADR 0011), and until it is known what became of the answer.
   * @param {{chatUri: string}} item @param {Json} action @returns {Promise<Sent>} fails if the chat cannot be watched
   */
  async answer({ chatUri }, action) {
    /** @type {() => void} */
    let release = () => {};
    await new Promise((/** @type {(value: void) => void} */ resolve, reject) => {
      release = this.watch(chatUri, (state) => (state === undefined ? reject(this.errorOf(chatUri)) : resolve()));
    }).catch((error) => {
      release();
      throw error;
    });
    const sent = this.dispatch(chatUri, action);
    sent.done.then(release);
    return sent;
  }

  /** Whether an action is on its way. @param {string} channel @param {(action: Json) => boolean} predicate */
  isPending(channel, predicate) {
    return this.#outbox.has(channel, predicate);
  }

  /** Asks the host. Fails at once while there is no connection. @param {string} method @param {Json} [params] @returns {Promise<any>} */
  request(method, params = {}) {
    return this.#live.request(method, params);
  }

  /** Fetches the turns before the oldest one that is here; they come as a change of the list. @param {string} chat @returns {Promise<boolean>} whether there were any */
  fetchOlder(chat) {
    return this.#window.fetchOlder(chat);
  }

  /**
   * Says which turn is read, or none at the end of the chat: turns around it that were dropped (`isDropped`) are fetched again, and
   * others are dropped when there are too many.
   * @param {string} chat @param {string} [turnId]
   */
  readAt(chat, turnId) {
    return this.#window.readAt(chat, turnId);
  }

  // The list of sessions, and the inbox.

  /** @returns {SessionSummary[]} newest first */
  sessions() {
    return /** @type {SessionSummary[]} */ (this.#sessions.all());
  }

  /** Whether the host has told which sessions there are. */
  get isListRead() {
    return this.#sessions.isRead;
  }

  get hasMoreSessions() {
    return this.#sessions.hasMore;
  }

  /** @param {(sessions: SessionSummary[]) => void} listener @returns {() => void} */
  onSessions(listener) {
    return this.#sessionListeners.add(listener);
  }

  async loadMoreSessions() {
    try {
      await this.#sessions.loadMore();
    } catch (error) {
      // The connection was lost meanwhile: the next one reads the list.
      console.info('greenroom: the list of sessions was not read', error);
    }
  }

  #sessionsChanged() {
    this.#inbox.takeSessions(this.sessions());
    this.#sessionListeners.call(this.sessions());
  }

  /** @param {'first' | 'replay' | 'snapshot'} how @param {Promise<any>} [listed] */
  async #takeRestored(how, listed) {
    try {
      await this.#sessions.reload(listed);
      // Whoever opens a chat next does not wait for it. If the host is gone again, it is loaded then.
      loadKinds().catch(() => {});
      // A host that was started anew may serve another page than this one.
      if (how !== 'first' && !(await this.#isPageCurrent())) {
        this.markNewVersion();
      }
    } catch (error) {
      // The connection was lost again: the next one reads the list.
      console.info('greenroom: the list of sessions was not read', error);
    }
  }

  /** @returns {InboxItem[]} what waits for somebody, oldest first */
  inbox() {
    return this.#inbox.items();
  }

  /** Whether what is not in the inbox does not wait. */
  get isInboxRead() {
    return this.#sessions.isSearched && this.#inbox.isRead;
  }

  /** @param {(items: InboxItem[]) => void} listener @returns {() => void} */
  onInbox(listener) {
    return this.#inboxListeners.add(listener);
  }
}

let hasAllKinds = false;

/** Loads what reads and reduces all other kinds of channels; again after a failure. */
async function loadKinds() {
  const { LATER_KINDS } = await import('../wire/reduce/later.js');
  addKinds(LATER_KINDS);
  hasAllKinds = true;
}

/** The address of a socket at an address of the page. @param {string | URL} url */
function socketUrl(url) {
  const address = new URL(url, globalThis.location?.href);
  address.protocol = address.protocol.replace(/^http/, 'ws');
  return address.href;
}
