// Notes on lines of files, kept on the host: everyone who looks at the session sees them, and a message can refer to them.
//
// Promises: a note is shown as kept only when the host has it; one on a file that is not listed is shown, too. Must not know: how a diff is
// drawn.

import { fill, h, onFrame } from '../ui/dom.js';
import { makeId } from '../ui/id.js';
import { askText, showNote } from '../ui/menu.js';
import { shortPath, textOf } from './format.js';
import { uriOf } from './file_edit.js';

/** Where notes stand: those of a file, or without `resources` those of files that stand nowhere else. @typedef {{ element: HTMLElement, edit: any, resources: string[] }} Place */

/** @param {import('./chat_context.js').ChatContext} context */
export function createAnnotations(context) {
  const { store, session } = context;
  const channel = `${session}/annotations`;
  /** @type {any[]} */
  let all = [];
  /** @type {Set<Place>} */
  const places = new Set();
  const release = store.watch(channel, (/** @type {any} */ state) => {
    all = state?.annotations ?? [];
    onFrame(draw);
  });

  function draw() {
    places.forEach((place) => place.element.isConnected || places.delete(place));
    places.forEach(drawPlace);
  }

  /** @param {Place} place */
  function drawPlace({ element, edit, resources }) {
    const others = [...places].flatMap((place) => place.resources);
    const own = all.filter(({ resource }) => (edit ? resources.includes(resource) : !others.includes(resource)));
    own.sort((a, b) => (a.range?.start?.line ?? 0) - (b.range?.start?.line ?? 0));
    fill(element, own.map((annotation) => drawAnnotation(annotation, edit ? '' : `${shortPath(annotation.resource, context.directories())}: `)));
  }

  /** @param {string} label @param {() => void} click */
  const button = (label, click) => h('button.button.small.quiet', { type: 'button', on: { click } }, label);

  /** @param {any} annotation @param {string} file */
  function drawAnnotation(annotation, file) {
    const line = annotation.range?.start?.line;
    const { resolved, entries } = annotation;
    const act = (/** @type {string} */ type, /** @type {any} */ fields) => void dispatch({ type: `annotations/${type}`, annotationId: annotation.id, ...fields });
    return h('div.comment', { data: { resolved: resolved ? 'yes' : 'no' } },
      h('p.hint', null, `${file}${line === undefined ? 'Note' : `Note on line ${line + 1}`}${resolved ? ', resolved' : ''}`),
      entries.map((/** @type {any} */ entry) => h('div.row', null, h('p.comment-text.grow', { dir: 'auto' }, textOf(entry.text)),
        entries.length > 1 && button('Remove', () => act('entryRemoved', { entryId: entry.id })))), // the last one goes with its thread
      h('div.comment-buttons', null,
        button('Reply', async () => {
          const text = await askText({ title: 'Reply', label: 'Text', value: '', yes: 'Keep' });
          if (text) act('entrySet', { entry: { id: makeId(), text } });
        }),
        button(resolved ? 'Open again' : 'Resolve', () => act('updated', { resolved: !resolved })),
        button('Delete', () => act('removed', {}))));
  }

  /** @param {any} action */
  async function dispatch(action) {
    const { status, reason } = await store.dispatch(channel, action).done;
    if (status === 'confirmed') return true;
    showNote(`Not kept: ${reason ?? 'it is not known what became of it'}`, { isProblem: true });
    return false;
  }

  return {
    release,
    /** Where the notes of a file stand, or those of all files that stand nowhere else. @param {any | null} edit */
    drawNotes(edit) {
      const place = { element: h('div.file-notes'), edit, resources: [edit?.before?.uri, edit?.after?.uri].filter(Boolean) };
      places.add(place);
      onFrame(draw);
      return place.element;
    },
    /** Keeps a note on a line. @param {any} edit @param {{ line: number, text: string }} line @param {string} text */
    add(edit, line, text) {
      const at = line.line - 1;
      const range = { start: { line: at, character: 0 }, end: { line: at, character: line.text.length } };
      return dispatch({
        type: 'annotations/set',
        annotation: { id: makeId(), origin: { session, chat: context.chat }, resource: uriOf(edit), range, resolved: false, entries: [{ id: makeId(), text }] },
      });
    },
  };
}
