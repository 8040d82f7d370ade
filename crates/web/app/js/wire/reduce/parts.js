/**
 * Response parts of the running turn: how they are addressed, found and changed, and what the chat's status says of them.
 *
 * Promises: a part is found by its address in constant time however many there are, and the first one if two have the same.
 */

import { STATUS, addressOf, isObject, presentOf, textOf, withActivity, withField } from './fields.js';

/** @typedef {import('./fields.js').Json} Json */

/** The active turn, if it is the one the action names (H-173). @param {Json} state @param {Json} action @returns {Json | undefined} */
export const activeTurn = (state, action) =>
  state.activeTurn !== undefined && state.activeTurn.id === action.turnId ? state.activeTurn : undefined;

/**
 * Where the first part with an address is. A list that is made from another by replacing parts or by adding one at the end shares
 * its index; `length` is that of the longest of them.
 * @typedef {{places: Map<string, number>, length: number}} PartIndex
 */
/** @type {WeakMap<Json[], PartIndex>} */
const indexes = new WeakMap();

/** @param {PartIndex} index @param {Json} part */
function addToIndex(index, part) {
  const address = addressOf(part);
  if (address !== undefined && !index.places.has(address)) {
    index.places.set(address, index.length);
  }
  index.length += 1;
}

/** @param {Json[]} parts @param {string} address @returns {number} the place of the first part with this address, or -1 */
export function findPart(parts, address) {
  let index = indexes.get(parts);
  if (index === undefined) {
    index = { places: new Map(), length: 0 };
    for (const part of parts) {
      addToIndex(index, part);
    }
    indexes.set(parts, index);
  }
  const place = index.places.get(address) ?? -1;
  return place < parts.length ? place : -1; // one that a longer list has
}

/** The chat with one part of its running turn replaced, by one with the same address. @param {Json} state @param {number} index @param {Json} part @returns {Json} */
export function withPart(state, index, part) {
  const before = state.activeTurn.responseParts;
  const responseParts = before.slice();
  responseParts[index] = part;
  const known = indexes.get(before);
  if (known !== undefined) {
    indexes.set(responseParts, known);
  }
  return { ...state, activeTurn: { ...state.activeTurn, responseParts } };
}

/** The chat with another part at the end of its running turn. @param {Json} state @param {Json} part @returns {Json} */
export function withNewPart(state, part) {
  const before = state.activeTurn.responseParts;
  const responseParts = [...before, part];
  const known = indexes.get(before);
  if (known !== undefined && known.length === before.length) {
    addToIndex(known, part);
    indexes.set(responseParts, known);
  }
  return { ...state, activeTurn: { ...state.activeTurn, responseParts } };
}

/** Whether a part is a request without an answer. @param {Json} part */
export const isOpenRequest = (part) =>
  part.kind === 'inputRequest' &&
  isObject(part.request) &&
  typeof part.request.id === 'string' &&
  presentOf(part, 'response') === undefined;

/** Whether a part is a call that waits for someone. @param {Json} part */
const isBlockingCall = (part) =>
  part.kind === 'toolCall' &&
  isObject(part.toolCall) &&
  ['pending-confirmation', 'pending-result-confirmation', 'auth-required'].includes(part.toolCall.status);

/** What the activity bits say while no error has ended the turn (H-178). @param {Json} state @returns {Json} */
export function refreshStatus(state) {
  /** @type {number} */
  let activity = STATUS.IDLE;
  if (state.activeTurn !== undefined) {
    const waits = (/** @type {Json} */ part) => isOpenRequest(part) || isBlockingCall(part);
    activity = state.activeTurn.responseParts.some(waits) ? STATUS.INPUT_NEEDED : STATUS.IN_PROGRESS;
  }
  return withField(state, 'status', withActivity(state.status, activity));
}
