// Menus and small dialogs: a menu at a button, a question with yes and no, a question for a text.
// Promises: the focus goes back to where it was; nothing destructive has the focus first. Must not know: what is decided.

import { h } from './dom.js';

/** @typedef {{label: string, hint?: string, danger?: boolean, run: () => void} | 'line'} MenuEntry */

/**
 * Opens a menu at a button.
 * @param {HTMLElement} anchor
 * @param {MenuEntry[]} entries
 * @returns {() => void} takes it away
 */
export function openMenu(anchor, entries) {
  const menu = h('div.menu', { role: 'menu', popover: 'auto' });
  for (const entry of entries) {
    if (entry === 'line') {
      menu.append(h('div.menu-line', { role: 'separator' }));
      continue;
    }
    menu.append(h('button.menu-entry', {
      role: 'menuitem', class: entry.danger ? 'danger' : '',
      on: { click: () => { menu.hidePopover(); entry.run(); } },
    }, h('span', { dir: 'auto' }, entry.label), entry.hint && h('small.muted', { dir: 'auto' }, entry.hint)));
  }
  menu.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => moveFocus(menu, event));
  menu.addEventListener('toggle', (/** @type {any} */ event) => {
    if (event.newState !== 'closed') return; // it opened
    const hadFocus = menu.contains(document.activeElement) || document.activeElement === document.body;
    menu.remove();
    anchor.setAttribute('aria-expanded', 'false');
    if (hadFocus && anchor.isConnected) anchor.focus();
  });
  // A modal dialog makes everything outside of it inert, menus too.
  (anchor.closest('dialog') ?? document.body).append(menu);
  menu.showPopover();
  anchor.setAttribute('aria-haspopup', 'menu');
  anchor.setAttribute('aria-expanded', 'true');
  placeAt(menu, anchor);
  menu.querySelector('button')?.focus();
  return () => menu.remove();
}

/** @param {HTMLElement} menu @param {HTMLElement} anchor */
function placeAt(menu, anchor) {
  const at = anchor.getBoundingClientRect();
  const own = menu.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.right - own.width, innerWidth - own.width - 8));
  const below = at.bottom + 4;
  const top = below + own.height <= innerHeight - 8 ? below : Math.max(8, at.top - own.height - 4);
  menu.style.left = `${left}px`;
  menu.style.top = `${top}px`;
}

/** @param {HTMLElement} menu @param {KeyboardEvent} event */
function moveFocus(menu, event) {
  const buttons = [...menu.querySelectorAll('button')];
  const at = buttons.indexOf(/** @type {HTMLButtonElement} */ (document.activeElement));
  const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
  if (next === undefined) return; // no key of a menu
  event.preventDefault();
  buttons.at(next % buttons.length)?.focus();
}

/**
 * Asks before something that cannot be taken back.
 * @param {{title: string, text: string, yes: string, danger?: boolean}} question
 * @returns {Promise<boolean>}
 */
export function askYesNo({ title, text, yes, danger }) {
  const { dialog, answer } = makeDialog(title);
  dialog.append(
    h('p.muted', { dir: 'auto' }, text),
    h('div.dialog-buttons', null,
      h('button.button', { autofocus: true, on: { click: () => dialog.close() } }, 'Cancel'),
      h('button.button', { class: danger ? 'danger' : 'primary', on: { click: () => dialog.close('yes') } }, yes)));
  return answer.then((value) => value === 'yes');
}

/**
 * Asks for a line of text, or for several.
 * @param {{title: string, label: string, value: string, yes: string, isLong?: boolean}} question
 * @returns {Promise<string | null>} null if it was left
 */
export function askText({ title, label, value, yes, isLong }) {
  const { dialog, answer } = makeDialog(title);
  const field = h(isLong ? 'textarea.field' : 'input.field', { value, id: 'dialog-text', dir: 'auto', autofocus: true });
  const form = h('form.stack', {
    on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); if (field.value.trim() !== '') dialog.close('yes'); } },
  },
    h('label.label', { for: 'dialog-text' }, label), field,
    h('div.dialog-buttons', null,
      h('button.button', { on: { click: () => dialog.close() } }, 'Cancel'),
      h('button.button.primary', { type: 'submit' }, yes)));
  dialog.append(form);
  field.select();
  return answer.then((value) => (value === 'yes' ? field.value.trim() : null));
}

/** @param {string} title @returns {{dialog: any, answer: Promise<string>}} */
function makeDialog(title) {
  const dialog = h('dialog.dialog', { 'aria-labelledby': 'dialog-title' }, h('h2', { id: 'dialog-title', dir: 'auto' }, title));
  document.body.append(dialog);
  dialog.addEventListener('click', (/** @type {MouseEvent} */ event) => { if (event.target === dialog) dialog.close(); });
  const answer = new Promise((resolve) => dialog.addEventListener('close', () => {
    dialog.remove();
    resolve(dialog.returnValue);
  }));
  // The content comes in the same task; then the focus can go to it.
  queueMicrotask(() => dialog.showModal());
  return { dialog, answer: /** @type {Promise<string>} */ (answer) };
}

/** A short note at the edge of the screen that goes away by itself. @param {string} text @param {{isProblem?: boolean}} [how] */
export function showNote(text, how = {}) {
  const note = h('div.note', { role: how.isProblem ? 'alert' : 'status', class: how.isProblem ? 'problem-note' : '' }, text);
  document.body.append(note);
  setTimeout(() => note.remove(), how.isProblem ? 8_000 : 3_000);
}

/**
 * Waits until it is known what became of an action, or that it is not.
 * @param {{done: Promise<{status: string, reason?: string}>}} sent
 * @param {string} problem such as "Not stopped", for an action that the host refused
 * @returns {Promise<string>} what is to be said of it; nothing if it was taken
 */
export async function describeProblem(sent, problem) {
  const { status, reason } = await sent.done;
  if (status === 'refused') return `${problem}: ${reason ?? 'no reason was given'}`;
  return status === 'unknown' ? `It may not have arrived. ${reason ?? ''} Check before you try again.` : '';
}

/** The same, and says it. @param {Parameters<typeof describeProblem>[0]} sent @param {string} problem @returns {Promise<boolean>} whether it was taken */
export async function reportProblem(sent, problem) {
  const text = await describeProblem(sent, problem);
  if (text) showNote(text, { isProblem: true });
  return text === '';
}
