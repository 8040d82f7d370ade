// Where a message is written: text with suggestions, attachments, the draft, and the ways to send it.
//
// Promises: nothing typed here is lost or replaced by another device without being asked; Enter sends with a keyboard and is a new line on
// touch, Ctrl or Cmd and Enter always sends, and neither while an input method composes; Queue, Steer and Stop are three buttons.
// Must not know: how the transcript is drawn.

import { h, icon, iconButton, setAttribute, setText, show } from '../ui/dom.js';
import { describeProblem, reportProblem, showNote } from '../ui/menu.js';
import { device, randomId } from '../state/device.js';
import { createAttachments } from './attachments.js';
import { Accepted, createCompletions } from './completion.js';
import { joinMessages } from './message.js';
import { createPickers } from './picker.js';

/** @typedef {import('./chat_context.js').ChatContext} ChatContext */

const TOUCH = matchMedia('(hover: none) and (pointer: coarse)');

/** Time in which a second Esc stops the agent. */
const ESCAPE_MS = 1_500;

export class Composer {
  /** @param {ChatContext} context @param {{ onSent?: () => void }} [hooks] */
  constructor(context, hooks = {}) {
    this.context = context;
    this.hooks = hooks;
    this.accepted = new Accepted();
    this.escapedAt = 0;
    this.isWorking = false;
    this.field = h('textarea.composer-text', { rows: 1, 'aria-label': 'Message', placeholder: 'Message, @ file, / command', dir: 'auto', autocomplete: 'off', enterkeyhint: TOUCH.matches ? 'enter' : 'send' });
    this.attachments = createAttachments({ onChange: () => this.changed() });
    this.completions = createCompletions(this.field, {
      ask: (text, offset) => context.store.request('completions', { channel: context.chat, kind: 'userMessage', text, offset }),
      accept: (item) => this.accepted.add(item),
    });
    this.pickers = createPickers(context, () => this.changed());
    this.foreign = h('div.composer-foreign', { role: 'status', hidden: true }, h('span.grow', null, 'Changed on another device.'),
      h('button.button.small', { on: { click: () => context.store.drafts.useForeign(context.chat) } }, 'Use it'),
      h('button.button.small', { on: { click: () => context.store.drafts.keepMine(context.chat) } }, 'Keep mine'));
    this.problem = h('p.problem', { role: 'alert', hidden: true });
    this.buildButtons();
    this.readOnly = h('p.composer-closed', { hidden: true });
    this.form = h('form.composer-form', { on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); this.send(); } } },
      this.completions.element, this.foreign, this.attachments.element, this.field, this.problem,
      h('div.composer-bar', null, this.attach, this.picker, this.pickers.element, h('span.grow'), this.stop, this.steer, this.submit));
    this.element = h('section.composer', { 'aria-label': 'Write a message' }, this.form, this.readOnly);
    this.listen();
    this.release = context.store.drafts.onChange((/** @type {string} */ chat) => chat === context.chat && this.takeDraft());
    this.takeDraft();
  }

  buildButtons() {
    this.picker = h('input', { type: 'file', multiple: true, hidden: true, on: { change: () => { this.attachments.addFiles(this.picker.files ?? []); this.picker.value = ''; } } });
    this.attach = iconButton('attach', 'Attach files or pictures', () => this.picker.click());
    this.stop = h('button.button.stop', { hidden: true, on: { click: () => this.cancel() } }, icon('stop'), h('span', null, 'Stop'));
    this.steer = h('button.button.steer', { hidden: true, title: 'The agent reads it as soon as it can, in this turn', on: { click: () => this.sendAs('steering') } }, 'Steer');
    this.submitText = h('span');
    this.submit = h('button.button.primary', { type: 'submit' }, icon('send'), this.submitText);
  }

  listen() {
    const { field } = this;
    field.addEventListener('input', () => { this.changed(); this.completions.update(); });
    field.addEventListener('click', () => this.completions.update());
    field.addEventListener('blur', () => setTimeout(() => this.completions.close(), 150));
    field.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => this.takeKey(event));
    field.addEventListener('paste', (/** @type {ClipboardEvent} */ event) => {
      const files = [...(event.clipboardData?.files ?? [])];
      if (files.length === 0) return; // text is pasted by the browser
      event.preventDefault();
      this.attachments.addFiles(files);
    });
    this.element.addEventListener('dragover', (/** @type {DragEvent} */ event) => {
      if (![...(event.dataTransfer?.types ?? [])].includes('Files')) return; // no files: not ours
      event.preventDefault();
      this.element.classList.add('is-dropping');
    });
    for (const name of ['dragleave', 'drop', 'dragend']) this.element.addEventListener(name, () => this.element.classList.remove('is-dropping'));
    this.element.addEventListener('drop', (/** @type {DragEvent} */ event) => {
      const files = [...(event.dataTransfer?.files ?? [])];
      if (files.length === 0) return; // text is dropped by the browser
      event.preventDefault();
      this.attachments.addFiles(files);
    });
  }

  unmount() {
    this.keep();
    this.release();
  }

  /** @param {KeyboardEvent} event */
  takeKey(event) {
    if (event.isComposing || event.keyCode === 229) return; // the key belongs to the input method
    if (this.completions.takeKey(event)) return;
    if (event.key === 'Escape') return this.takeEscape();
    if (event.key !== 'Enter') return;
    const isForced = event.ctrlKey || event.metaKey;
    const wish = device.settings().enter;
    const isSend = isForced || (!event.shiftKey && !event.altKey && (wish === 'send' || (wish !== 'newline' && !TOUCH.matches)));
    if (!isSend) return; // the browser makes a new line
    event.preventDefault();
    if (isForced && event.shiftKey && this.isWorking) this.sendAs('steering');
    else this.send();
  }

  takeEscape() {
    const now = Date.now();
    if (this.isWorking && now - this.escapedAt < ESCAPE_MS) return this.cancel();
    this.escapedAt = now;
    if (this.isWorking) showNote('Press Esc again to stop the agent.');
    return undefined;
  }

  /** The message as it would be sent now. */
  readMessage() {
    const text = this.field.value;
    const attachments = [...this.accepted.attachmentsIn(text), ...this.attachments.list()];
    const model = this.pickers.model();
    return { text, origin: { kind: 'user' }, ...(model ? { model } : {}), ...(attachments.length > 0 ? { attachments } : {}) };
  }

  isEmpty() {
    return this.field.value.trim() === '' && this.attachments.list().length === 0;
  }

  changed() {
    this.fit();
    this.keep();
    this.drawButtons();
  }

  keep() {
    this.context.store.drafts.set(this.context.chat, this.isEmpty() ? undefined : this.readMessage());
  }

  /** Grows with its text, up to 40 % of the screen. */
  fit() {
    this.field.style.height = 'auto';
    this.field.style.height = `${Math.min(this.field.scrollHeight + 2, Math.max(96, window.innerHeight * 0.4))}px`;
  }

  takeDraft() {
    const { message, foreign } = this.context.store.drafts.get(this.context.chat);
    show(this.foreign, foreign !== undefined);
    if (String(message?.text ?? '') !== this.field.value || (message?.attachments ?? []).length !== (this.readMessage().attachments ?? []).length) this.fillIn(message);
    this.drawButtons();
  }

  /** Puts a message into the field. @param {any} message */
  fillIn(message) {
    this.accepted.clear();
    const rest = this.accepted.addAllOf(message);
    const hadFocus = document.activeElement === this.field;
    this.field.value = String(message?.text ?? '');
    if (hadFocus) this.field.setSelectionRange(this.field.value.length, this.field.value.length);
    this.attachments.replace(rest);
    this.pickers.take(message?.model);
    this.fit();
  }

  /** Puts a message before what is typed already. @param {any} message */
  edit(message) {
    this.fillIn(this.isEmpty() ? message : joinMessages(message, this.readMessage()));
    this.changed();
    this.field.focus();
  }

  /** @param {any} state the chat */
  update(state) {
    this.isWorking = state?.activeTurn !== undefined;
    const mode = state?.interactivity ?? 'full';
    show(this.form, mode === 'full');
    show(this.readOnly, mode !== 'full');
    setText(this.readOnly, 'This worker can be watched. Messages go to the chat that started it.');
    this.pickers.update(state);
    this.drawButtons();
  }

  drawButtons() {
    const isEmpty = this.isEmpty();
    show(this.stop, this.isWorking);
    show(this.steer, this.isWorking && !isEmpty);
    setText(this.submitText, this.isWorking ? 'Queue' : 'Send');
    setAttribute(this.submit, 'title', this.isWorking ? 'Sent when the agent is done' : null);
    show(this.submit, !this.isWorking || !isEmpty || document.activeElement === this.field);
    this.submit.disabled = isEmpty || this.attachments.isUploading();
    this.steer.disabled = this.submit.disabled;
  }

  send() {
    return this.sendAs(this.isWorking ? 'queued' : 'turn');
  }

  /** @param {'turn' | 'queued' | 'steering'} kind */
  sendAs(kind) {
    if (this.isEmpty()) return undefined; // nothing to send
    if (this.attachments.isUploading() || this.attachments.hasProblem()) return this.say('Wait for the upload, or remove the file that could not be uploaded.');
    const message = this.readMessage();
    const { store, chat } = this.context;
    this.fillIn(undefined);
    store.drafts.clear(chat);
    this.say('');
    this.drawButtons();
    this.hooks.onSent?.();
    return this.deliver(kind, message);
  }

  /** @param {'turn' | 'queued' | 'steering'} kind @param {any} message what does not arrive is put back into the field */
  async deliver(kind, message) {
    // One message steers at a time, and another takes its place: it says what that one said, too.
    const waiting = kind === 'steering' && this.context.chatState()?.steeringMessage?.message;
    const { status, reason } = await this.context.dispatch(makeAction(kind, waiting ? joinMessages(waiting, message) : message)).done;
    if (status === 'confirmed') return undefined;
    // Another client's turn may have come before: the message then waits for its end.
    if (status === 'refused' && kind === 'turn' && this.isWorking) return this.queueInstead(message);
    this.edit(message);
    return this.say(status === 'refused' ? `Not sent: ${reason ?? 'the host refused it'}` : `This may not have been sent. ${reason ?? ''} Check the chat, then send it again or delete it.`);
  }

  /** @param {any} message */
  async queueInstead(message) {
    const problem = await describeProblem(this.context.dispatch(makeAction('queued', message)), 'Not sent');
    if (!problem) return showNote('The agent was at work already, so the message waits in the queue.');
    this.edit(message);
    return this.say(problem);
  }

  /** @param {string} text */
  say(text) {
    setText(this.problem, text);
    show(this.problem, text !== '');
  }

  async cancel() {
    const turn = this.context.chatState()?.activeTurn;
    if (!turn) return; // it ended meanwhile
    const began = Date.parse(turn.startedAt);
    const duration = Number.isFinite(began) ? Math.max(0, Date.now() - began) : 0;
    this.stop.disabled = true;
    await reportProblem(this.context.dispatch({ type: 'chat/turnCancelled', turnId: turn.id, duration }), 'Not stopped');
    this.stop.disabled = false;
  }
}

/** @param {'turn' | 'queued' | 'steering'} kind @param {any} message */
export function makeAction(kind, message) {
  if (kind === 'turn') return { type: 'chat/turnStarted', turnId: `turn-${randomId()}`, startedAt: new Date().toISOString(), message };
  return { type: 'chat/pendingMessageSet', kind, id: `${kind}-${randomId()}`, message };
}
