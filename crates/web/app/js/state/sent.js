/**
 * What became of the actions that were dispatched here.
 *
 * Promises: every action ends as confirmed, refused, answered elsewhere or not known, exactly once, and never as confirmed
 * before the host has said so. What was taken on a channel that nobody here watches counts as confirmed when a later action
 * of this client is answered: one client's actions are processed in order (ADR 0011).
 * Must not know: connections, the document.
 */

import { isObject } from '../wire/reduce/fields.js';

/** @typedef {import('../wire/reduce/fields.js').Json} Json */
/** @typedef {'sent' | 'confirmed' | 'refused' | 'answered-elsewhere' | 'unknown'} SentStatus */
/**
 * An action on its way. `reason` says why it was refused, or why it is not known what became of it.
 * @typedef {{clientSeq: number, channel: string, action: Json, status: SentStatus, reason?: string,
 *   done: Promise<{status: SentStatus, reason?: string}>}} Sent
 */

const DECISIONS = new Set(['chat/toolCallConfirmed', 'chat/toolCallResultConfirmed', 'chat/inputCompleted']);

/** Whether an action decides about something that waits. @param {Json} action */
export const isDecision = (action) => DECISIONS.has(action.type);

/** Whether what a decision is about still waits, as far as a confirmed chat says. @param {Json} action @param {Json | undefined} chat @returns {boolean} */
export function isStillOpen(action, chat) {
  const parts = chat?.activeTurn?.responseParts ?? [];
  if (action.type === 'chat/inputCompleted') {
    return parts.some(
      (/** @type {Json} */ part) =>
        part.kind === 'inputRequest' && part.request?.id === action.requestId && (part.response ?? null) === null,
    );
  }
  const waits = action.type === 'chat/toolCallConfirmed' ? 'pending-confirmation' : 'pending-result-confirmation';
  return parts.some(
    (/** @type {Json} */ part) =>
      part.kind === 'toolCall' &&
      isObject(part.toolCall) &&
      part.toolCall.toolCallId === action.toolCallId &&
      part.toolCall.status === waits,
  );
}

/** Why it is not known what became of an action: only its author can decide about it (G-30). @type {Record<import('../wire/resume.js').DropReason, string>} */
const DROPPED = {
  'moved-on': 'The connection was lost, and the chat continued meanwhile.',
  'state-replaced': 'The connection was lost.',
  'channel-gone': 'It no longer exists.',
  'not-watched': 'The connection was lost.',
  'sent-too-often': 'The connection was lost each time this was sent.',
};

/** Everything that is on its way. */
export class Outbox {
  /** @type {Map<number, {sent: Sent, finish: (end: {status: SentStatus, reason?: string}) => void}>} */
  #open = new Map();
  #onSettled;

  /** @param {(sent: Sent) => void} onSettled */
  constructor(onSettled) {
    this.#onSettled = onSettled;
  }

  /** @param {number} clientSeq @param {string} channel @param {Json} action @returns {Sent} */
  add(clientSeq, channel, action) {
    /** @type {(end: {status: SentStatus, reason?: string}) => void} */
    let finish = () => {};
    const done = new Promise((/** @type {(end: {status: SentStatus, reason?: string}) => void} */ resolve) => {
      finish = resolve;
    });
    /** @type {Sent} */
    const sent = { clientSeq, channel, action, status: 'sent', done };
    this.#open.set(clientSeq, { sent, finish });
    return sent;
  }

  /** @param {number} clientSeq @param {SentStatus} status @param {string} [reason] */
  #settle(clientSeq, status, reason) {
    const entry = this.#open.get(clientSeq);
    if (entry === undefined) {
      return; // it ended before
    }
    this.#open.delete(clientSeq);
    entry.sent.status = status;
    entry.sent.reason = reason;
    entry.finish({ status, reason });
    this.#onSettled(entry.sent);
  }

  /**
   * Takes what an envelope did. `chatOf` gives the confirmed state of a chat.
   * @param {import('../wire/replica.js').EnvelopeEffect} effect @param {(channel: string) => Json | undefined} chatOf
   */
  takeEffect(effect, chatOf) {
    if (effect.kind === 'own') {
      this.#settle(effect.clientSeq, 'confirmed');
    } else if (effect.kind === 'refused') {
      const { clientSeq, action, channel, reason } = effect;
      const chat = chatOf(channel);
      const isElsewhere = isDecision(action) && chat !== undefined && !isStillOpen(action, chat);
      this.#settle(clientSeq, isElsewhere ? 'answered-elsewhere' : 'refused', reason);
    }
  }

  /** Takes an action that is neither confirmed nor refused nor sent again. @param {import('../wire/replica.js').DroppedAction} dropped @param {(channel: string) => Json | undefined} chatOf */
  takeDropped({ clientSeq, channel, action, why }, chatOf) {
    const chat = chatOf(channel);
    // A replay would have held the echo of our own decision: what was decided in it was decided by somebody else.
    const isElsewhere = why === 'moved-on' && isDecision(action) && chat !== undefined && !isStillOpen(action, chat);
    this.#settle(clientSeq, isElsewhere ? 'answered-elsewhere' : 'unknown', DROPPED[why]);
  }

  /**
   * Takes the list of what is still pending: what is on its way and not in it was taken unheard. What was dropped has to be told before.
   * @param {readonly {clientSeq: number}[]} pending @param {number} [upTo] the action that was answered: nothing is said of later ones
   */
  takePending(pending, upTo = Infinity) {
    if (this.#open.size === 0) {
      return;
    }
    const waiting = new Set(pending.map(({ clientSeq }) => clientSeq));
    for (const clientSeq of [...this.#open.keys()]) {
      if (clientSeq <= upTo && !waiting.has(clientSeq)) {
        this.#settle(clientSeq, 'confirmed');
      }
    }
  }

  /** @param {string} channel @param {(action: Json) => boolean} predicate */
  has(channel, predicate) {
    return [...this.#open.values()].some(({ sent }) => sent.channel === channel && predicate(sent.action));
  }
}
