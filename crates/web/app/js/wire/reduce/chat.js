/**
 * A chat channel: fields, streamed text and input requests, and which file reduces which action. One function per action. An input
 * request is open while its part has no `response`; only open ones can be addressed.
 *
 * Promises: what changed is said exactly where it is cheap to know (text that was appended, the part or turn that an
 * action names), and as "the list" where turns came or went.
 */

import {
  NO_CHANGES,
  STATUS,
  StateError,
  addDirectory,
  changedFields,
  flagOf,
  isEqual,
  isObject,
  keepDirectories,
  keepTexts,
  partKey,
  presentOf,
  readObject,
  removeDirectory,
  requireStatus,
  requireTexts,
  textOf,
  upsert,
  withField,
  withFlag,
  withoutEntry,
  withoutField,
} from './fields.js';
import { activeTurn, findPart, isOpenRequest, refreshStatus, withNewPart, withPart } from './parts.js';
import { TOOL_CALL_ACTIONS } from './tool_call.js';
import { PENDING_MESSAGE_ACTIONS, TURN_ACTIONS, readActiveTurn, readTurn } from './turn.js';

/** @typedef {import('./fields.js').Json} Json */
/** @typedef {import('./fields.js').Change} Change */

/** @param {unknown} value @returns {Json} */
export function readChat(value) {
  const what = 'a chat';
  const chat = readObject(what, value);
  requireTexts(what, chat, ['resource', 'title', 'modifiedAt']);
  requireStatus(what, chat);
  keepTexts(chat, ['activity', 'turnsNextCursor']);
  keepDirectories(chat);
  chat.turns = Array.isArray(chat.turns) ? chat.turns.map(readTurn) : [];
  if (Object.hasOwn(chat, 'activeTurn')) {
    chat.activeTurn = readActiveTurn(chat.activeTurn);
  }
  if (Object.hasOwn(chat, 'steeringMessage')) {
    chat.steeringMessage = readPendingMessage(chat.steeringMessage);
  }
  const queue = Array.isArray(chat.queuedMessages) ? chat.queuedMessages.map(readPendingMessage) : [];
  delete chat.queuedMessages;
  return queue.length === 0 ? chat : { ...chat, queuedMessages: queue };
}

/** @param {unknown} value */
function readPendingMessage(value) {
  const what = 'a pending message';
  const pending = readObject(what, value);
  requireTexts(what, pending, ['id']);
  if (!Object.hasOwn(pending, 'message')) {
    throw new StateError(what, 'message');
  }
  return { id: pending.id, message: pending.message };
}

/** Appends to the part with this id, if it is of the kind this action streams into (H-172). @param {string} kind @returns {(state: Json, action: Json) => Json} */
const appendText = (kind) => (state, action) => {
  const text = textOf(action, 'content');
  const id = textOf(action, 'partId');
  const turn = activeTurn(state, action);
  if (id === undefined || text === undefined || text === '' || turn === undefined) {
    return state;
  }
  const index = findPart(turn.responseParts, id);
  const part = turn.responseParts[index];
  if (part?.kind !== kind || typeof part.content !== 'string') {
    return state;
  }
  return withPart(state, index, { ...part, content: part.content + text });
};

/** Adds a part. Errors enter by `chat/error` only (H-175). @param {Json} state @param {Json} action */
const addPart = (state, action) =>
  activeTurn(state, action) === undefined || !isObject(action.part) || action.part.kind === 'error'
    ? state
    : withNewPart(state, action.part);

/** @param {Json} state @param {Json} action */
function setUsage(state, action) {
  const turn = activeTurn(state, action);
  const usage = presentOf(action, 'usage');
  if (turn === undefined || usage === undefined) {
    return state;
  }
  const next = withField(turn, 'usage', usage);
  return next === turn ? state : { ...state, activeTurn: next };
}

/** @param {Json} state @param {Json} action */
function setBackgroundWork(state, action) {
  const work = presentOf(action, 'work');
  if (!isObject(work) || typeof work.id !== 'string') {
    return state;
  }
  const list = Array.isArray(state.backgroundWork) ? upsert(state.backgroundWork, 'id', work) : [work];
  return withField(state, 'backgroundWork', list);
}

/** @param {Json} state @param {Json} action */
function removeBackgroundWork(state, action) {
  const id = textOf(action, 'id');
  return id === undefined || !Array.isArray(state.backgroundWork)
    ? state
    : withField(state, 'backgroundWork', withoutEntry(state.backgroundWork, 'id', id));
}

/** @param {string} field @returns {(state: Json, action: Json) => Json} */
const setOptional = (field) => (state, action) => withField(state, field, presentOf(action, field));

// Input requests: ask, answer one question after the other, complete.

/** @param {Json} state @param {string} id @returns {number} the index of the open request with this id, or -1 */
const findOpen = (state, id) =>
  state.activeTurn === undefined
    ? -1
    : state.activeTurn.responseParts.findIndex(
        (/** @type {Json} */ part) => isOpenRequest(part) && part.request.id === id,
      );

/** Asks anew, or asks again with what was answered so far (H-215). @param {Json} state @param {Json} action */
function requestInput(state, action) {
  if (!isObject(action.request) || typeof action.request.id !== 'string' || state.activeTurn === undefined) {
    return state;
  }
  let asked = action.request;
  const index = findOpen(state, asked.id);
  let next;
  if (index === -1) {
    next = withNewPart(state, { kind: 'inputRequest', request: asked });
  } else {
    const part = state.activeTurn.responseParts[index];
    const answers = presentOf(part.request, 'answers');
    if (presentOf(asked, 'answers') === undefined && answers !== undefined) {
      asked = { ...asked, answers };
    }
    next = isEqual(part.request, asked) ? state : withPart(state, index, { ...part, request: asked });
  }
  return withFlag(refreshStatus(next), STATUS.IS_READ, false);
}

/** @param {Json} asked @returns {Json} */
const answersOf = (asked) => (isObject(asked.answers) ? asked.answers : {});

/** No answer at all is no `answers` field. @param {Json} asked @param {Json} answers */
const withAnswers = (asked, answers) =>
  withField(asked, 'answers', Object.keys(answers).length === 0 ? undefined : answers);

/** Sets or removes the answer to one question. @param {Json} state @param {Json} action */
function changeAnswer(state, action) {
  const id = textOf(action, 'requestId');
  const question = textOf(action, 'questionId');
  const index = id === undefined || question === undefined ? -1 : findOpen(state, id);
  if (index === -1 || question === undefined) {
    return state;
  }
  const part = state.activeTurn.responseParts[index];
  const answer = presentOf(action, 'answer');
  const before = answersOf(part.request);
  const answers = answer === undefined ? withoutField(before, question) : { ...before, [question]: answer };
  const asked = withAnswers(part.request, answers);
  return asked === part.request ? state : withPart(state, index, { ...part, request: asked });
}

/** Closes the request; answers that come with it replace those given before (H-218). @param {Json} state @param {Json} action */
function completeInput(state, action) {
  const id = textOf(action, 'requestId');
  const response = presentOf(action, 'response');
  const index = id === undefined || response === undefined ? -1 : findOpen(state, id);
  if (index === -1) {
    return state;
  }
  const part = state.activeTurn.responseParts[index];
  const last = isObject(action.answers) ? action.answers : {};
  const asked = withAnswers(part.request, { ...answersOf(part.request), ...last });
  return refreshStatus(withPart(state, index, { ...part, request: asked, response }));
}

/** @type {Record<string, (state: Json, action: Json) => Json>} */
const INPUT_ACTIONS = {
  'chat/inputRequested': requestInput,
  'chat/inputAnswerChanged': changeAnswer,
  'chat/inputCompleted': completeInput,
};

/** @type {Record<string, (state: Json, action: Json) => Json>} */
export const CHAT_ACTIONS = {
  'chat/delta': appendText('markdown'),
  'chat/reasoning': appendText('reasoning'),
  'chat/responsePart': addPart,
  'chat/usage': setUsage,
  ...TURN_ACTIONS,
  ...TOOL_CALL_ACTIONS,
  ...PENDING_MESSAGE_ACTIONS,
  ...INPUT_ACTIONS,
  'chat/activityChanged': (state, action) => withField(state, 'activity', textOf(action, 'activity')),
  'chat/backgroundWorkSet': setBackgroundWork,
  'chat/backgroundWorkRemoved': removeBackgroundWork,
  'chat/movableChanged': (state, action) => withField(state, 'movable', presentOf(action, 'movable') ?? state.movable),
  'chat/changesetsChanged': setOptional('changesets'),
  'chat/canvasesChanged': setOptional('canvases'),
  'chat/workingDirectorySet': addDirectory,
  'chat/workingDirectoryRemoved': removeDirectory,
  'chat/draftChanged': setOptional('draft'),
  'chat/isReadChanged': (state, action) => withFlag(state, STATUS.IS_READ, flagOf(action, 'isRead')),
  'chat/isArchivedChanged': (state, action) => withFlag(state, STATUS.IS_ARCHIVED, flagOf(action, 'isArchived')),
};

/** Applies an action to a chat. What belongs on another kind of channel changes nothing. @param {Json} state @param {Json} action @returns {import('./fields.js').Reduced} */
export function reduceChat(state, action) {
  const reduce = Object.hasOwn(CHAT_ACTIONS, action.type) ? CHAT_ACTIONS[action.type] : undefined;
  const next = reduce === undefined ? state : reduce(state, action);
  if (next === state) {
    return { state, changes: NO_CHANGES };
  }
  return { state: next, changes: changesOf(state, next, action) };
}

/** @param {Json} before @param {Json} after @param {Json} action @returns {Change[]} */
function changesOf(before, after, action) {
  if (action.type === 'chat/delta' || action.type === 'chat/reasoning') {
    return [{ kind: 'append', turnId: action.turnId, partId: action.partId, text: action.content }];
  }
  return diffChat(before, after);
}

/**
 * What differs between two states of a chat, by the objects they share.
 * @param {Json} before @param {Json} after @returns {Change[]}
 */
export function diffChat(before, after) {
  const changes = changedFields(before, after, ['turns', 'activeTurn']);
  if (before.turns !== after.turns || before.activeTurn?.id !== after.activeTurn?.id) {
    changes.push({ kind: 'list' });
  }
  const [old, turn] = [before.activeTurn, after.activeTurn];
  if (turn === undefined || old === turn || old?.id !== turn.id) {
    return changes;
  }
  if (turn.responseParts.length < old.responseParts.length) {
    changes.push({ kind: 'turn', turnId: turn.id });
    return changes;
  }
  for (const [index, part] of turn.responseParts.entries()) {
    // A call that was answered ahead of the host is made anew with each action of the host, and is the same.
    if (!isEqual(part, old.responseParts[index])) {
      changes.push(diffPart(turn.id, old.responseParts[index], part, index));
    }
  }
  if (old.usage !== turn.usage || old.message !== turn.message) {
    changes.push({ kind: 'turn', turnId: turn.id });
  }
  return changes;
}

/** @param {string} turnId @param {Json | undefined} before @param {Json} after @param {number} index @returns {Change} */
function diffPart(turnId, before, after, index) {
  const partId = partKey(after, index);
  const isSameText =
    before !== undefined &&
    (after.kind === 'markdown' || after.kind === 'reasoning') &&
    before.kind === after.kind &&
    partKey(before, index) === partId &&
    typeof before.content === 'string' &&
    typeof after.content === 'string' &&
    after.content.startsWith(before.content);
  return isSameText
    ? { kind: 'append', turnId, partId, text: after.content.slice(before.content.length) }
    : { kind: 'part', turnId, partId };
}
