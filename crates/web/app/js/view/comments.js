// Comments on lines of diffs, collected and sent as one message.
//
// Promises: a comment names its file and line and quotes the line; nothing is sent before somebody says so; what was written stays while
// the page is open, also when another file or screen is looked at. Must not know: how a diff is drawn.

import { fill, h, setText, show } from '../ui/dom.js';
import { makeId } from '../ui/id.js';
import { showNote } from '../ui/menu.js';
import { plural } from './format.js';
import { makeAction } from './composer.js';

/** @typedef {{ id: string, path: string, line: import('./diff.js').DiffLine, text: string }} Comment */

/** By chat: what was written and not sent. @type {Map<string, Comment[]>} */
const kept = new Map();

/** A line as it can be quoted in a sentence. @param {string} text */
function quote(text) {
  const line = text.trim().slice(0, 160);
  const fence = line.includes('`') ? '``' : '`';
  return line ? `${fence}${fence === '``' ? ` ${line} ` : line}${fence}` : '';
}

/** The message that comments make. @param {Comment[]} comments */
export function formatComments(comments) {
  const files = new Map();
  for (const comment of comments) files.set(comment.path, [...(files.get(comment.path) ?? []), comment]);
  const parts = [...files].map(([path, list]) => {
    const lines = list.sort((/** @type {Comment} */ a, /** @type {Comment} */ b) => a.line.line - b.line.line).map((/** @type {Comment} */ { line, text }) => {
      const side = line.side === 'old' ? ' (removed)' : '';
      return `- line ${line.line}${side} ${quote(line.text)}\n  ${text.trim().replaceAll('\n', '\n  ')}`;
    });
    return `${path}\n${lines.join('\n')}`;
  });
  return `Comments on the changes:\n\n${parts.join('\n\n')}`;
}

/** @param {import('./chat_context.js').ChatContext} context @param {{ onSent: () => void }} hooks */
export function createComments(context, { onSent }) {
  const count = h('span.grow');
  const send = h('button.button.primary.small', { type: 'button', on: { click: () => sendAll() } }, 'Send as one message');
  const bar = h('div.comments-bar', { hidden: true, role: 'status' }, count, send);
  const list = () => kept.get(context.chat) ?? [];

  function draw() {
    const comments = list();
    setText(count, plural(comments.length, 'comment'));
    show(bar, comments.length > 0);
  }

  async function sendAll() {
    send.disabled = true;
    const message = { text: formatComments(list()), origin: { kind: 'user' } };
    const kind = context.chatState()?.activeTurn ? 'queued' : 'turn';
    const { status, reason } = await context.dispatch(makeAction(kind, message)).done;
    send.disabled = false;
    if (status !== 'confirmed') return showNote(`Not sent: ${reason ?? 'it is not known what became of it'}. Your comments are still here.`, { isProblem: true });
    kept.delete(context.chat);
    draw();
    showNote(kind === 'queued' ? 'Queued: the agent reads it when it is done.' : 'Sent.');
    return onSent();
  }

  /**
   * Opens a field for a comment below a row.
   * @param {string} path
   * @param {import('./diff.js').DiffLine} line
   * @param {HTMLElement} row
   * @param {(text: string) => Promise<boolean>} [keep] keeps it on the host instead
   */
  function open(path, line, row, keep) {
    const key = `${line.side}${line.line}`;
    const next = row.nextElementSibling;
    if (next instanceof HTMLElement && next.dataset.comment === key) return void next.querySelector('textarea')?.focus();
    row.after(drawEditor(path, line, undefined, keep));
    return void (/** @type {HTMLElement} */ (row.nextElementSibling)).querySelector('textarea')?.focus();
  }

  /** @param {string} path @param {import('./diff.js').DiffLine} line @param {Comment | undefined} before @param {(text: string) => Promise<boolean>} [keep] */
  function drawEditor(path, line, before, keep) {
    const field = h('textarea.field', { 'aria-label': `Comment on line ${line.line}`, placeholder: 'What should be different here?', dir: 'auto', value: before?.text ?? '' });
    const place = h('div.comment', { data: { comment: `${line.side}${line.line}` } });
    const save = () => {
      const text = field.value.trim();
      if (!text) return void field.focus();
      const comment = before ?? { id: makeId(), path, line, text };
      comment.text = text;
      kept.set(context.chat, [...list().filter((one) => one.id !== comment.id), comment]);
      draw();
      return place.replaceWith(drawComment(comment));
    };
    field.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
      if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.isComposing) save();
      else if (event.key === 'Escape') place.replaceWith(...(before ? [drawComment(before)] : []));
      else return; // it is text
      event.preventDefault();
      event.stopPropagation();
    });
    fill(place, field, h('div.comment-buttons', null,
      h('button.button.small', { type: 'button', on: { click: () => place.replaceWith(...(before ? [drawComment(before)] : [])) } }, 'Cancel'),
      keep && h('button.button.small', { type: 'button', title: 'Everyone who looks at this session sees it', on: { click: async () => { if (field.value.trim() && (await keep(field.value.trim()))) place.remove(); } } }, 'Keep as a note'),
      h('button.button.primary.small', { type: 'button', on: { click: save } }, 'Add comment')));
    return place;
  }

  /** @param {Comment} comment */
  function drawComment(comment) {
    const place = h('div.comment', { data: { comment: `${comment.line.side}${comment.line.line}` } }, h('p.comment-text', { dir: 'auto' }, comment.text), h('div.comment-buttons', null,
      h('button.button.small.quiet', { type: 'button', on: { click: () => place.replaceWith(drawEditor(comment.path, comment.line, comment)) } }, 'Edit'),
      h('button.button.small.quiet', { type: 'button', on: { click: () => { kept.set(context.chat, list().filter((one) => one.id !== comment.id)); place.remove(); draw(); } } }, 'Remove')));
    return place;
  }

  draw();
  return { bar, open };
}
