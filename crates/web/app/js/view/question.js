// The questions of an agent on one form. Promises: answers are saved as they are typed, so that they are on every device; an answer that
// comes from elsewhere never replaces one that is being typed here; nothing is sent that does not fit. Must not know: the sheet it is in.

import { fill, h, icon, setText } from '../ui/dom.js';
import { writeOut } from '../ui/visible.js';
import { textOf } from './format.js';
import { createQuestionField } from './question_field.js';

/** An answer is saved when nothing was typed for this long. */
const SAVE_MS = 400;

/**
 * @param {{body: HTMLElement, foot: HTMLElement, title: HTMLElement, dialog: any}} places
 * @param {any} context
 */
export function mountQuestion({ body, foot, title }, context) {
  let request = context.entry.request;
  /** What is shown of it; answers are not part of that. */
  const shape = () => JSON.stringify([request.message, request.url, request.questions]);
  let shown = '';
  /** @type {Map<string, {field: import('./question_field.js').QuestionField, isOurs: boolean, saving: any, saved: string}>} */
  let fields = new Map();
  const list = h('form.stack.questions', { novalidate: true, on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); accept(); } } });
  body.append(list);

  function draw() {
    shown = shape();
    const message = writeOut(textOf(request.message)).trim();
    const questions = Array.isArray(request.questions) ? request.questions : [];
    setText(title, message && message.length <= 80 ? message : questions.length > 0 ? 'Questions for you' : 'The agent asks');
    fields = new Map(questions.map((/** @type {any} */ question) => {
      const own = { field: /** @type {any} */ (null), isOurs: false, saving: 0, saved: '' };
      own.field = createQuestionField(question, () => changed(question.id));
      return [question.id, own];
    }));
    fill(list, message.length > 80 && h('p', { dir: 'auto' }, message), request.url && drawUrl(request.url), [...fields.values()].map(({ field }) => field.element));
    drawButtons();
    takeAnswers();
  }

  function drawButtons() {
    const hasQuestions = fields.size > 0;
    const button = (/** @type {string} */ label, /** @type {string} */ classes, /** @type {() => void} */ run) =>
      h('button.button', { class: classes, on: { click: run } }, label);
    fill(foot,
      button(hasQuestions ? 'Send' : 'Accept', 'primary', accept),
      button('Decline', '', () => complete('decline', 'Declined.')),
      button('Dismiss', 'quiet', () => complete('cancel', 'Dismissed.')));
    context.redrawn();
  }

  /** Answers that were given elsewhere, or here before a reload. */
  function takeAnswers() {
    for (const [id, own] of fields) {
      const answer = request.answers?.[id];
      const value = answer?.value;
      if (!value || own.isOurs || own.field.element.contains(document.activeElement)) continue;
      if (JSON.stringify(value) === own.saved) continue;
      own.saved = JSON.stringify(value);
      own.field.write(value);
    }
  }

  /** @param {string} id */
  function changed(id) {
    const own = fields.get(id);
    if (!own) return; // the form was drawn anew meanwhile
    own.isOurs = true;
    clearTimeout(own.saving);
    own.saving = setTimeout(() => save(id), SAVE_MS);
  }

  /** @param {string} id */
  function save(id) {
    const own = fields.get(id);
    if (!own) return; // the form was drawn anew meanwhile
    clearTimeout(own.saving);
    own.saving = 0;
    const value = own.field.read();
    const text = JSON.stringify(value);
    if (text === own.saved) return; // it is saved already
    own.saved = text;
    /** @type {any} */
    const action = { type: 'chat/inputAnswerChanged', requestId: request.id, questionId: id };
    if (value !== null) action.answer = { state: 'draft', value };
    const sent = context.store.dispatch(context.entry.chatUri, action);
    // What the host did not take is saved again with the next change, and sent whole at the end.
    sent.done.then((/** @type {any} */ { status }) => {
      if (status !== 'confirmed' && own.saved === text) own.saved = '';
      own.isOurs = own.saving !== 0;
    });
  }

  function accept() {
    if (!context.canSend()) return; // it was answered, or has just changed; what is typed goes on being saved
    /** @type {Record<string, any>} */
    const answers = {};
    let first = null;
    for (const [id, { field }] of fields) {
      if (field.problem() !== null) first ??= field;
      const value = field.read();
      answers[id] = value === null ? { state: 'skipped' } : { state: 'submitted', value };
    }
    if (first) return void first.focus();
    stopSaving();
    const action = { type: 'chat/inputCompleted', requestId: request.id, response: 'accept' };
    context.send(fields.size > 0 ? { ...action, answers } : action, { done: 'Sent.' });
  }

  /** @param {string} response @param {string} done */
  function complete(response, done) {
    if (!context.canSend()) return; // as above
    stopSaving();
    context.send({ type: 'chat/inputCompleted', requestId: request.id, response }, { done });
  }

  function stopSaving() {
    for (const own of fields.values()) {
      clearTimeout(own.saving);
      own.saving = 0;
    }
  }

  draw();
  return {
    /** @param {any} next */
    update(next) {
      request = next.request;
      if (shape() !== shown) {
        context.guard();
        draw();
      } else {
        takeAnswers();
      }
    },
    /** @param {boolean} isLocked */
    lock: (isLocked) => { for (const { field } of fields.values()) field.lock(isLocked); },
    choose: () => false,
    drawButtons,
    unmount() {
      // What was typed last is not lost by closing the sheet.
      for (const [id, own] of fields) if (own.saving !== 0) save(id);
    },
  };
}

/** An address to open, with the host it leads to. @param {string} text */
function drawUrl(text) {
  let url = null;
  try {
    url = new URL(text);
  } catch {
    // not an address: shown as text below
  }
  const isSafe = url !== null && ['https', 'http'].includes(url.protocol.slice(0, -1));
  if (!url || !isSafe) return h('p.problem', null, `The agent names an address that cannot be opened: ${writeOut(text)}`);
  return h('div.url', null,
    h('p', null, 'The agent asks you to open a page on ', h('strong.mono', null, url.host), '.'),
    h('p.hint.mono', null, writeOut(url.href)),
    h('a.button', { href: url.href, target: '_blank', rel: 'noopener noreferrer' }, icon('forward'), `Open ${url.host}`));
}
