/**
 * The client that the page uses: it shows what is dispatched at once, keeps its channels up to date, and reconnects by
 * itself when the connection is lost.
 *
 * Promises: the state is always readable, connected or not; when all answers have come it is the host's. Nothing is sent
 * twice that could take effect twice, nothing is dropped in silence (G-30). What is sent reaches the host in the order it
 * was made. "Live" is said only of a connection that was heard of.
 * Must not know: what the actions are for, the document.
 */

import { Backoff, Connection, ConnectionLost, ROOT, RpcError } from './connection.js';
import { UnreadableError, readEnvelope, readSnapshot } from './envelope.js';
import { Replica } from './replica.js';
import { isObject } from './reduce/fields.js';
import { Subscriptions } from './subscriptions.js';

/** @typedef {import('./reduce/fields.js').Json} Json */
/** @typedef {import('./replica.js').DroppedAction} DroppedAction */
/** @typedef {'connecting' | 'live' | 'catching-up' | 'waiting' | 'offline' | 'other-tab' | 'signed-out'} LiveStatus */
/**
 * `retryAt`: when the next attempt begins, in milliseconds since 1970. `behind`: how many actions were missed.
 * @typedef {{status: LiveStatus, retryAt?: number, behind?: number, why?: string}} LiveState
 */
/**
 * Who hears what happens, in order. The replica has it already.
 * @typedef {object} LiveHandlers
 * @property {(state: LiveState) => void} onState
 * @property {(envelope: import('./envelope.js').Envelope, effect: import('./replica.js').EnvelopeEffect) => void} onEnvelope
 * @property {(missed: {envelope: import('./envelope.js').Envelope, effect: import('./replica.js').EnvelopeEffect}[]) => void} onReplay the
 *   states have all of it
 * @property {(channel: string) => void} onReset the state of a channel is there, or was replaced
 * @property {(channel: string) => void} onGone a channel that was watched is no longer there
 * @property {(dropped: DroppedAction) => void} onDropped
 * @property {(method: string, params: any) => void} onNotification
 * @property {(how: 'first' | 'replay' | 'snapshot', listed?: Promise<any>) => void} onRestored what was missed is applied; `listed` is the
 *   first page of the list, if it was asked for with the handshake
 */
/**
 * @typedef {{url: string, token?: string, clientId: string, initializeParams?: Json, checkToken?: () => Promise<'taken' | 'refused' | 'unreachable'>,
 *   first?: import('./connection.js').FirstFlight}} LiveOptions a connection that was begun already is taken over
 */

const RETRY_MAX_MS = 10_000;
/** How long the host may be silent before it is pinged, and how long an answer may take then. */
const PING_AFTER_MS = 20_000;
const PING_ANSWER_MS = 20_000;
/** The same when somebody begins to look at the page, or waits for the answer to an action. */
const LOOK_ANSWER_MS = 2_000;
const ACTION_ANSWER_MS = 3_000;

export class Live {
  #options;
  #handlers;
  #watched = new Subscriptions();
  /** @type {Connection | undefined} one that is set up */
  #connection;
  /** @type {Connection | undefined} one that is being set up */
  #attempt;
  #backoff = new Backoff(RETRY_MAX_MS);
  #connectedAt = 0;
  /** @type {any} */
  #timer;
  /** @type {any} */
  #silence;
  /** The one question whether the host is there. @type {{connection: Connection, silentMs: number, done: Promise<void>} | undefined} */
  #asking;
  /** @type {any} */
  #expecting;
  /** @type {{method: string, params: any}[]} what came while a connection was being set up: it is taken after the states */
  #early = [];
  #wasInitialized = false;
  #isClosed = false;
  /** The folder that sessions work in unless another is named. @type {string | undefined} */
  defaultDirectory;
  /** @type {LiveState} */
  #state = { status: 'connecting' };

  /** @param {LiveOptions} options @param {LiveHandlers} handlers */
  constructor(options, handlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.replica = new Replica(options.clientId);
    this.#watched.add(ROOT, {});
  }

  get state() {
    return this.#state;
  }

  /** @param {LiveState} state */
  #setState(state) {
    this.#state = state;
    this.#handlers.onState(state);
  }

  start() {
    this.#connect();
  }

  /** Ends the client. */
  close() {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#silence);
    clearTimeout(this.#expecting);
    this.#attempt?.close('this client was closed');
    this.#connection?.close('this client was closed');
  }

  /** Tries now instead of at the end of the wait; takes the client id back from another tab. */
  retryNow() {
    if (this.#isClosed || this.#connection !== undefined || this.#attempt !== undefined) {
      return; // there is a connection, or one is being made
    }
    clearTimeout(this.#timer);
    this.#connect();
  }

  /** Somebody looks at the page: asks whether the host is there, and connects again if it does not say so soon. */
  async look() {
    const connection = this.#connection;
    if (connection === undefined) {
      if (this.#state.status === 'waiting' || this.#state.status === 'offline') {
        this.retryNow();
      }
      return;
    }
    await this.#ping(connection, LOOK_ANSWER_MS);
  }

  /**
   * Asks whether the host is there, and ends a connection that is silent for so long meanwhile. One question at a time: who has less
   * patience takes it over, others wait for its answer.
   * @param {Connection} connection @param {number} silentMs @returns {Promise<void>}
   */
  #ping(connection, silentMs) {
    const before = this.#asking;
    if (before?.connection === connection && before.silentMs <= silentMs) {
      return before.done;
    }
    const asking = { connection, silentMs, done: Promise.resolve() };
    this.#asking = asking;
    asking.done = this.#pingUntilAnswered(asking).finally(() => {
      if (this.#asking === asking) {
        this.#asking = undefined;
      }
    });
    return asking.done;
  }

  /**
   * Only the answer counts: what was on its way when the host was asked says nothing of it now, but a long message holds the answer
   * up, so after it is asked again.
   * @param {{connection: Connection, silentMs: number}} asking
   */
  async #pingUntilAnswered(asking) {
    const { connection, silentMs } = asking;
    while (this.#asking === asking) {
      const before = performance.now();
      try {
        await connection.ping(silentMs);
        return;
      } catch (error) {
        if (connection.isClosed || error instanceof RpcError) {
          return; // it ended, or a host that refuses is there
        }
        if (connection.lastHeard <= before) {
          connection.close('the host does not answer');
          return;
        }
      }
    }
  }

  #connect() {
    const isBack = this.#wasInitialized;
    this.#early = [];
    this.#setState({ status: 'connecting' });
    const { url, token, first } = this.#options;
    this.#options.first = undefined; // it is taken over once
    const attempt = first?.connection ?? new Connection(url, token);
    this.#attempt = attempt;
    attempt.listen({
      onOpen: () => {
        if (isBack) {
          this.#setState({ status: 'catching-up' });
        }
        this.#introduce(attempt, first).catch((error) => attempt.close(error.message));
      },
      onNotification: (method, params) => this.#takeNotification(method, params),
      onClose: (why) => this.#lost(attempt, why),
    });
  }

  /** `initialize` for the first connection, `reconnect` after a lost one, and `initialize` on the same socket if the host does not know the client any more (H-088). @param {Connection} connection @param {import('./connection.js').FirstFlight} [first] */
  async #introduce(connection, first) {
    const { clientId, initializeParams = {} } = this.#options;
    const channels = this.#watched.all();
    if (this.#wasInitialized) {
      const asked = this.#watched.there();
      try {
        const result = await connection.reconnect(clientId, this.replica.lastSeen, asked);
        this.#checkAttempt(connection);
        return await this.#takeReconnected(connection, result, asked);
      } catch (error) {
        if (!(error instanceof RpcError)) {
          throw error;
        }
      }
    }
    // `initialize` takes no further params of a subscription.
    const plain = channels.filter((channel) => Object.keys(this.#watched.get(channel)?.further ?? {}).length === 0);
    const result = await (first?.initialized ?? connection.initialize(clientId, plain, initializeParams));
    if (!isObject(result) || typeof result.protocolVersion !== 'string' || !Array.isArray(result.snapshots)) {
      throw new UnreadableError('an `initialize` result without version or snapshots');
    }
    this.#checkAttempt(connection);
    const how = this.#wasInitialized ? 'snapshot' : 'first';
    this.#wasInitialized = true;
    this.defaultDirectory = typeof result.defaultDirectory === 'string' ? result.defaultDirectory : undefined;
    return this.#takeSnapshots(connection, result.snapshots, channels, how, first?.sessions);
  }

  /** @param {Connection} connection @param {any} result @param {string[]} asked */
  #takeReconnected(connection, result, asked) {
    if (isObject(result) && result.type === 'snapshot' && Array.isArray(result.snapshots)) {
      return this.#takeSnapshots(connection, result.snapshots, asked, 'snapshot');
    }
    if (!isObject(result) || !Array.isArray(result.actions)) {
      throw new UnreadableError('a `reconnect` result with neither actions nor snapshots');
    }
    const envelopes = result.actions.map(readEnvelope);
    const missing = (Array.isArray(result.missing) ? result.missing : []).filter(
      (channel) => typeof channel === 'string',
    );
    this.#setState({ status: 'catching-up', behind: envelopes.length });
    const outcome = this.replica.applyReplay(envelopes, missing);
    this.#establish(connection, 'replay');
    this.#reportDropped(outcome);
    this.#handlers.onReplay(envelopes.map((envelope, index) => ({ envelope, effect: outcome.effects[index] })));
    this.#finish(outcome, asked);
    return undefined;
  }

  /** Takes the states of all channels; subscribes to those that came without one (H-029, H-082). @param {Connection} connection @param {any[]} values @param {string[]} channels @param {'first' | 'snapshot'} how @param {Promise<any>} [listed] */
  async #takeSnapshots(connection, values, channels, how, listed) {
    const snapshots = values.map(readSnapshot);
    /** @type {string[]} */
    const stateless = [];
    // All at once: one after the other each would take a round trip.
    const rest = channels.map(async (channel) => {
      const watched = this.#watched.get(channel);
      if (watched === undefined || snapshots.some((snapshot) => snapshot.resource === channel)) {
        return;
      }
      try {
        const result = await connection.request('subscribe', { channel, ...watched.further });
        if (result?.snapshot) {
          snapshots.push(readSnapshot(result.snapshot));
        } else {
          stateless.push(channel);
        }
      } catch (error) {
        if (!(error instanceof RpcError)) {
          throw error;
        }
      }
    });
    await Promise.all(rest);
    this.#checkAttempt(connection);
    const outcome = this.replica.applySnapshots(snapshots);
    this.#establish(connection, how, listed);
    this.#reportDropped(outcome);
    const isThere = (/** @type {string} */ channel) => stateless.includes(channel) || outcome.reset.includes(channel);
    outcome.gone = channels.filter((channel) => this.#watched.has(channel) && !isThere(channel));
    for (const channel of channels.filter(isThere)) {
      this.#watched.markThere(channel);
    }
    this.#finish(outcome, channels);
  }

  /** Whether this is still the one that is set up: it may have ended while its last answers were taken. @param {Connection} connection */
  #checkAttempt(connection) {
    if (this.#attempt !== connection || connection.isClosed) {
      throw new ConnectionLost('the connection was lost');
    }
  }

  /** @param {Connection} connection @param {'first' | 'replay' | 'snapshot'} how @param {Promise<any>} [listed] */
  #establish(connection, how, listed) {
    this.#attempt = undefined;
    this.#connection = connection;
    this.#connectedAt = performance.now();
    this.#watchSilence(connection, PING_AFTER_MS);
    this.#handlers.onRestored(how, listed);
  }

  /** Pings a host that was silent for long, and looks again when it may have been silent for as long once more. @param {Connection} connection @param {number} waitMs */
  #watchSilence(connection, waitMs) {
    clearTimeout(this.#silence);
    this.#silence = setTimeout(() => {
      const left = Math.ceil(connection.lastHeard + PING_AFTER_MS - performance.now());
      if (left <= 0) {
        this.#ping(connection, PING_ANSWER_MS);
      }
      this.#watchSilence(connection, left > 0 ? left : PING_AFTER_MS);
    }, waitMs);
  }

  /** Comes before everything else that a new connection tells: what is not pending any more counts as taken from then on. @param {import('./replica.js').ReconnectOutcome} outcome */
  #reportDropped(outcome) {
    for (const dropped of outcome.notResent) {
      this.#handlers.onDropped(dropped);
    }
  }

  /** Tells what came of a new connection, and goes on. @param {import('./replica.js').ReconnectOutcome} outcome @param {string[]} asked */
  #finish(outcome, asked) {
    for (const channel of outcome.gone) {
      this.#watched.remove(channel, goneError());
      this.#handlers.onGone(channel);
    }
    for (const channel of outcome.reset) {
      if (this.#watched.has(channel)) {
        this.#handlers.onReset(channel);
      } else {
        this.replica.dropChannel(channel); // left while it was on its way
      }
    }
    for (const channel of asked.filter((channel) => !this.#watched.has(channel) && !outcome.gone.includes(channel))) {
      this.#connection?.notify('unsubscribe', { channel });
    }
    for (const { method, params } of this.#early.splice(0)) {
      this.#takeNotification(method, params);
    }
    this.#flush();
    for (const channel of this.#watched.missing()) {
      this.#sendSubscription(channel);
    }
    this.#setState({ status: 'live' });
  }

  /** @param {Connection} connection @param {ConnectionLost} why */
  async #lost(connection, why) {
    const wasConnected = this.#connection === connection;
    if (!wasConnected && this.#attempt !== connection) {
      return; // one that was given up before
    }
    this.#connection = undefined;
    clearTimeout(this.#silence);
    clearTimeout(this.#expecting);
    this.#expecting = undefined;
    if (wasConnected) {
      this.#backoff.recordConnection(performance.now() - this.#connectedAt);
    }
    if (this.#isClosed) {
      return;
    }
    if (why.isSuperseded) {
      this.#attempt = undefined;
      this.#setState({ status: 'other-tab', why: why.message }); // two that take the id back would do so forever
      return;
    }
    // A browser does not say why a handshake failed: whether the token still counts has to be asked.
    if (!why.wasOpen && (await this.#options.checkToken?.()) === 'refused') {
      this.#attempt = undefined;
      this.#setState({ status: 'signed-out', why: 'this device was signed out' });
      return;
    }
    this.#attempt = undefined;
    if (!this.#isClosed) {
      this.#wait(why.message);
    }
  }

  /** @param {string} why */
  #wait(why) {
    const waitMs = this.#backoff.next();
    const isOffline = globalThis.navigator?.onLine === false;
    this.#setState({ status: isOffline ? 'offline' : 'waiting', retryAt: Date.now() + waitMs, why });
    this.#timer = setTimeout(() => this.#connect(), waitMs);
  }

  /** @param {string} method @param {any} params */
  #takeNotification(method, params) {
    if (this.#connection === undefined) {
      this.#early.push({ method, params });
      return;
    }
    if (method === 'action') {
      const envelope = readEnvelope(params);
      const effect = this.replica.receive(envelope);
      this.#handlers.onEnvelope(envelope, effect);
      const { action, rejection } = envelope;
      if (action.type === 'session/chatRemoved' && typeof action.chat === 'string' && rejection === undefined) {
        this.#forgetChannel(action.chat);
      }
      return;
    }
    this.#handlers.onNotification(method, params);
    if (method === 'root/sessionRemoved' && typeof params?.session === 'string') {
      const session = this.replica.confirmed(params.session);
      const chats = session?.kind === 'session' ? session.value.chats : [];
      for (const channel of [...chats.map((/** @type {Json} */ chat) => chat.resource), params.session]) {
        this.#forgetChannel(channel);
      }
    }
  }

  /** Forgets a channel that the host disposed of. @param {string} channel */
  #forgetChannel(channel) {
    const dropped = this.replica.removeChannel(channel);
    if (this.#watched.remove(channel, goneError())) {
      this.#handlers.onGone(channel);
    }
    for (const action of dropped) {
      this.#handlers.onDropped(action);
    }
  }

  /**
   * Watches a channel from now on, over losses of the connection too. Its state is there when this resolves, if it has any.
   * Subscribing to one that is watched already replaces its state.
   * @param {string} channel @param {Json} [further] `view` and `delivery`, used again on later connections @returns {Promise<void>}
   */
  subscribe(channel, further = {}) {
    const there = this.#watched.add(channel, further);
    if (this.#connection !== undefined) {
      this.#sendSubscription(channel);
    }
    return there;
  }

  /** @param {string} channel */
  #sendSubscription(channel) {
    this.#flush();
    const sentBefore = this.replica.sentUpTo();
    const further = this.#watched.get(channel)?.further ?? {};
    this.#connection?.ask('subscribe', { channel, ...further }, (error, result) => {
      if (error instanceof ConnectionLost || !this.#watched.has(channel)) {
        return; // the next connection asks again; or nobody wants it any more
      }
      if (error !== undefined) {
        this.replica.dropChannel(channel);
        this.#watched.remove(channel, error);
        return;
      }
      if (result?.snapshot) {
        this.replica.takeSnapshot(readSnapshot(result.snapshot), sentBefore);
      }
      this.#handlers.onReset(channel);
      this.#watched.markThere(channel);
    });
  }

  /** Watches a channel no more; its state is forgotten at once. @param {string} channel */
  unsubscribe(channel) {
    if (!this.#watched.remove(channel, new Error('it is not watched any more'))) {
      return; // it was disposed of
    }
    this.replica.dropChannel(channel);
    this.#flush();
    this.#connection?.notify('unsubscribe', { channel });
  }

  /** Dispatches an action: it shows in the state at once, and is sent now or when the connection is back. @param {string} channel @param {Json} action @returns {number} */
  dispatch(channel, action) {
    const clientSeq = this.replica.dispatch(channel, action);
    this.#flush();
    this.#expectNews();
    return clientSeq;
  }

  /** Whoever did something looks at the page: a host that does not answer it is asked whether it is there. */
  #expectNews() {
    const connection = this.#connection;
    if (connection === undefined || this.#expecting !== undefined) {
      return; // it is sent when there is a connection, or an answer is waited for already
    }
    this.#expecting = setTimeout(() => {
      this.#expecting = undefined;
      // What else was heard meanwhile says nothing of it.
      if (connection === this.#connection && this.replica.pending().length > 0) {
        this.#ping(connection, LOOK_ANSWER_MS);
      }
    }, ACTION_ANSWER_MS);
  }

  #flush() {
    if (this.#connection === undefined || this.#connection.isClosed) {
      return; // it is sent when there is a connection
    }
    for (let params = this.replica.takeUnsent(); params !== undefined; params = this.replica.takeUnsent()) {
      this.#connection.notify('dispatchAction', params);
    }
  }

  /** Asks the host, after everything that was dispatched before. Fails at once while there is no connection. @param {string} method @param {Json} params @returns {Promise<any>} */
  async request(method, params) {
    if (this.#connection === undefined) {
      throw new ConnectionLost('there is no connection to the host now');
    }
    this.#flush();
    return this.#connection.request(method, params);
  }
}

const goneError = () => new Error('it is not there any more');
