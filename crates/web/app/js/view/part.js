// One part of an answer: text, reasoning, a note of the host, a reference, a question, an error. Tool calls have a file of their own.
//
// Promises: what is folded is built when it is opened; a part keeps its element as long as it is there. Must not know: the list of turns.

import { h, fill, setText, show } from '../ui/dom.js';
import { reportProblem } from '../ui/menu.js';
import { writeOutName } from '../ui/visible.js';
import { MarkdownView } from './markdown.js';
import { createToolPart } from './tool.js';
import { isPicture } from './chat_context.js';
import { formatBytes, formatDuration, nameOf, textOf } from './format.js';
import { askKey } from './route.js';

/** @typedef {import('./chat_context.js').ChatContext} ChatContext */
/** @typedef {{ isLast: boolean, isActive: boolean, isLatestTurn: boolean, turnId: string, turnState: string }} PartPlace */
/** @typedef {{ element: HTMLElement, update: (part: any, place: PartPlace) => void, append?: (text: string, length: number) => boolean }} PartView `append` adds streamed text; false if it would not make a text of that length */

/** @param {ChatContext} context @param {any} part @param {PartPlace} place @returns {PartView} */
export function createPart(context, part, place) {
  switch (part.kind) {
    case 'markdown':
      return createText(context, part, place);
    case 'reasoning':
      return createReasoning(context, part, place);
    case 'toolCall':
      return createToolPart(context, part, place);
    case 'systemNotification':
      return createNotice(context, part);
    case 'contentRef':
      return createReference(context, part);
    case 'inputRequest':
      return createQuestion(context, part, place);
    case 'error':
      return createError(context, part, place);
    default:
      return createUnknown(part);
  }
}

/** @param {ChatContext} context @param {any} part @param {PartPlace} place @returns {PartView} */
function createText(context, part, place) {
  const view = new MarkdownView(context.markup, { isWriting: place.isActive && place.isLast });
  view.element.classList.add('part-text');
  const update = (/** @type {any} */ next, /** @type {PartPlace} */ at) => view.update(String(next.content ?? ''), at.isActive && at.isLast);
  update(part, place);
  return { element: view.element, update, append: (text, length) => appendTo(view, text, length) };
}

/** @param {MarkdownView} view @param {string} text @param {number} length */
function appendTo(view, text, length) {
  if (!view.isWriting || view.source.length + text.length !== length) return false;
  view.append(text);
  return true;
}

/** One line with its duration; the text is built when it is opened. @param {ChatContext} context @param {any} part @param {PartPlace} place @returns {PartView} */
function createReasoning(context, part, place) {
  const label = h('span');
  const body = h('div.fold-body');
  const element = h('details.fold.part-reasoning', null, h('summary.fold-line', null, h('span.fold-mark', { 'aria-hidden': 'true' }), label), body);
  const began = place.isActive && place.isLast ? Date.now() : undefined;
  /** @type {number | undefined} */
  let took;
  let source = '';
  let isWriting = false;
  /** @type {MarkdownView | undefined} */
  let view;
  const draw = () => {
    if (element.open && !view) {
      view = new MarkdownView(context.markup, { isWriting });
      body.append(view.element);
    }
    if (element.open) view?.update(source, isWriting);
  };
  element.addEventListener('toggle', draw);
  const update = (/** @type {any} */ next, /** @type {PartPlace} */ at) => {
    source = String(next.content ?? '');
    isWriting = at.isActive && at.isLast;
    if (!isWriting && began !== undefined) took ??= Date.now() - began;
    element.classList.toggle('is-working', isWriting);
    setText(label, isWriting ? 'Thinking' : took !== undefined ? `Thought for ${formatDuration(took)}` : 'Thought');
    show(element, isWriting || source.trim() !== '');
    draw();
  };
  update(part, place);
  return {
    element,
    update,
    append(text, length) {
      if (!isWriting || source.length + text.length !== length) return false;
      source += text;
      if (element.open) view?.append(text);
      return true;
    },
  };
}

/** @param {ChatContext} context @param {any} part @returns {PartView} */
function createNotice(context, part) {
  const view = new MarkdownView(context.markup);
  const steering = part._meta?.['greenroom.steering'] !== undefined;
  const element = h('div.part-notice', { class: steering ? 'is-steering' : '' },
    h('span.notice-mark', null, steering ? 'You, while the agent worked' : 'Note'), view.element);
  const update = (/** @type {any} */ next) => view.update(textOf(next.content), false);
  update(part);
  return { element, update };
}

/** @param {ChatContext} context @param {any} part @returns {PartView} */
function createReference(context, part) {
  const element = h('div.part-reference', null, drawContent(context, part));
  return { element, update() {} };
}

/**
 * Content by reference or embedded: a picture, or a chip that says what it is.
 * @param {ChatContext} context
 * @param {{ uri?: string, contentType?: string, data?: string, sizeHint?: number, label?: string }} ref
 */
export function drawContent(context, ref) {
  const name = writeOutName(ref.label ?? (ref.uri ? nameOf(ref.uri) : 'content'));
  const size = formatBytes(ref.sizeHint ?? (ref.data === undefined ? undefined : Math.floor(ref.data.length * 0.75)));
  const kind = writeOutName(ref.contentType ?? '');
  const chip = h('span.chip', null, [/^[0-9a-f]{64}$/.test(name) ? 'content' : name, kind, size].filter(Boolean).join(' · '));
  if (isPicture(ref.contentType)) {
    context.picture(ref).then((url) => {
      if (!url || !chip.isConnected) return; // the chip stays
      const picture = h('img.picture', { src: url, alt: name, loading: 'lazy', decoding: 'async' });
      picture.addEventListener('click', () => picture.classList.toggle('is-large'));
      chip.replaceWith(picture);
    });
  } else if (ref.uri?.startsWith('ahp-content:') && /^text\/|json$/.test(ref.contentType ?? 'text/plain')) {
    const open = h('button.chip.chip-button', null, `${chip.textContent} · show`);
    open.addEventListener('click', async () => {
      const text = await context.readText(String(ref.uri));
      open.replaceWith(text === null ? chip : h('pre.output', { tabIndex: 0 }, text));
    });
    return open;
  }
  return chip;
}

/** @param {ChatContext} context @param {any} part @param {PartPlace} place @returns {PartView} */
function createQuestion(context, part, place) {
  const title = h('span.grow', { dir: 'auto' });
  const word = h('span.tool-word');
  const button = h('button.button.primary.small', null, 'Answer');
  const answers = h('dl.answers');
  const element = h('div.part-question', null, h('div.row', null, h('span.tool-mark', { 'aria-hidden': 'true' }, '?'), title, word, button), answers);
  button.addEventListener('click', () => context.navigate({
    screen: 'session', session: context.session, chat: context.chat, ask: askKey({ chatUri: context.chat, requestId: latest.request?.id }),
  }));
  let latest = part;
  const update = (/** @type {any} */ next, /** @type {PartPlace} */ at) => {
    latest = next;
    const isSent = context.store.isPending(context.chat, (/** @type {any} */ action) => action.type === 'chat/inputCompleted' && action.requestId === next.request?.id);
    const isOpen = next.response === undefined && at.isActive && !isSent;
    const words = { accept: 'answered', decline: 'declined', cancel: 'dismissed' };
    setText(title, textOf(next.request?.message) || 'A question');
    setText(word, isSent ? 'answer sent, not confirmed yet' : isOpen ? 'waits for you' : words[/** @type {keyof typeof words} */ (next.response)] ?? 'not answered');
    element.classList.toggle('is-waiting', isOpen);
    show(button, isOpen);
    fill(answers, next.response === 'accept' ? drawAnswers(next.request) : []);
  };
  update(part, place);
  return { element, update };
}

/** @param {any} request */
function drawAnswers(request) {
  return (request.questions ?? []).flatMap((/** @type {any} */ question) => {
    const value = request.answers?.[question.id]?.value;
    if (value === undefined) return [];
    const label = (/** @type {string} */ id) => question.options?.find((/** @type {any} */ option) => option.id === id)?.label ?? id;
    const chosen = [].concat(value.value ?? []).map((one) => (question.options ? label(one) : String(one)));
    const text = [...chosen, ...[].concat(value.freeformValues ?? [])].join(', ');
    return [h('dt', { dir: 'auto' }, textOf(question.title ?? question.message ?? question.label ?? question.id)), h('dd', { dir: 'auto' }, text)];
  });
}

/** @param {ChatContext} context @param {any} part @param {PartPlace} place @returns {PartView} */
function createError(context, part, place) {
  const text = h('p', { dir: 'auto' });
  const kind = h('small.muted');
  const button = h('button.button.small', null, 'Resume');
  const element = h('div.part-error', { role: 'group', 'aria-label': 'Error' }, h('div.row', null, h('strong', null, 'Stopped by an error'), h('span.grow'), button), text, kind);
  let turnId = place.turnId;
  button.addEventListener('click', async () => {
    button.disabled = true;
    await reportProblem(context.dispatch({ type: 'chat/turnResume', turnId }), 'Not resumed');
    button.disabled = false;
  });
  const update = (/** @type {any} */ next, /** @type {PartPlace} */ at) => {
    turnId = at.turnId;
    setText(text, String(next.error?.message ?? 'No reason was given.'));
    setText(kind, writeOutName(String(next.error?.errorType ?? '')));
    show(button, next.resumable === true && at.isLatestTurn && at.turnState === 'error');
  };
  update(part, place);
  return { element, update };
}

/** @param {any} part @returns {PartView} */
function createUnknown(part) {
  return { element: h('p.part-notice', null, `This page does not know parts of the kind “${writeOutName(String(part.kind))}”.`), update() {} };
}
