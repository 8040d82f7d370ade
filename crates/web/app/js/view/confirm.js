// A tool call that waits for a decision: what it is, all of it, and the choices. Promises: nothing is approved but by a choice that says
// so; an approval has no focus at first, and is for exactly what is shown, after it was shown; what was typed here is kept while the host
// is asked. Must not know: the sheet it is in, connections.

import { fill, h, icon, setAttribute, setText, show } from '../ui/dom.js';
import { openMenu } from '../ui/menu.js';
import { writeOut } from '../ui/visible.js';
import { createChatContext } from './chat_context.js';
import { drawFileEdit } from './file_edit.js';
import { textOf } from './format.js';
import { drawResult } from './result.js';
import { aboutOf, decisionAction, editsOf, inputFields, readDecision, riskInWords } from './request.js';
import { createSignIn, wantedTokens } from './sign_in.js';

/**
 * @param {{body: HTMLElement, foot: HTMLElement, title: HTMLElement, dialog: any}} places
 * @param {any} context
 */
export function mountConfirm({ body, foot, title }, context) {
  let needed = context.entry;
  let about = aboutOf(needed.toolCall);
  /** @type {any} */
  let decision = readDecision(needed.toolCall);
  /** Whether the input is not there to be read. */
  let isUnseen = false;
  /** Counts what was drawn: what is read for an earlier drawing comes too late. */
  let drawing = 0;
  let closeMore = () => {};
  const chat = createChatContext({
    store: context.store, session: context.entry.sessionUri, chat: context.entry.chatUri, navigate: () => {}, chatState: () => null, sessionState: () => context.store.state(context.entry.sessionUri),
  });
  const risk = h('p.risk', { hidden: true }, icon('warning'), h('span'));
  const content = h('div.stack');
  const editor = createEditor();
  const words = createSuggestion();
  body.append(risk, content, editor.element, words.element);

  function draw() {
    const call = needed.toolCall;
    closeMore();
    drawing += 1;
    const own = drawing;
    decision = readDecision(call); // its options are new ones: those of an earlier drawing cannot be chosen any more
    isUnseen = inputUri(call.toolInput) !== null;
    drawTitle(title, call, decision);
    drawRisk(risk, call);
    fill(content, drawAbout(call, decision, chat, (isMissing) => {
      if (own !== drawing) return; // another one is on the screen
      isUnseen = isMissing;
      context.redrawn();
    }));
    editor.reset(decision?.editableInput ?? null);
    drawButtons();
  }

  /** @type {any} */
  let buttons = {};
  function drawButtons() {
    buttons = {};
    if (!decision) return void fill(foot); // it waits for nobody any more; the sheet says so
    const approvals = decision.options.filter((/** @type {any} */ option) => option.kind === 'approve');
    const denials = decision.options.filter((/** @type {any} */ option) => option.kind === 'deny');
    const make = (/** @type {any} */ option, /** @type {string} */ classes) => option
      && h('button.button', { class: classes, data: { choice: option.kind }, on: { click: () => choose(option) } }, h('span', { dir: 'auto' }, option.label));
    buttons = {
      approve: make(approvals[0], 'primary'),
      deny: make(denials[0], 'deny'),
      edit: decision.editableInput !== null && h('button.button', { on: { click: () => editor.toggle() } }, 'Edit'),
    };
    const others = [...approvals.slice(1), ...denials.slice(1)];
    const hasMore = others.length > 0 || canSuggest();
    buttons.more = hasMore && h('button.button.icon', { 'aria-label': 'More choices', title: 'More choices', on: { click: () => openMore(buttons.more, others) } }, icon('more'));
    fill(foot, buttons.approve, buttons.deny, buttons.edit, buttons.more);
    context.redrawn();
    lockUnseen();
  }

  /** What was not seen cannot be approved; a result can, since its call has run. @param {any} option */
  const isLockedOption = (option) => option.kind === 'approve' && isUnseen && decision?.subject === 'call';

  /** Takes the approvals away while the input cannot be seen; gives back nothing that is locked for another reason. */
  function lockUnseen() {
    const { approve, more } = buttons;
    if (approve) setAttribute(approve, 'aria-describedby', isUnseen && 'unseen-input');
    if (!decision || !decision.options.some(isLockedOption)) return; // all of it can be chosen
    if (approve) approve.disabled = true;
    const [, ...denials] = decision.options.filter((/** @type {any} */ option) => option.kind === 'deny');
    if (more && denials.length === 0 && !canSuggest()) more.disabled = true;
  }

  /** The other options in the order and the groups of the host. @param {HTMLElement} anchor @param {any[]} others */
  function openMore(anchor, others) {
    /** @type {any[]} */
    const entries = [];
    const sorted = decision.options.filter((/** @type {any} */ option) => others.includes(option) && !isLockedOption(option));
    sorted.forEach((/** @type {any} */ option, /** @type {number} */ index) => {
      if (index > 0 && option.group !== sorted[index - 1].group) entries.push('line');
      entries.push({ label: option.label, danger: option.kind === 'deny', run: () => choose(option) });
    });
    if (canSuggest()) {
      if (entries.length > 0) entries.push('line');
      entries.push({ label: 'Deny and say what to do instead', run: () => words.open() });
    }
    closeMore = openMenu(anchor, entries);
  }

  /** @param {any} option */
  function choose(option) {
    if (!decision?.options.includes(option) || isLockedOption(option) || !context.canSend()) return; // not what is asked now
    const call = needed.toolCall;
    const edited = editor.value();
    if (option.kind === 'approve' && !editor.check()) return; // the editor says what is wrong
    const action = decisionAction({
      turnId: needed.turnId ?? '', toolCallId: call.toolCallId, subject: decision.subject, option,
      editedInput: edited !== null && edited !== call.toolInput ? edited : null,
      suggestion: option.kind === 'deny' ? words.value() : '',
    });
    context.send(action, { done: option.kind === 'approve' ? 'Approved.' : 'Denied.' });
  }

  /** Words go with a denial, and only a call that has not run takes them. */
  function canSuggest() {
    return decision?.subject === 'call' && denyFirst() !== undefined;
  }

  const denyFirst = () => decision?.options.find((/** @type {any} */ option) => option.kind === 'deny');
  words.onSend(() => { if (denyFirst()) choose(denyFirst()); });
  draw();

  return {
    /** @param {any} next */
    update(next) {
      needed = next;
      const now = aboutOf(next.toolCall);
      drawRisk(risk, next.toolCall);
      if (now === about) return; // the same is asked
      about = now;
      context.guard();
      context.tellChanged('The question changed. Read it before answering.');
      draw();
    },
    /** @param {boolean} isLocked */
    lock(isLocked) {
      editor.lock(isLocked);
      words.lock(isLocked);
      lockUnseen();
    },
    drawButtons,
    /** Chooses by a key; Enter then confirms. @param {'approve' | 'deny' | 'edit'} name */
    choose(name) {
      if (name === 'edit' && buttons.edit) editor.toggle();
      else if (buttons[name]) buttons[name].focus();
      return Boolean(buttons[name]);
    },
    unmount() {
      closeMore();
      drawing += 1;
      decision = null;
    },
  };
}

/** @param {any} call */
const nameCall = (call) => writeOut(textOf(call.confirmationTitle) || textOf(call.displayName) || textOf(call.toolName) || 'A tool call');

/** @param {HTMLElement} title @param {any} call @param {any} decision */
function drawTitle(title, call, decision) {
  const own = nameCall(call);
  const words = { call: own, result: `Result of ${own}`, 'sign-in': `${own}: sign-in needed` };
  setText(title, decision ? words[/** @type {'call'} */ (decision.subject)] : own);
}

/** @param {HTMLElement} element @param {any} call */
function drawRisk(element, call) {
  const risk = riskInWords(call);
  show(element, risk !== null);
  if (!risk) return; // no assessment
  element.dataset.level = risk.level;
  setText(/** @type {Node} */ (element.lastChild), risk.text);
}

/**
 * What a call would change comes before the input that says so: a diff is read sooner.
 * @param {any} call @param {any} decision @param {any} chat
 * @param {(isMissing: boolean) => void} onInput says whether the input cannot be seen
 */
function drawAbout(call, decision, chat, onInput) {
  const parts = [];
  const message = writeOut(textOf(call.invocationMessage)).trim();
  const intention = writeOut(textOf(call.intention)).trim();
  const [first] = typeof call.toolInput === 'string' ? inputFields(call.toolInput) : [];
  // The title and the first field say it already.
  const said = [nameCall(call), `${nameCall(call)} ${first?.text}`];
  for (const text of new Set([message, intention])) {
    if (text && !said.includes(text.replaceAll('`', ''))) parts.push(h('p.ask-message', { dir: 'auto' }, text));
  }
  if (call.contributor?.kind === 'mcp' || call.contributor?.name) parts.push(h('p.hint', null, `From ${writeOut(textOf(call.contributor.name) || 'another program')}`));
  if (decision?.subject === 'sign-in') parts.push(drawSignIn(call, chat));
  for (const edit of editsOf(call)) parts.push(drawFileEdit(chat, edit, { isOpen: true }));
  parts.push(drawInput(call.toolInput, chat, onInput));
  if (decision?.subject === 'result') parts.push(h('h3', null, 'Output'), drawResult(call, chat));
  return parts;
}

/** @param {any} call @param {any} chat */
function drawSignIn(call, chat) {
  const auth = call.auth;
  const resource = auth?.resource?.resource;
  if (typeof resource !== 'string') return h('p.hint', null, 'It waits for a sign-in. Sign in where the agent asks for it, or deny.');
  const server = wantedTokens(chat.sessionState()).find((one) => one.auth.resource.resource === resource);
  return createSignIn(chat.store, { name: server?.name || writeOut(resource), auth });
}

/** Where an input is read that is not in the call itself. @param {any} input @returns {string | null} */
const inputUri = (input) => (typeof input?.uri === 'string' ? input.uri : null);

/** @param {unknown} input @param {any} chat @param {(isMissing: boolean) => void} onInput */
function drawInput(input, chat, onInput) {
  if (typeof input === 'string') return input.trim() === '' || input.trim() === '{}' ? null : drawFields(input);
  const uri = inputUri(input);
  if (uri === null) return null;
  const place = h('div', null, h('p.hint', { id: 'unseen-input' }, 'Reading the input …'));
  const read = async () => {
    const text = await chat.readText(uri);
    if (text !== null) fill(place, drawFields(text));
    else {
      fill(place, h('p.problem', { id: 'unseen-input' }, 'The input cannot be read now, and what was not seen cannot be approved. '),
        h('button.button.small', { on: { click: read } }, 'Read it again'));
    }
    onInput(text === null);
  };
  read();
  return place;
}

/** @param {string} input */
function drawFields(input) {
  return h('dl.input', null, inputFields(input).map(({ name, text }) => [
    name !== null && h('dt', null, name),
    h('dd', null, h('pre', { dir: 'ltr', tabindex: '0', 'aria-label': name ?? 'Input' }, text)),
  ]));
}

/** The input as it is to be changed. */
function createEditor() {
  const field = h('textarea.field.mono', { rows: '8', spellcheck: 'false', autocapitalize: 'off', autocomplete: 'off', id: 'edited-input', dir: 'ltr' });
  const problem = h('p.problem', { role: 'alert', hidden: true });
  const element = h('div.stack.editor', { hidden: true }, h('label.label', { for: 'edited-input' }, 'Run it with this input instead'), field, problem);
  /** @type {string | null} */
  let original = null;
  const isJson = (/** @type {string} */ text) => {
    try {
      JSON.parse(text);
      return true;
    } catch {
      return false; // free text
    }
  };
  const check = () => {
    const isWrong = !element.hidden && original !== null && isJson(original) && !isJson(field.value);
    setText(problem, 'This is not JSON, and the input was. Correct it or close the editor.');
    show(problem, isWrong);
    setAttribute(field, 'aria-invalid', isWrong && 'true');
    if (isWrong) field.focus();
    return !isWrong;
  };
  field.addEventListener('input', () => { if (!problem.hidden) check(); });
  return {
    element,
    check,
    /** @param {string | null} input */
    reset(input) {
      if (input === original) return; // what was typed stays
      original = input;
      field.value = input === null ? '' : pretty(input);
      show(element, false);
    },
    toggle() {
      show(element, element.hidden);
      if (!element.hidden) {
        field.focus();
        scrollToEnd(element);
      }
    },
    /** What it is to run with; null if it was not changed. */
    value: () => (element.hidden || original === null || field.value === pretty(original) ? null : field.value),
    /** @param {boolean} isLocked */
    lock: (isLocked) => void (field.readOnly = isLocked),
  };
}

/** JSON on several lines, if nothing is lost by it. @param {string} text */
function pretty(text) {
  try {
    const value = JSON.parse(text);
    return JSON.stringify(value) === text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1') ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text; // free text is edited as it is
  }
}

/** What is to be done instead of a call that is denied. */
function createSuggestion() {
  const field = h('textarea.field', { rows: '3', id: 'instead', dir: 'auto', placeholder: 'For example: use a copy of the file' });
  const button = h('button.button', { type: 'submit' }, 'Deny and send');
  const element = h('form.stack', { hidden: true }, h('label.label', { for: 'instead' }, 'What to do instead'), field, h('div.row', null, button));
  return {
    element,
    open() {
      show(element, true);
      field.focus();
      scrollToEnd(element);
    },
    /** @param {() => void} send */
    onSend(send) {
      element.addEventListener('submit', (/** @type {Event} */ event) => { event.preventDefault(); if (!button.disabled) send(); });
      field.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
        if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) element.requestSubmit();
      });
    },
    value: () => (element.hidden ? '' : field.value.trim()),
    /** @param {boolean} isLocked */
    lock(isLocked) {
      field.readOnly = isLocked;
      button.disabled = isLocked;
    },
  };
}

/** What opens at the end of the sheet is brought into sight by scrolling the sheet's own body. @param {HTMLElement} element */
function scrollToEnd(element) {
  const body = element.closest('.sheet-body');
  body?.scrollTo({ top: body.scrollHeight });
}
