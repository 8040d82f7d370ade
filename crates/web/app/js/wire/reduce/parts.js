/**
 * Response parts of the running turn: how they are addressed, found and changed, and what the chat's status says of them.
 */

import { STATUS, isObject, presentOf, textOf, withActivity, withField } from './fields.js';

/** @typedef {import('./fields.js').Json} Json */

/** The id that deltas and tool-call actions address: text parts and tool calls have one, others do not. @param {Json} part @returns {string | undefined} */
export function addressOf(part) {
  switch (part.kind) {
    case 'markdown':
    case 'reasoning':
      return textOf(part, 'id');
    case 'toolCall':
      return isObject(part.toolCall) ? textOf(part.toolCall, 'toolCallId') : undefined;
    default:
      return undefined;
  }
}

/** What names a part within its turn, for keyed drawing: its address, the id of its request, or its place. @param {Json} part @param {number} index @returns {string} */
export function partKey(part, index) {
  const address = addressOf(part);
  if (address !== undefined) {
    return address;
  }
  const request = part.kind === 'inputRequest' && isObject(part.request) ? textOf(part.request, 'id') : undefined;
  return request ?? `#${index}`;
}

/** The active turn, if it is the one the action names (H-173). @param {Json} state @param {Json} action @returns {Json | undefined} */
export const activeTurn = (state, action) =>
  state.activeTurn !== undefined && state.activeTurn.id === action.turnId ? state.activeTurn : undefined;

/** The chat with one part of its running turn replaced. @param {Json} state @param {number} index @param {Json} part @returns {Json} */
export function withPart(state, index, part) {
  const responseParts = state.activeTurn.responseParts.slice();
  responseParts[index] = part;
  return { ...state, activeTurn: { ...state.activeTurn, responseParts } };
}

/** The chat with another part at the end of its running turn. @param {Json} state @param {Json} part @returns {Json} */
export const withNewPart = (state, part) => ({
  ...state,
  activeTurn: { ...state.activeTurn, responseParts: [...state.activeTurn.responseParts, part] },
});

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
