/**
 * A mirror of the channels a client watches: snapshots plus actions give the host's confirmed state.
 *
 * Promises: equal to the host's state when the connection is quiet. What the host refused changes nothing. A state that was
 * handed out never changes.
 * Must not know: connections; actions that are not confirmed yet.
 */

import { NO_CHANGES, changedFields, isObject } from './reduce/fields.js';
import { ROOT_ACTIONS, SESSION_ACTIONS, readRoot, readSession, reduceRoot, reduceSession } from './reduce/session.js';

/** @typedef {import('./reduce/fields.js').Json} Json */
/** @typedef {import('./reduce/fields.js').Change} Change */
/** @typedef {'root' | 'session' | 'chat' | 'changeset' | 'annotations' | 'terminal' | 'resourceWatch'} Kind */
/** @typedef {{kind: Kind, value: Json}} State the state of one channel */
/** @typedef {'changed' | 'unchanged' | 'rejected' | 'not-held'} Applied what an envelope did; `not-held`: no snapshot was taken, or the action is in its state already */
/**
 * What is known of a kind of channel: the fields that tell its states from others, how a state is read and reduced, what belongs on it.
 * @typedef {{fields: string[], read: (value: unknown) => Json, reduce: (state: Json, action: Json) => import('./reduce/fields.js').Reduced,
 *   diff?: (before: Json, after: Json) => Change[], actions: Record<string, unknown>}} KindOfChannel
 */

/** The order in which a state is asked what it is. @type {Kind[]} */
const ORDER = ['chat', 'session', 'root', 'terminal', 'changeset', 'resourceWatch', 'annotations'];

/** @type {Partial<Record<Kind, KindOfChannel>>} */
const KINDS = {
  session: { fields: ['activeClients'], read: readSession, reduce: reduceSession, actions: SESSION_ACTIONS },
  root: { fields: ['agents'], read: readRoot, reduce: reduceRoot, actions: ROOT_ACTIONS },
};

/** Adds kinds that a first visit does not need. To be called before one of their channels is subscribed to. @param {Record<string, KindOfChannel>} kinds */
export function addKinds(kinds) {
  Object.assign(KINDS, kinds);
}

/** The kind of channel that an action belongs on; none for one that is not known. @param {string} type @returns {Kind | undefined} */
export function kindOfAction(type) {
  return ORDER.find((kind) => Object.hasOwn(KINDS[kind]?.actions ?? {}, type));
}

/** What a snapshot holds; none of a kind that is not mirrored. @param {unknown} value @returns {State | undefined} */
export function readState(value) {
  if (!isObject(value)) {
    return undefined;
  }
  const kind = ORDER.find((candidate) => KINDS[candidate]?.fields.every((field) => Object.hasOwn(value, field)));
  const read = kind && KINDS[kind]?.read;
  // A list of notes is told by being one.
  const isNone = kind === 'annotations' && !Array.isArray(value.annotations);
  return kind === undefined || read === undefined || isNone ? undefined : { kind, value: read(value) };
}

/** Applies an action; the same state if it changed nothing. @param {State} state @param {Json} action @returns {{state: State, changes: Change[]}} */
export function reduceState(state, action) {
  const known = /** @type {KindOfChannel} */ (KINDS[state.kind]); // a state was read by it
  const { state: value, changes } = known.reduce(state.value, action);
  return value === state.value ? { state, changes } : { state: { kind: state.kind, value }, changes };
}

/** What differs between two states of one channel. @param {State | undefined} before @param {State | undefined} after @returns {Change[]} */
export function diffStates(before, after) {
  if (before === after) {
    return NO_CHANGES;
  }
  if (before === undefined || after === undefined || before.kind !== after.kind) {
    return [{ kind: 'all' }];
  }
  return (KINDS[after.kind]?.diff ?? changedFields)(before.value, after.value);
}

/** The confirmed state of every channel a snapshot was taken of. */
export class Mirror {
  /** @type {Map<string, {state: State, seq: number}>} */
  #channels = new Map();
  #lastSeen = 0;

  /** Takes a snapshot; one of a kind that is not mirrored is left out. @param {import('./envelope.js').Snapshot} snapshot */
  takeSnapshot({ resource, state, fromSeq }) {
    const read = readState(state);
    if (read !== undefined) {
      this.#lastSeen = Math.max(this.#lastSeen, fromSeq);
      this.#channels.set(resource, { state: read, seq: fromSeq });
    }
  }

  /** @param {import('./envelope.js').Envelope} envelope @returns {{applied: Applied, changes: Change[]}} */
  apply({ channel, action, serverSeq, rejection }) {
    if (rejection !== undefined) {
      return { applied: 'rejected', changes: NO_CHANGES };
    }
    this.#lastSeen = Math.max(this.#lastSeen, serverSeq);
    const held = this.#channels.get(channel);
    // Seqs rise strictly over what is recorded (G-17): anything else is in the state already.
    if (held === undefined || serverSeq <= held.seq) {
      return { applied: 'not-held', changes: NO_CHANGES };
    }
    const { state, changes } = reduceState(held.state, action);
    const applied = state === held.state ? 'unchanged' : 'changed';
    this.#channels.set(channel, { state, seq: serverSeq });
    return { applied, changes };
  }

  /** Puts another state in the place of one that is held, for what is held less of than the host has. @param {string} channel @param {Json} value */
  replaceValue(channel, value) {
    const held = this.#channels.get(channel);
    if (held !== undefined) {
      this.#channels.set(channel, { state: { kind: held.state.kind, value }, seq: held.seq });
    }
  }

  /** Forgets a channel that is watched no more. @param {string} channel */
  dropChannel(channel) {
    this.#channels.delete(channel);
  }

  /** The highest `serverSeq` seen: where a reconnect goes on from. */
  get lastSeen() {
    return this.#lastSeen;
  }

  /** @param {string} channel @returns {State | undefined} */
  state(channel) {
    return this.#channels.get(channel)?.state;
  }

  /** @returns {string[]} */
  channels() {
    return [...this.#channels.keys()].sort();
  }
}
