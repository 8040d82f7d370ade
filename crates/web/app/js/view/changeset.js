// What a session changed, as the host keeps it: files with diffs, and what can be done with them.
//
// Promises: an operation that asks for a confirmation runs only after one; a file that somebody else changed is not touched without
// asking again; a diff that is being read is not drawn anew by changes of other files, nor by a review. Must not know: how a diff is made.

import { fill, h, onFrame, setText, show } from '../ui/dom.js';
import { askText, askYesNo, openMenu, showNote } from '../ui/menu.js';
import { drawCounts } from './diff.js';
import { drawFileEdit, uriOf } from './file_edit.js';
import { plural, textOf } from './format.js';
import { messageOf } from './session_actions.js';

/** What the host says behind the reason why it did nothing, if insisting would help: a file is not as the agent left it. */
const FORCE = '; send `_meta.force`';

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
 * @param {{ onLine: (path: string, edit: any, line: any, row: HTMLElement) => void, drawNotes: (edit: any | null) => Node, onCounts: (counts: Node) => void }} hooks
 */
export function createChangeset(context, uri, hooks) {
  const { store } = context;
  /** @type {any} */
  let state;
  /** By file: what is drawn, of what, and whether it is reviewed. @type {Map<string, { key: string, element: any, box: any }>} */
  const drawn = new Map();
  const note = h('p.diff-note', { role: 'status' });
  const bar = h('div.row.changes-operations');
  const list = h('div.changes-list');
  const element = h('div', null, bar, note, list, hooks.drawNotes(null));
  const release = store.watch(uri, (/** @type {any} */ next) => {
    state = next;
    onFrame(draw);
  });

  function draw() {
    if (!state) {
      setText(note, store.errorOf(uri) ? `These changes cannot be shown: ${messageOf(store.errorOf(uri))}` : 'Looking at the files …');
      return;
    }
    const files = state.files.filter((/** @type {any} */ file) => file?.id !== undefined && file.edit);
    files.sort((/** @type {any} */ one, /** @type {any} */ other) => (one.id < other.id ? -1 : 1)); // they come in no order
    const isEmpty = files.length === 0 && state.status === 'ready';
    setText(note, state.status === 'error' ? `The files cannot be compared: ${state.error?.message ?? 'no reason was given'}` : isEmpty ? 'Nothing is changed.' : WORDS[state.status] ?? '');
    show(note, note.textContent !== '');
    drawOperations(files.length);
    drawFiles(files);
    const sum = (/** @type {'added' | 'removed'} */ field) => files.reduce((/** @type {number} */ total, /** @type {any} */ file) => total + (file.edit.diff?.[field] ?? 0), 0);
    hooks.onCounts(files.length > 0 && files.every((/** @type {any} */ file) => file.edit.diff) ? drawCounts(sum('added'), sum('removed')) : document.createTextNode(plural(files.length, 'file')));
  }

  /** Whether the catalogue says that these files can be reviewed. */
  const isReviewable = () => context.sessionState()?.changesets?.some((/** @type {any} */ one) => one.capabilities?.review && uri.startsWith(one.uriTemplate.split('{')[0]));

  /** @param {string} scope */
  const operations = (scope) => (state.operations ?? []).filter((/** @type {any} */ one) => one?.scopes?.includes(scope));

  /** @param {number} count */
  function drawOperations(count) {
    const whole = operations('changeset');
    const key = JSON.stringify([whole, count === 0]);
    if (bar.dataset.key === key) return; // as it is
    bar.dataset.key = key;
    const offered = count > 0 ? whole : []; // with nothing changed there is nothing to do
    fill(bar, offered.map((/** @type {any} */ operation) => h('button.button.small', {
      type: 'button', title: operation.description ?? '', class: operation.confirmation ? 'danger' : '',
      disabled: operation.status === 'disabled' || operation.status === 'running', on: { click: () => run(operation) },
    }, operation.status === 'running' ? `${operation.label} …` : operation.label)));
    const failed = whole.filter((/** @type {any} */ operation) => operation.status === 'error');
    for (const operation of failed) bar.append(h('p.problem', null, `${operation.label}: ${operation.error?.message ?? 'it failed'}`));
    show(bar, offered.length > 0 || failed.length > 0);
  }

  /** @param {any[]} files */
  function drawFiles(files) {
    const ids = new Set(files.map((file) => file.id));
    for (const [id, { element: old }] of drawn) {
      if (ids.has(id)) continue;
      old.remove();
      drawn.delete(id);
    }
    files.forEach((file, index) => {
      const { edit } = file;
      const key = JSON.stringify([edit, operations('resource').length]);
      let shown = drawn.get(file.id);
      if (shown?.key !== key) {
        const made = { key, ...drawFile(file, shown ? shown.element.open : files.length === 1) };
        shown?.element.replaceWith(made.element);
        drawn.set(file.id, made);
        shown = made;
      }
      if (shown.box) shown.box.checked = file.reviewed === true;
      if (list.children[index] !== shown.element) list.insertBefore(shown.element, list.children[index] ?? null);
    });
  }

  /** @param {any} file @param {boolean} isOpen */
  function drawFile(file, isOpen) {
    const { edit } = file;
    const element = drawFileEdit(context, edit, { isOpen, onLine: (line, row) => hooks.onLine(element.dataset.path ?? '', edit, line, row) });
    const box = isReviewable() && h('input', { type: 'checkbox', on: { change: () => review(file.id, element, box.checked) } });
    const button = operations('resource').length > 0 && h('button.button.small.quiet', {
      type: 'button', 'aria-label': `What to do with ${element.dataset.path}`,
      on: { click: (/** @type {Event} */ event) => {
        event.preventDefault();
        openMenu(button, operations('resource').map((/** @type {any} */ operation) => ({ label: operation.label, hint: operation.description, danger: Boolean(operation.confirmation), run: () => run(operation, edit) })));
      } },
    }, '⋯');
    // (A label in a summary opens nothing: the browser gives the click to its box.)
    element.querySelector('summary')?.append(box ? h('label.row.hint', null, box, 'Reviewed') : '', button || '');
    element.insertBefore(hooks.drawNotes(edit), element.querySelector('.file-body'));
    return { element, box };
  }

  /** Marks a file, or takes the mark away; one that is read is folded. @param {string} id @param {any} element @param {boolean} reviewed */
  async function review(id, element, reviewed) {
    element.open &&= !reviewed;
    const { status, reason } = await store.dispatch(uri, { type: 'changeset/filesReviewChanged', files: [id], reviewed }).done;
    if (status !== 'confirmed') showNote(`Not kept: ${reason ?? 'it is not known what became of it'}`, { isProblem: true });
  }

  /** @param {any} operation @param {any} [edit] the file it is for */
  async function run(operation, edit) {
    const question = textOf(operation.confirmation);
    if (question && !(await askYesNo({ title: operation.label, text: question, yes: operation.label, danger: true }))) return; // not meant
    /** @type {Record<string, unknown>} */
    const meta = {};
    if (operation.id === 'commit') {
      const message = await askText({ title: operation.label, label: 'Message of the commit', value: '', yes: operation.label });
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
      if (isForceable === undefined) showNote(`${operation.label}: ${why}`, { isProblem: true });
      else if (await askYesNo({ title: `${operation.label} anyway?`, text: String(why), yes: `${operation.label} anyway`, danger: true })) await invoke(operation, edit, { ...meta, force: true });
    }
  }

  onFrame(draw);
  return { element, release };
}
