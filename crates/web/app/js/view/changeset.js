// What a session changed, as the host keeps it: files with diffs, and what can be done with them.
//
// Promises: an operation that asks for a confirmation runs only after one; a file that somebody else changed is not touched without
// asking again; a review counts when the host has confirmed it; a diff that is being read is not drawn anew by changes of other files, nor
// by a review, and not at all while a note is written in it. Must not know: how a diff is made.

import { fill, h, iconButton, onFrame, setText, show } from '../ui/dom.js';
import { askText, askYesNo, openMenu, reportProblem, showNote } from '../ui/menu.js';
import { drawTotal } from './diff.js';
import { drawFileEdit, uriOf } from './file_edit.js';
import { textOf } from './format.js';
import { CLOSED } from './note_editor.js';
import { messageOf, reportFailure } from './session_actions.js';

/** What the host says behind the reason why it did nothing, if insisting would help: a file is not as the agent left it. */
const FORCE = '; send `_meta.force`';

const REVIEW = 'changeset/filesReviewChanged';

const WORDS = /** @type {Record<string, string>} */ ({ computing: 'Looking at the files …', recomputing: 'Looking again …' });

/**
 * The address of a changeset, of a turn if it takes one; null for a template with other names in it.
 * @param {string} template
 * @param {string} [turnId]
 */
export function expandTemplate(template, turnId) {
  const filled = turnId === undefined ? template : template.replaceAll('{turnId}', encodeURIComponent(turnId));
  return /[{}]/.test(filled) ? null : filled;
}

/**
 * @param {import('./chat_context.js').ChatContext} context
 * @param {string} uri
 * @param {{ annotations: any, isReviewable: boolean, onCounts: (counts: Node | string) => void }} given `isReviewable`: the catalogue says so
 */
export function createChangeset(context, uri, { annotations, isReviewable, onCounts }) {
  const { store } = context;
  /** @type {any} */
  let state;
  /** By file: what is drawn, of what, and its mark. @type {Map<string, { key: string, element: any, box: any, word: any }>} */
  const drawn = new Map();
  const note = h('p.diff-note', { role: 'status' });
  const reviewed = h('span.hint.grow');
  const operationRow = h('div.row');
  const bar = h('div.row.changes-bar', null, reviewed, operationRow);
  const list = h('div.changes-list', { on: { [CLOSED]: () => onFrame(draw) } });
  const element = h('div', null, bar, note, list);
  /** Notes on other files, once it is known which these are. @type {HTMLElement | undefined} */
  let others;
  const release = store.watch(uri, () => onFrame(draw));

  function draw() {
    if (!element.isConnected) return; // another one is shown
    state = store.confirmed(uri);
    if (!others && (state || store.errorOf(uri))) element.append((others = annotations.drawOthers()));
    if (!state) {
      setText(note, store.errorOf(uri) ? `These changes cannot be shown: ${messageOf(store.errorOf(uri))}` : 'Looking at the files …');
      return;
    }
    const files = state.files.filter((/** @type {any} */ file) => file?.id !== undefined && file.edit);
    files.sort((/** @type {any} */ one, /** @type {any} */ other) => (one.id < other.id ? -1 : 1)); // they come in no order
    const isEmpty = files.length === 0 && state.status === 'ready';
    setText(note, state.status === 'error' ? `The files cannot be compared: ${state.error?.message ?? 'no reason was given'}` : isEmpty ? 'Nothing is changed.' : WORDS[state.status] ?? '');
    show(note, note.textContent !== '');
    drawOperations(isEmpty);
    drawFiles(files);
    const read = files.filter((/** @type {any} */ file) => file.reviewed === true).length;
    setText(reviewed, isReviewable && files.length > 0 ? `${read} of ${files.length} reviewed` : '');
    show(bar, reviewed.textContent !== '' || operationRow.childElementCount > 0);
    onCounts(drawTotal(files.map((/** @type {any} */ file) => file.edit)));
  }

  /** @param {string} scope */
  const operations = (scope) => (state.operations ?? []).filter((/** @type {any} */ one) => one?.scopes?.includes(scope));

  /** Where nothing is changed there is nothing to discard, restore or merge: what asks first is not offered. @param {boolean} isEmpty */
  function drawOperations(isEmpty) {
    const whole = operations('changeset').filter((/** @type {any} */ one) => !isEmpty || !one.confirmation);
    const key = JSON.stringify(whole);
    if (bar.dataset.key === key) return; // as it is
    bar.dataset.key = key;
    fill(operationRow, whole.map((/** @type {any} */ operation) => h('button.button.small', {
      title: operation.description ?? '', class: operation.confirmation ? 'danger' : '',
      disabled: operation.status === 'disabled' || operation.status === 'running', on: { click: () => run(operation) },
    }, operation.status === 'running' ? `${operation.label} …` : operation.label)));
    bar.querySelectorAll('.problem').forEach((/** @type {Element} */ problem) => problem.remove());
    const failed = whole.filter((/** @type {any} */ operation) => operation.status === 'error');
    for (const operation of failed) bar.append(h('p.problem', null, `${operation.label}: ${operation.error?.message ?? 'it failed'}`));
  }

  /** @param {any[]} files */
  function drawFiles(files) {
    const ids = new Set(files.map((file) => file.id));
    // A file in which somebody writes a note stays as it is until that is done.
    const isWritten = (/** @type {any} */ element) => element.querySelector('textarea') !== null;
    for (const [id, { element: old }] of drawn) {
      if (ids.has(id) || isWritten(old)) continue;
      old.remove();
      drawn.delete(id);
    }
    files.forEach((file, index) => {
      const key = JSON.stringify(file.edit);
      let shown = drawn.get(file.id);
      if (!shown || (shown.key !== key && !isWritten(shown.element))) {
        const made = { key, ...drawFile(file, shown ? shown.element.open : files.length === 1) };
        shown?.element.replaceWith(made.element);
        drawn.set(file.id, made);
        shown = made;
      }
      drawReview(file, shown);
      if (list.children[index] !== shown.element) list.insertBefore(shown.element, list.children[index] ?? null);
    });
  }

  /** @param {any} file @param {boolean} isOpen */
  function drawFile({ id, edit }, isOpen) {
    const element = drawFileEdit(context, edit, { isOpen, onLine: (line, row) => annotations.open(edit, row, line) });
    const head = element.querySelector('summary');
    annotations.attach(element, edit);
    const word = h('span');
    const box = h('input', { type: 'checkbox', on: { change: () => review(id, box.checked) } });
    const more = iconButton('more', `Actions for ${element.dataset.path}`, (event) => {
      event.preventDefault();
      openMenu(more, [
        { label: 'Write a note on this file', run: () => { element.open = true; annotations.open(edit, head); } },
        ...operations('resource').map((/** @type {any} */ operation) => ({ label: operation.label, hint: operation.description, danger: Boolean(operation.confirmation), run: () => run(operation, edit) })),
      ]);
    });
    // (A label in a summary opens nothing: the browser gives the click to its box.)
    head.append(isReviewable ? h('label.row.hint', null, box, word) : '', more);
    return { element, box, word };
  }

  /** What the host confirmed of a review, and whether another is on its way. @param {any} file @param {{ box: any, word: any }} shown */
  function drawReview(file, { box, word }) {
    const isSending = store.isPending(uri, (/** @type {any} */ action) => action.type === REVIEW && action.files.includes(file.id));
    box.checked = file.reviewed === true;
    box.indeterminate = isSending;
    setText(word, isSending ? 'Sending …' : 'Reviewed');
  }

  /** Marks a file, or takes the mark away; one that is read is folded. @param {string} id @param {boolean} isRead */
  async function review(id, isRead) {
    const sent = store.dispatch(uri, { type: REVIEW, files: [id], reviewed: isRead });
    draw();
    const isTaken = await reportProblem(sent, 'Not saved');
    const element = drawn.get(id)?.element;
    if (isTaken && isRead && element) element.open = false;
    onFrame(draw);
  }

  /** @param {any} operation @param {any} [edit] the file it is for */
  async function run(operation, edit) {
    const question = textOf(operation.confirmation);
    if (question && !(await askYesNo({ title: operation.label, text: question, yes: operation.label, danger: true }))) return; // not meant
    /** @type {Record<string, unknown>} */
    const meta = {};
    if (operation.id === 'commit') {
      const message = await askText({ title: operation.label, label: 'Commit message', value: '', yes: operation.label, isLong: true });
      if (!message) return; // a commit without a message is none
      meta.message = message;
    }
    await invoke(operation, edit, meta);
  }

  /** @param {any} operation @param {any} edit @param {Record<string, unknown>} meta */
  async function invoke(operation, edit, meta) {
    const target = edit ? { target: { kind: 'resource', resource: uriOf(edit), ...(edit.after ? {} : { side: 'before' }) } } : {};
    try {
      const result = await store.request('invokeChangesetOperation', { channel: uri, operationId: operation.id, ...target, ...(Object.keys(meta).length > 0 ? { _meta: meta } : {}) });
      showNote(textOf(result?.message) || `${operation.label}: done.`);
    } catch (error) {
      const [why, isForceable] = messageOf(error).split(FORCE);
      if (isForceable === undefined) reportFailure(error, operation.label);
      else if (await askYesNo({ title: `${operation.label} anyway?`, text: String(why), yes: `${operation.label} anyway`, danger: true })) await invoke(operation, edit, { ...meta, force: true });
    }
  }

  onFrame(draw);
  return { element, release };
}
