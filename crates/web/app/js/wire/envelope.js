/**
 * What a host sends about channels: snapshots and action envelopes.
 *
 * Must not know: connections, states.
 */

import { isObject } from './reduce/fields.js';

/** @typedef {import('./reduce/fields.js').Json} Json */
/** @typedef {{resource: string, state: any, fromSeq: number}} Snapshot a channel's state at one moment */
/**
 * An action as it comes over the wire: `origin` is set if a client dispatched it, `rejection` if the host refused it.
 * @typedef {{channel: string, action: Json, serverSeq: number, origin?: {clientId: string, clientSeq: number}, rejection?: string}} Envelope
 */

/** Something the host sent that cannot be read: better a fresh start than a state that is wrong. */
export class UnreadableError extends Error {
  /** @param {string} message */
  constructor(message) {
    super(message);
    this.name = 'UnreadableError';
  }
}

/** @param {unknown} value @returns {value is number} */
const isSeq = (value) => Number.isSafeInteger(value) && Number(value) >= 0;

/** @param {unknown} value @returns {Snapshot} */
export function readSnapshot(value) {
  if (!isObject(value) || typeof value.resource !== 'string' || !isSeq(value.fromSeq) || !Object.hasOwn(value, 'state')) {
    throw new UnreadableError('a snapshot without resource, state or fromSeq');
  }
  return { resource: value.resource, state: value.state, fromSeq: value.fromSeq };
}

/** @param {unknown} value @returns {Envelope} */
export function readEnvelope(value) {
  const isRead =
    isObject(value) &&
    typeof value.channel === 'string' &&
    isSeq(value.serverSeq) &&
    isObject(value.action) &&
    typeof value.action.type === 'string';
  if (!isRead) {
    throw new UnreadableError('an action without channel, type or serverSeq');
  }
  const { channel, action, serverSeq, origin, rejectionReason } = value;
  /** @type {Envelope} */
  const envelope = { channel, action, serverSeq };
  if (isObject(origin) && typeof origin.clientId === 'string' && Number.isSafeInteger(origin.clientSeq)) {
    envelope.origin = { clientId: origin.clientId, clientSeq: origin.clientSeq };
  }
  if (typeof rejectionReason === 'string') {
    envelope.rejection = rejectionReason;
  }
  return envelope;
}
