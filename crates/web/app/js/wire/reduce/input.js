/**
 * Input requests: ask, answer one question after the other, complete.
 *
 * A request is open while its part has no `response`; only open ones can be addressed.
 */

import { STATUS, isEqual, isObject, presentOf, textOf, withField, withFlag, withoutField } from './fields.js';
import { isOpenRequest, refreshStatus, withNewPart, withPart } from './parts.js';

/** @typedef {import('./fields.js').Json} Json */

/** @param {Json} state @param {string} id @returns {number} the index of the open request with this id, or -1 */
const findOpen = (state, id) =>
  state.activeTurn === undefined
    ? -1
    : state.activeTurn.responseParts.findIndex(
        (/** @type {Json} */ part) => isOpenRequest(part) && part.request.id === id,
      );

/** Asks anew, or asks again with what was answered so far (H-215). @param {Json} state @param {Json} action */
function request(state, action) {
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
function complete(state, action) {
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
export const INPUT_ACTIONS = {
  'chat/inputRequested': request,
  'chat/inputAnswerChanged': changeAnswer,
  'chat/inputCompleted': complete,
};
