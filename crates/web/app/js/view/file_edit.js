// One changed file: its line with counts, and its diff when it is opened.
//
// Promises: nothing is asked of the host before the diff is looked at. Must not know: which screen it is in.

import { h, fill } from '../ui/dom.js';
import { drawCounts, drawDiff } from './diff.js';
import { shortPath } from './format.js';

/** @typedef {{ before?: { uri: string, content?: { uri: string } }, after?: { uri: string, content?: { uri: string } }, diff?: { added?: number, removed?: number } }} FileEdit */
/** @typedef {import('./chat_context.js').ChatContext} ChatContext */

/** Both sides stand beside each other where the page and the place are wide enough. */
const WIDE = matchMedia('(min-width: 1100px)');
const WIDE_PLACE = 720;

/** What became of a file, if its name alone does not say it. @param {FileEdit} edit */
export function describeEdit(edit) {
  if (!edit.before && edit.after) return 'new file';
  if (edit.before && !edit.after) return 'deleted';
  if (edit.before && edit.after && edit.before.uri !== edit.after.uri) return 'renamed';
  return '';
}

/** @param {FileEdit} edit */
export function uriOf(edit) {
  return edit.after?.uri ?? edit.before?.uri ?? '';
}

/**
 * @param {ChatContext} context
 * @param {FileEdit} edit
 * @param {{ isOpen?: boolean, onLine?: import('./diff.js').DiffOptions['onLine'] }} [options]
 */
export function drawFileEdit(context, edit, options = {}) {
  const path = shortPath(uriOf(edit), context.directories());
  const slash = path.lastIndexOf('/') + 1;
  const word = describeEdit(edit);
  const from = word === 'renamed' ? ` from ${shortPath(edit.before?.uri, context.directories())}` : '';
  const body = h('div.file-body');
  const details = h('details.file', { data: { path } },
    h('summary.file-head', null,
      h('span.file-path', { title: path }, h('span.file-folder', null, path.slice(0, slash)), h('span.file-name', null, path.slice(slash))),
      word && h('span.file-word', null, word + from),
      drawCounts(edit.diff?.added, edit.diff?.removed)),
    body);
  let isBuilt = false;
  const build = () => {
    if (!details.open || isBuilt) return;
    isBuilt = true;
    loadDiff(context, edit, path, body, options);
  };
  details.addEventListener('toggle', build);
  if (options.isOpen) {
    details.open = true;
    build();
  }
  return details;
}

/** @param {ChatContext} context @param {FileEdit} edit @param {string} path @param {HTMLElement} body @param {{ onLine?: import('./diff.js').DiffOptions['onLine'] }} options */
async function loadDiff(context, edit, path, body, options) {
  fill(body, h('p.diff-note', null, 'Comparing …'));
  const before = edit.before?.content?.uri ?? null;
  const after = edit.after?.content?.uri ?? null;
  const answer = await context.markup.render({ diff: { before, after, path } });
  if (!answer || (!answer.rows && !answer.binary)) {
    fill(body, h('p.diff-note', null, 'The diff cannot be shown now. '),
      h('button.button.small', { on: { click: () => loadDiff(context, edit, path, body, options) } }, 'Try again'));
    return;
  }
  const isWide = WIDE.matches && body.clientWidth >= WIDE_PLACE;
  const loadLines = after === null ? undefined : async () => {
    const text = await context.readText(after);
    return text === null ? null : text.split('\n');
  };
  fill(body, drawDiff(answer, { isWide, onLine: options.onLine, loadLines }));
}
