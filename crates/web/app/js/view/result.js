// What a tool call came to, before the agent sees it: texts, edits, and names of what cannot be shown here.
// Promises: everything is shown or named. Must not know: who decides about it.

import { h } from '../ui/dom.js';
import { writeOut } from '../ui/visible.js';
import { drawFileEdit } from './file_edit.js';
import { textOf } from './format.js';

/** @param {any} call @param {any} chat */
export function drawResult(call, chat) {
  const parts = [];
  const message = writeOut(textOf(call.pastTenseMessage));
  if (message) parts.push(h('p', { dir: 'auto' }, message));
  if (call.error) parts.push(h('p.problem', { dir: 'auto' }, writeOut(textOf(call.error.message) || 'It failed.')));
  for (const item of Array.isArray(call.content) ? call.content : []) parts.push(drawItem(item, chat));
  return parts.length > 0 ? parts : h('p.muted', null, 'No output.');
}

/** @param {any} item @param {any} chat */
function drawItem(item, chat) {
  if (item?.type === 'text' && typeof item.text === 'string') return h('pre.result-text', { tabindex: '0', 'aria-label': 'Output' }, writeOut(item.text));
  if (item?.type === 'fileEdit') return drawFileEdit(chat, item, { isOpen: true });
  const name = textOf(item?.name) || textOf(item?.uri) || textOf(item?.resource?.uri) || textOf(item?.type) || 'content';
  const kind = textOf(item?.contentType) || textOf(item?.mimeType);
  return h('p', null, h('span.chip', null, writeOut(kind ? `${name}, ${kind}` : name)));
}
