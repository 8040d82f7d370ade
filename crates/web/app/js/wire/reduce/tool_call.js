/**
 * Tool calls: the state machine of docs/rules/protocol.md, Tool calls.
 *
 * A call is its JSON object; its `status` says the state. A step carries what belongs to the call, drops what belongs
 * to the state it leaves, and preserves unknown fields. A step that its state does not allow does nothing.
 */

import { addressOf, copyFields, flagOf, isEqual, isObject, presentOf, textOf, withField, withoutField } from './fields.js';
import { activeTurn, findPart, refreshStatus, withNewPart, withPart } from './parts.js';

/** @typedef {import('./fields.js').Json} Json */

/** What is shown while a confirmation waits. */
const CONFIRMATION_FIELDS = ['confirmationTitle', 'riskAssessment', 'edits', 'editable', 'options'];

/** What a call keeps that is or was about to run. */
const RUN_FIELDS = ['confirmed', 'selectedOption', 'content'];

/** Fields that belong to some states only: a step drops them unless it carries them. */
const STATE_FIELDS = [
  'partialInput',
  ...CONFIRMATION_FIELDS,
  ...RUN_FIELDS,
  'auth',
  'success',
  'pastTenseMessage',
  'structuredContent',
  'error',
  'reason',
  'reasonMessage',
  'userSuggestion',
];

/** @param {Json} state @param {Json} action @returns {number} the index of the call an action names, or -1 */
function find(state, action) {
  const id = textOf(action, 'toolCallId');
  const turn = activeTurn(state, action);
  if (id === undefined || turn === undefined) {
    return -1;
  }
  const isCall = (/** @type {Json} */ part) => part.kind === 'toolCall' && addressOf(part) === id;
  const place = findPart(turn.responseParts, id);
  // A text part may have taken the id first.
  return place === -1 || isCall(turn.responseParts[place]) ? place : turn.responseParts.findIndex(isCall);
}

/** @param {Json} state @param {number} index @param {Json} call @returns {Json} the same chat if the call is equal */
function withCall(state, index, call) {
  const part = state.activeTurn.responseParts[index];
  return isEqual(part.toolCall, call) ? state : withPart(state, index, { ...part, toolCall: call });
}

/**
 * A step of a call if its state allows it; the chat's status says who waits for whom.
 * @param {(call: Json, action: Json) => Json | undefined} next @returns {(state: Json, action: Json) => Json}
 */
const step = (next) => (state, action) => {
  const index = find(state, action);
  if (index === -1) {
    return state;
  }
  const stepped = next(state.activeTurn.responseParts[index].toolCall, action);
  return refreshStatus(stepped === undefined ? state : withCall(state, index, stepped));
};

/** The call in another state: without what belongs to a state, except what is carried. @param {Json} call @param {string} status @param {string[]} carried @returns {Json} */
function enter(call, status, carried) {
  const stays = (/** @type {string} */ field) => !STATE_FIELDS.includes(field) || carried.includes(field);
  return { ...Object.fromEntries(Object.entries(call).filter(([field]) => stays(field))), status };
}

/** @param {Json} state @param {Json} action */
function start(state, action) {
  if (activeTurn(state, action) === undefined) {
    return state;
  }
  const fields = ['toolCallId', 'toolName', 'displayName', 'intention', 'contributor', '_meta'];
  return withNewPart(state, { kind: 'toolCall', toolCall: copyFields({ status: 'streaming' }, action, fields) });
}

/** More of the input. @param {Json} state @param {Json} action */
function appendInput(state, action) {
  const index = find(state, action);
  const call = index === -1 ? undefined : state.activeTurn.responseParts[index].toolCall;
  if (call?.status !== 'streaming') {
    return state;
  }
  let next = call;
  const content = textOf(action, 'content');
  if (content !== undefined) {
    const before = textOf(call, 'partialInput');
    next = before !== undefined && content === '' ? next : { ...next, partialInput: (before ?? '') + content };
  }
  for (const field of ['_meta', 'invocationMessage']) {
    const value = presentOf(action, field);
    next = value === undefined ? next : withField(next, field, value);
  }
  return next === call ? state : withPart(state, index, { ...state.activeTurn.responseParts[index], toolCall: next });
}

/** The input is complete: run, or ask first. While asking, what is not sent again stays (H-192, H-205). @param {Json} call @param {Json} action */
function afterReady(call, action) {
  if (!['streaming', 'running', 'pending-confirmation'].includes(call.status)) {
    return undefined;
  }
  const confirmed = presentOf(action, 'confirmed');
  let next;
  if (confirmed === undefined) {
    next = enter(call, 'pending-confirmation', call.status === 'pending-confirmation' ? CONFIRMATION_FIELDS : []);
    next = copyFields(next, action, CONFIRMATION_FIELDS);
  } else {
    next = { ...enter(call, 'running', []), confirmed };
  }
  if (call.status === 'streaming') {
    next = withoutField(next, 'toolInput'); // a streaming call has only a partial one
  }
  next = copyFields(next, action, ['invocationMessage', 'intention', 'toolInput', '_meta']);
  return withField(
    next,
    'contributor',
    refineContributor(presentOf(call, 'contributor'), presentOf(action, 'contributor')),
  );
}

/** @param {any} contributor @returns {string | undefined} the client that executes */
const clientOf = (contributor) =>
  isObject(contributor) && contributor.kind === 'client' ? textOf(contributor, 'clientId') : undefined;

/** A contributor may be described in more detail, but who executes never changes (H-193). @param {any} current @param {any} next */
const refineContributor = (current, next) =>
  next !== undefined && clientOf(next) === clientOf(current) ? next : current;

/** Approved: it runs, with edited input if there was inline input to edit (H-195). Denied: it is over. @param {Json} call @param {Json} action */
function afterConfirmation(call, action) {
  const approved = flagOf(action, 'approved');
  if (call.status !== 'pending-confirmation' || approved === undefined) {
    return undefined;
  }
  /** @type {Json} */
  let next;
  if (approved) {
    next = { ...enter(call, 'running', []), confirmed: presentOf(action, 'confirmed') ?? 'not-needed' };
    const edited = presentOf(action, 'editedToolInput');
    if (typeof next.toolInput === 'string' && edited !== undefined) {
      next = { ...next, toolInput: edited };
    }
  } else {
    next = { ...enter(call, 'cancelled', []), reason: presentOf(action, 'reason') ?? 'denied' };
    next = copyFields(next, action, ['reasonMessage', 'userSuggestion']);
  }
  const chosen = textOf(action, 'selectedOptionId');
  const options = Array.isArray(call.options) ? call.options : [];
  const option = options.find((candidate) => chosen !== undefined && isObject(candidate) && candidate.id === chosen);
  return copyFields(withField(next, 'selectedOption', option), action, ['_meta']);
}

/** The result. In `auth-required` only a failure ends the call, and it ends it for good (H-203). @param {Json} call @param {Json} action */
function afterResult(call, action) {
  const result = action.result;
  if (!isObject(result)) {
    return undefined;
  }
  let carried;
  if (call.status === 'running') {
    carried = ['confirmed', 'selectedOption'];
  } else if (call.status === 'pending-confirmation') {
    carried = /** @type {string[]} */ ([]);
  } else if (call.status === 'auth-required' && result.success === false) {
    carried = RUN_FIELDS;
  } else {
    return undefined;
  }
  const isReviewed = action.requiresResultConfirmation === true && call.status !== 'auth-required';
  let next = enter(call, isReviewed ? 'pending-result-confirmation' : 'completed', carried);
  if (!Object.hasOwn(next, 'confirmed')) {
    next = { ...next, confirmed: 'not-needed' };
  }
  next = copyFields(next, result, ['success', 'pastTenseMessage', 'content', 'structuredContent', 'error']);
  return copyFields(next, action, ['_meta']);
}

/** @param {Json} call @param {Json} action */
function afterResultConfirmation(call, action) {
  const approved = flagOf(action, 'approved');
  if (call.status !== 'pending-result-confirmation' || approved === undefined) {
    return undefined;
  }
  const next = approved
    ? enter(call, 'completed', STATE_FIELDS)
    : { ...enter(call, 'cancelled', ['selectedOption']), reason: 'result-denied' };
  return copyFields(next, action, ['_meta']);
}

/** Output so far, replaced whole, only while the call runs (H-206). @param {Json} state @param {Json} action */
function setContent(state, action) {
  const index = find(state, action);
  const call = index === -1 ? undefined : state.activeTurn.responseParts[index].toolCall;
  const content = presentOf(action, 'content');
  if (call?.status !== 'running' || content === undefined) {
    return state;
  }
  return withCall(state, index, copyFields({ ...call, content }, action, ['_meta']));
}

/** An MCP server needs another token to continue. Only calls of MCP servers can need one (H-201). @param {Json} call @param {Json} action */
function awaitingAuth(call, action) {
  const { contributor } = call;
  const isMcp =
    isObject(contributor) && contributor.kind === 'mcp' && typeof contributor.customizationId === 'string';
  if (call.status !== 'running' || !isMcp) {
    return undefined;
  }
  return copyFields(enter(call, 'auth-required', RUN_FIELDS), action, ['auth', '_meta']);
}

/** @param {Json} call @param {Json} action */
function afterAuth(call, action) {
  return call.status === 'auth-required'
    ? copyFields(enter(call, 'running', RUN_FIELDS), action, ['_meta'])
    : undefined;
}

/** The call as it is left behind by a turn that ends before it; the same if it is over already (H-174). @param {Json} call @returns {Json} */
export function skipCall(call) {
  if (call.status === 'completed' || call.status === 'cancelled') {
    return call;
  }
  let next = enter(call, 'cancelled', []);
  if (call.status === 'streaming') {
    next = withoutField(next, 'toolInput');
  }
  if (presentOf(next, 'invocationMessage') === undefined) {
    next = { ...next, invocationMessage: '' };
  }
  return { ...next, reason: 'skipped' };
}

/** @type {Record<string, (state: Json, action: Json) => Json>} */
export const TOOL_CALL_ACTIONS = {
  'chat/toolCallStart': start,
  'chat/toolCallDelta': appendInput,
  'chat/toolCallReady': step(afterReady),
  'chat/toolCallConfirmed': step(afterConfirmation),
  'chat/toolCallComplete': step(afterResult),
  'chat/toolCallResultConfirmed': step(afterResultConfirmation),
  'chat/toolCallContentChanged': setContent,
  'chat/toolCallAuthRequired': step(awaitingAuth),
  'chat/toolCallAuthResolved': step(afterAuth),
};
