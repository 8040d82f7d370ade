// A field for a note, in the place that it is about: below a line or the name of a file, or in a note that is answered or changed.
//
// Promises: what was typed stays until the host has it, or until somebody leaves it; what the host says against it stands beside it.
// Must not know: what a note is.

import { h, setText, show } from '../ui/dom.js';
import { showNote } from '../ui/menu.js';
import { messageOf } from './session_actions.js';

/** What an editor tells those around it when it goes. */
export const CLOSED = 'noteclosed';

/**
 * @param {(editor: HTMLElement) => void} insert
 * @param {{ label: string, value?: string, save: (text: string) => Promise<string> }} given `save` says why the host does not have it, or nothing
 */
export function openNoteEditor(insert, { label, value = '', save }) {
  const field = h('textarea.field', { 'aria-label': label, placeholder: label, dir: 'auto', value });
  const problem = h('p.problem', { role: 'alert', hidden: true });
  const keep = h('button.button.primary.small', { type: 'submit' }, 'Keep');
  const editor = h('form.comment', { on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); submit(); } } }, field, problem,
    h('div.comment-buttons', null, h('button.button.small', { on: { click: close } }, 'Cancel'), keep));

  function close() {
    editor.dispatchEvent(new Event(CLOSED, { bubbles: true }));
    editor.remove();
  }

  /** @param {boolean} isSending @param {string} why */
  function say(isSending, why) {
    field.readOnly = keep.disabled = isSending;
    setText(keep, isSending ? 'Sending …' : 'Keep');
    setText(problem, why);
    show(problem, why !== '');
  }

  async function submit() {
    const text = field.value.trim();
    if (!text || keep.disabled) return void field.focus(); // nothing to keep, or it is on its way
    say(true, '');
    const why = await save(text).catch(messageOf);
    if (!why) return close();
    say(false, why);
    if (!editor.isConnected) showNote(why, { isProblem: true });
    return undefined;
  }

  field.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.isComposing) submit();
    else if (event.key !== 'Escape') return; // it is text
    else if (field.value.trim() === value.trim()) close(); // what was typed is left by a button
    event.preventDefault();
    event.stopPropagation();
  });
  insert(editor);
  field.focus();
}
