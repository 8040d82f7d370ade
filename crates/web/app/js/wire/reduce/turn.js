/**
 * Turns: start, the three ways to end, resume, truncate, load older ones from history; and the messages that wait for one: the
 * steering message and the queue.
 */

import {
  STATUS,
  StateError,
  integerOf,
  isEqual,
  isObject,
  presentOf,
  readObject,
  requireTexts,
  textOf,
  withActivity,
  withField,
  withFlag,
  withItem,
  withoutField,
} from './fields.js';
import { activeTurn, refreshStatus } from './parts.js';
import { skipCall } from './tool_call.js';

/** @typedef {import('./fields.js').Json} Json */

const MOMENT = /^(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(?:[Zz]|([+-])(\d\d):?(\d\d))$/;

/** A moment as text plus milliseconds; nothing if the text is no RFC 3339 moment or the sum leaves the calendar (H-171). @param {string} startedAt @param {number} duration @returns {string | undefined} */
export function addMilliseconds(startedAt, duration) {
  const match = MOMENT.exec(startedAt);
  if (match === null) {
    return undefined;
  }
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number);
  const fraction = Number((match[7] ?? '').padEnd(3, '0').slice(0, 3));
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  const isDate = date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  const offset = Number(`${match[8] ?? '+'}1`) * (Number(match[9] ?? 0) * 60 + Number(match[10] ?? 0));
  if (!isDate || hour > 23 || minute > 59 || second > 60 || Math.abs(offset) >= 26 * 60 || Number(match[10] ?? 0) > 59) {
    return undefined;
  }
  date.setUTCHours(hour, minute, Math.min(second, 59), fraction); // a leap second counts as the one before it
  const end = new Date(date.getTime() - offset * 60_000 + duration);
  const isInCalendar = !Number.isNaN(end.getTime()) && end.getUTCFullYear() >= 0 && end.getUTCFullYear() <= 9_999;
  return isInCalendar ? end.toISOString() : undefined;
}

/** Whether a value is a completed turn. @param {unknown} value @returns {value is Json} */
const isTurn = (value) =>
  isObject(value) &&
  typeof value.id === 'string' &&
  Array.isArray(value.responseParts) &&
  ['complete', 'cancelled', 'error'].includes(value.state);

/** @param {unknown} value @returns {Json} */
export function readTurn(value) {
  if (!isTurn(value)) {
    throw new StateError('a turn', 'id, responseParts or state');
  }
  return value;
}

/** @param {unknown} value @returns {Json} */
export function readActiveTurn(value) {
  const what = 'an active turn';
  const turn = readObject(what, value);
  requireTexts(what, turn, ['id', 'startedAt']);
  if (!Object.hasOwn(turn, 'message')) {
    throw new StateError(what, 'message');
  }
  turn.responseParts = Array.isArray(turn.responseParts) ? turn.responseParts.filter(isObject) : [];
  return turn;
}

/** Makes a new active turn; one that still runs is lost, so the host refuses a second (H-170). @param {Json} state @param {Json} action */
function start(state, action) {
  const id = textOf(action, 'turnId');
  const startedAt = textOf(action, 'startedAt');
  const message = presentOf(action, 'message');
  if (id === undefined || startedAt === undefined || message === undefined) {
    return state;
  }
  let next = withField(state, 'activeTurn', { id, startedAt, message, responseParts: [] });
  next = withField(refreshStatus(next), 'modifiedAt', startedAt);
  next = withFlag(next, STATUS.IS_READ, false);
  const queued = textOf(action, 'queuedMessageId');
  return queued === undefined ? next : withoutQueued(withoutSteering(next, queued), queued);
}

/** A part as it stays: no tool call is open after its turn, input requests keep their lack of an answer (H-174). @param {Json} part */
const closePart = (part) =>
  part.kind === 'toolCall' && isObject(part.toolCall) ? { ...part, toolCall: skipCall(part.toolCall) } : part;

/** Moves the active turn to the completed ones. A start time that cannot be read leaves it running (H-171). @param {Json} state @param {Json} action @param {string} outcome @param {Json[]} last */
function end(state, action, outcome, last) {
  const turn = activeTurn(state, action);
  const duration = integerOf(action, 'duration');
  if (turn === undefined || duration === undefined) {
    return state;
  }
  const lasted = Math.max(duration, 0);
  const modifiedAt = addMilliseconds(turn.startedAt, lasted);
  if (modifiedAt === undefined) {
    return state;
  }
  const responseParts = [...turn.responseParts.map(closePart), ...last];
  const completed = { ...turn, duration: lasted, responseParts, state: outcome };
  const { activeTurn: _, ...rest } = state;
  return refreshStatus({ ...rest, modifiedAt, turns: [...state.turns, completed] });
}

/** Ends the turn with its error as the last part; the status says so until the next turn (H-175). @param {Json} state @param {Json} action */
function fail(state, action) {
  if (!isObject(action.part)) {
    return state;
  }
  const ended = end(state, action, 'error', [{ ...action.part, kind: 'error' }]);
  return ended === state ? state : { ...ended, status: withActivity(ended.status, STATUS.ERROR) };
}

/** Continues the last turn, if its error said that this is possible (H-176). @param {Json} state @param {Json} action */
function resume(state, action) {
  const last = state.turns.at(-1);
  const error = last?.responseParts.at(-1);
  const isResumable =
    last?.id === textOf(action, 'turnId') &&
    last?.state === 'error' &&
    isObject(error) &&
    error.kind === 'error' &&
    error.resumable === true;
  if (state.activeTurn !== undefined || last === undefined || !isResumable) {
    return state;
  }
  let turn = withoutField(withoutField(last, 'duration'), 'state');
  if (presentOf(turn, 'startedAt') === undefined) {
    turn = { ...turn, startedAt: state.modifiedAt };
  }
  if (turn.usage === null) {
    turn = withoutField(turn, 'usage');
  }
  try {
    turn = readActiveTurn(turn);
  } catch {
    return state; // a turn that cannot run stays as it ended
  }
  const next = refreshStatus({ ...state, turns: state.turns.slice(0, -1), activeTurn: turn });
  return withFlag(next, STATUS.IS_READ, false);
}

/** Removes the turns after the named one, or none at all; what runs is dropped (H-237). @param {Json} state @param {Json} action */
function truncate(state, action) {
  const id = textOf(action, 'turnId');
  const index = id === undefined ? -1 : state.turns.findIndex((/** @type {Json} */ turn) => turn.id === id);
  if (id !== undefined && index === -1) {
    return state;
  }
  const kept = index + 1;
  let next = kept < state.turns.length ? { ...state, turns: state.turns.slice(0, kept) } : state;
  if (kept === 0) {
    next = withField(next, 'turnsNextCursor', undefined);
  }
  return refreshStatus(withField(next, 'activeTurn', undefined));
}

/** A page that was held before, and dropped: its turns come back to their places, and the cursor stays that of the oldest. @param {Json} state @param {any[]} page */
function fillDropped(state, page) {
  const fetched = new Map(page.filter(isTurn).map((turn) => [turn.id, turn]));
  const isMissing = (/** @type {Json} */ turn) => turn.isDropped && fetched.has(turn.id);
  return state.turns.some(isMissing)
    ? { ...state, turns: state.turns.map((/** @type {Json} */ turn) => (isMissing(turn) ? fetched.get(turn.id) : turn)) }
    : state;
}

/** Inserts older turns before the ones that are there; a turn that is there already is not moved (H-240). @param {Json} state @param {Json} action */
function loadOlder(state, action) {
  if (!Array.isArray(action.turns)) {
    return state;
  }
  if (state.turns.some((/** @type {Json} */ turn) => turn.isDropped)) {
    const filled = fillDropped(state, action.turns);
    if (filled !== state) {
      return filled;
    }
  }
  const held = new Set(state.turns.map((/** @type {Json} */ turn) => turn.id));
  const older = action.turns.filter((turn) => isTurn(turn) && !held.has(turn.id));
  const next = older.length === 0 ? state : { ...state, turns: [...older, ...state.turns] };
  return withField(next, 'turnsNextCursor', textOf(action, 'turnsNextCursor'));
}

/** @type {Record<string, (state: Json, action: Json) => Json>} */
export const TURN_ACTIONS = {
  'chat/turnStarted': start,
  'chat/turnComplete': (state, action) => end(state, action, 'complete', []),
  'chat/turnCancelled': (state, action) => end(state, action, 'cancelled', []),
  'chat/error': fail,
  'chat/turnResume': resume,
  'chat/truncated': truncate,
  'chat/turnsLoaded': loadOlder,
};

// Pending messages.

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
const withoutSteering = (state, id) =>
  state.steeringMessage?.id === id ? withField(state, 'steeringMessage', undefined) : state;

/** @param {Json} state @param {string} id */
function withoutQueued(state, id) {
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
