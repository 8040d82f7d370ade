/** Pending messages of a chat: the steering message and the queue. */

import { isEqual, presentOf, textOf, withField, withItem } from './fields.js';

/** @typedef {import('./fields.js').Json} Json */

/** An empty queue is no field. @param {Json} state @param {Json[]} queue */
const withQueue = (state, queue) => withField(state, 'queuedMessages', queue.length === 0 ? undefined : queue);

/** @param {Json} state @returns {Json[]} */
const queueOf = (state) => state.queuedMessages ?? [];

/** Steering has one slot; the queue takes a message by its id or at its end (H-230). @param {Json} state @param {Json} action */
function setMessage(state, action) {
  const id = textOf(action, 'id');
  const message = presentOf(action, 'message');
  if (id === undefined || message === undefined) {
    return state;
  }
  const entry = { id, message };
  if (action.kind === 'steering') {
    return withField(state, 'steeringMessage', entry);
  }
  if (action.kind !== 'queued') {
    return state;
  }
  const queue = queueOf(state);
  const index = queue.findIndex((old) => old.id === id);
  return withQueue(state, index === -1 ? [...queue, entry] : withItem(queue, index, entry));
}

/** @param {Json} state @param {string} id */
export const withoutSteering = (state, id) =>
  state.steeringMessage?.id === id ? withField(state, 'steeringMessage', undefined) : state;

/** @param {Json} state @param {string} id */
export function withoutQueued(state, id) {
  const queue = queueOf(state);
  const left = queue.filter((message) => message.id !== id);
  return left.length === queue.length ? state : withQueue(state, left);
}

/** @param {Json} state @param {Json} action */
function removeMessage(state, action) {
  const id = textOf(action, 'id');
  if (id === undefined) {
    return state;
  }
  switch (action.kind) {
    case 'steering':
      return withoutSteering(state, id);
    case 'queued':
      return withoutQueued(state, id);
    default:
      return state;
  }
}

/** Named messages first, in the order named; the others after them in their old order (H-234). @param {Json} state @param {Json} action */
function reorder(state, action) {
  if (!Array.isArray(action.order)) {
    return state;
  }
  const waiting = queueOf(state).slice();
  const reordered = [];
  for (const id of action.order) {
    const index = waiting.findIndex((message) => message.id === id);
    if (index !== -1) {
      reordered.push(...waiting.splice(index, 1));
    }
  }
  reordered.push(...waiting);
  return isEqual(reordered, queueOf(state)) ? state : withQueue(state, reordered);
}

/** @type {Record<string, (state: Json, action: Json) => Json>} */
export const PENDING_MESSAGE_ACTIONS = {
  'chat/pendingMessageSet': setMessage,
  'chat/pendingMessageRemoved': removeMessage,
  'chat/queuedMessagesReordered': reorder,
};
