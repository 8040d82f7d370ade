/**
 * A client's own copy of the channels it watches, ahead of the host by what it has dispatched (write-ahead).
 *
 * Promises: what is dispatched shows at once; what the host confirms wins. When every answer has come, the copy equals the
 * host's state. No action is sent twice that could take effect twice, and none is dropped in silence (G-30, ADR 0011). While
 * nothing is pending, the copy is the confirmed state itself and costs nothing. Held equal to the replica of `crates/client`
 * by generated schedules (crates/web/tests/replica.rs).
 * Must not know: connections, time, the document.
 */

import { Mirror, kindOfAction, reduceState } from './mirror.js';
import { SENDS_MAX, dropAfterReplay, dropAfterSnapshots } from './resume.js';

/** @typedef {import('./reduce/fields.js').Json} Json */
/** @typedef {import('./reduce/fields.js').Change} Change */
/** @typedef {import('./envelope.js').Envelope} Envelope */
/** @typedef {import('./envelope.js').Snapshot} Snapshot */
/** @typedef {import('./mirror.js').State} State */
/** @typedef {import('./resume.js').DropReason} DropReason */

/**
 * An action that the host has not answered. `isWatched`: its echo will come this way (H-043); `sends`: how often it was
 * handed to a connection.
 * @typedef {{clientSeq: number, channel: string, action: Json, isWatched: boolean, isSent: boolean, sends: number}} PendingAction
 */
/** @typedef {{channel: string, clientSeq: number, action: Json, why: DropReason}} DroppedAction neither confirmed nor refused nor sent again */
/**
 * What an envelope did, and to whose action.
 * @typedef {{kind: 'foreign', applied: import('./mirror.js').Applied, changes: Change[]}
 *   | {kind: 'own', clientSeq: number, applied: import('./mirror.js').Applied, changes: Change[]}
 *   | {kind: 'refused', channel: string, clientSeq: number, action: Json, reason: string}
 *   | {kind: 'not-for-us'}} EnvelopeEffect
 */
/** @typedef {{effects: EnvelopeEffect[], reset: string[], gone: string[], notResent: DroppedAction[]}} ReconnectOutcome */

/** Actions that may wait for their answers: a client that runs further ahead than this is not reconciled but lost. */
export const PENDING_MAX = 4_096;

/** More is pending than may be. */
export class TooManyPending extends Error {
  constructor() {
    super(`${PENDING_MAX} actions wait for the host's answer; this one was not taken`);
    this.name = 'TooManyPending';
  }
}

/** Kinds of channels that this page never watches: their actions are not listed one by one. */
const OTHER_KINDS = new Set(['automation', 'automationRun', 'canvas']);

/** The kind of channel an action belongs on; none for one that is not known. @param {Json} action @returns {string | undefined} */
function channelKindOf({ type }) {
  const prefix = String(type).split('/')[0];
  return kindOfAction(type) ?? (OTHER_KINDS.has(prefix) ? prefix : undefined);
}

/** The channels of one client: confirmed by the host, and ahead of it. */
export class Replica {
  #clientId;
  #confirmed = new Mirror();
  /** @type {Map<string, State | undefined>} of each channel with pending actions: its state with them, made when it is asked for */
  #ahead = new Map();
  /** @type {PendingAction[]} in the order they were dispatched */
  #pending = [];
  #lastClientSeq = 0;

  /** @param {string} clientId */
  constructor(clientId) {
    this.#clientId = clientId;
  }

  get clientId() {
    return this.#clientId;
  }

  /** The number up to which everything is sent. To be noted when a subscription is sent. */
  sentUpTo() {
    const unsent = this.#pending.find((pending) => !pending.isSent);
    return unsent === undefined ? this.#lastClientSeq : unsent.clientSeq - 1;
  }

  /**
   * Takes the snapshot that a subscription on a living connection was answered with.
   * @param {Snapshot} snapshot @param {number} sentBefore what `sentUpTo()` was when it was sent
   */
  takeSnapshot(snapshot, sentBefore) {
    this.#confirmed.takeSnapshot(snapshot);
    // What was sent to the channel before it was watched was decided before (H-065): it is in the snapshot, or refused.
    // Later ones are answered from now on.
    const channel = snapshot.resource;
    this.#pending = this.#pending.filter(
      (pending) =>
        pending.channel !== channel || pending.isWatched || !pending.isSent || pending.clientSeq > sentBefore,
    );
    for (const pending of this.#pending) {
      pending.isWatched = this.#isEchoed(pending.channel, pending.action);
    }
    this.#rebase(channel);
  }

  /** Forgets a channel that is watched no more. Actions pending on it are not answered unless they are refused. @param {string} channel */
  dropChannel(channel) {
    this.#confirmed.dropChannel(channel);
    this.#ahead.delete(channel);
    for (const pending of this.#pending) {
      if (pending.channel === channel) {
        pending.isWatched = false;
      }
    }
  }

  /**
   * Dispatches an action: it shows at once and is handed out by `takeUnsent()`. Returns the number under which its answer comes.
   * @param {string} channel @param {Json} action @returns {number}
   */
  dispatch(channel, action) {
    if (this.#pending.length >= PENDING_MAX) {
      throw new TooManyPending();
    }
    this.#lastClientSeq += 1;
    const isWatched = this.#isEchoed(channel, action);
    if (isWatched) {
      const ahead = this.#ahead.get(channel);
      this.#ahead.set(channel, ahead === undefined ? undefined : reduceState(ahead, action).state);
    }
    const clientSeq = this.#lastClientSeq;
    this.#pending.push({ clientSeq, channel, action, isWatched, isSent: false, sends: 0 });
    return clientSeq;
  }

  /** The params of the next `dispatchAction` to be sent, in dispatch order; it counts as sent from then on. */
  takeUnsent() {
    const next = this.#pending.find((pending) => !pending.isSent);
    if (next === undefined) {
      return undefined;
    }
    next.isSent = true;
    next.sends += 1;
    return { channel: next.channel, clientSeq: next.clientSeq, action: next.action };
  }

  hasUnsent() {
    return this.#pending.some((pending) => !pending.isSent);
  }

  /** Applies what the host sent about an action, this client's or another's. @param {Envelope} envelope @returns {EnvelopeEffect} */
  receive(envelope) {
    const own = envelope.origin?.clientId === this.#clientId ? envelope.origin.clientSeq : undefined;
    const answered = own === undefined ? undefined : this.#takeAnswered(own);
    if (envelope.rejection !== undefined) {
      // What is not pending any more was on a channel that is gone, and reported when that was known (G-23a).
      if (own === undefined || answered === undefined) {
        return { kind: 'not-for-us' };
      }
      const { channel, action } = answered;
      this.#rebase(channel);
      return { kind: 'refused', channel, clientSeq: own, action, reason: envelope.rejection };
    }
    const { applied, changes } = this.#confirmed.apply(envelope); // the echo's content, not the pending one's (H-075)
    this.#rebase(envelope.channel);
    if (answered !== undefined && answered.channel !== envelope.channel) {
      this.#rebase(answered.channel); // G-13: recorded on another channel than it was sent to
    }
    return own === undefined
      ? { kind: 'foreign', applied, changes }
      : { kind: 'own', clientSeq: own, applied, changes };
  }

  /** Takes an answered action out of the pending ones. Earlier ones that are never answered are settled too. @param {number} clientSeq */
  #takeAnswered(clientSeq) {
    const answered = this.#pending.find((pending) => pending.clientSeq === clientSeq);
    this.#pending = this.#pending.filter(
      (pending) =>
        pending !== answered && (pending.isWatched || !pending.isSent || pending.clientSeq > clientSeq),
    );
    return answered;
  }

  /** Makes what is ahead of a channel's confirmed state anew, the next time it is looked at. @param {string} channel */
  #rebase(channel) {
    const isAhead =
      this.#confirmed.state(channel) !== undefined &&
      this.#pending.some((pending) => pending.channel === channel && pending.isWatched);
    if (isAhead) {
      this.#ahead.set(channel, undefined);
    } else {
      this.#ahead.delete(channel);
    }
  }

  /** Whether the echo of an action will come this way. An action of another kind of channel is recorded there, if anywhere (G-13). @param {string} channel @param {Json} action */
  #isEchoed(channel, action) {
    const held = this.#confirmed.state(channel);
    const kind = channelKindOf(action);
    return held !== undefined && (kind === undefined || kind === held.kind);
  }

  /** A channel's state with everything pending applied. @param {string} channel @returns {State | undefined} */
  state(channel) {
    const confirmed = this.#confirmed.state(channel);
    if (confirmed === undefined || !this.#ahead.has(channel)) {
      return confirmed;
    }
    let state = this.#ahead.get(channel);
    if (state === undefined) {
      state = confirmed;
      for (const pending of this.#pending) {
        if (pending.channel === channel && pending.isWatched) {
          state = reduceState(state, pending.action).state;
        }
      }
      this.#ahead.set(channel, state);
    }
    return state;
  }

  /** A channel as the host confirmed it, without what is pending. @param {string} channel @returns {State | undefined} */
  confirmed(channel) {
    return this.#confirmed.state(channel);
  }

  /** Whether anything is ahead of what the host confirmed of a channel. @param {string} channel */
  isAhead(channel) {
    return this.#ahead.has(channel);
  }

  /** Holds less or more of a channel than before, without an action of the host: turns that were dropped or fetched again. @param {string} channel @param {Json} value */
  replaceConfirmed(channel, value) {
    this.#confirmed.replaceValue(channel, value);
    this.#rebase(channel);
  }

  /** The actions the host has not answered, in the order they were dispatched. @returns {readonly PendingAction[]} */
  pending() {
    return this.#pending;
  }

  /** The channels whose state is held. */
  channels() {
    return this.#confirmed.channels();
  }

  /** The highest `serverSeq` seen: where a reconnect goes on from. */
  get lastSeen() {
    return this.#confirmed.lastSeen;
  }

  /** Takes the `replay` form of a reconnect. What is to be sent again is unsent from now on. @param {Envelope[]} envelopes @param {string[]} missing @returns {ReconnectOutcome} */
  applyReplay(envelopes, missing) {
    const effects = envelopes.map((envelope) => this.receive(envelope));
    const touched = new Set(envelopes.map((envelope) => envelope.channel));
    for (const channel of missing) {
      this.#confirmed.dropChannel(channel);
    }
    const notResent = this.#decidePending((pending) => dropAfterReplay(pending, touched, missing));
    return { effects, reset: [], gone: [...missing], notResent };
  }

  /** Takes the `snapshot` form of a reconnect, or the answer to a new `initialize`: every channel that is not in it is gone. Nothing is changed on an error. @param {Snapshot[]} snapshots @returns {ReconnectOutcome} */
  applySnapshots(snapshots) {
    const fresh = new Mirror();
    for (const snapshot of snapshots) {
      fresh.takeSnapshot(snapshot);
    }
    const gone = this.#confirmed.channels().filter((channel) => fresh.state(channel) === undefined);
    this.#confirmed = fresh;
    const notResent = this.#decidePending((pending) =>
      dropAfterSnapshots(pending, fresh.state(pending.channel), gone),
    );
    return { effects: [], reset: fresh.channels(), gone, notResent };
  }

  /** Takes the news that a channel was disposed of. What is pending on it came too late: it is reported at once, and the host's refusal finds it gone (H-068, G-23a). @param {string} channel @returns {DroppedAction[]} */
  removeChannel(channel) {
    this.dropChannel(channel);
    const isOnIt = (/** @type {PendingAction} */ pending) => pending.channel === channel;
    const dropped = this.#pending.filter(isOnIt).map((pending) => toDropped(pending, 'channel-gone'));
    this.#pending = this.#pending.filter((pending) => !isOnIt(pending));
    return dropped;
  }

  /** Decides about each pending action: to be sent again, or dropped and why. @param {(pending: PendingAction) => DropReason | undefined} decide */
  #decidePending(decide) {
    this.#ahead.clear();
    const dropped = [];
    const kept = [];
    for (const pending of this.#pending) {
      const why = decide(pending) ?? (pending.sends >= SENDS_MAX ? 'sent-too-often' : undefined);
      if (why === undefined) {
        pending.isSent = false;
        pending.isWatched = this.#isEchoed(pending.channel, pending.action);
        kept.push(pending);
      } else {
        dropped.push(toDropped(pending, why));
      }
    }
    this.#pending = kept;
    for (const { channel } of kept) {
      this.#rebase(channel);
    }
    return dropped;
  }
}

/** @param {PendingAction} pending @param {DropReason} why @returns {DroppedAction} */
const toDropped = ({ channel, clientSeq, action }, why) => ({ channel, clientSeq, action, why });
