// Notes on lines of files, kept on the host: everyone who looks at the session sees them, and a message can refer to them.
//
// Promises: a note is shown as kept only when the host has it. Must not know: how a diff is drawn.

import { fill, h, onFrame } from '../ui/dom.js';
import { makeId } from '../ui/id.js';
import { showNote } from '../ui/menu.js';
import { plural, textOf } from './format.js';
import { uriOf } from './file_edit.js';

/** @param {import('./chat_context.js').ChatContext} context */
export function createAnnotations(context) {
  const { store, session } = context;
  const channel = `${session}/annotations`;
  /** @type {any[]} */
  let all = [];
  /** Places of the notes of files that are on the page. @type {Set<{ element: HTMLElement, resources: string[] }>} */
  const places = new Set();
  const release = store.watch(channel, (/** @type {any} */ state) => {
    all = state?.annotations ?? [];
    onFrame(draw);
  });

  function draw() {
    for (const place of places) {
      if (place.element.isConnected) drawPlace(place);
      else places.delete(place);
    }
  }

  /** @param {{ element: HTMLElement, resources: string[] }} place */
  function drawPlace({ element, resources }) {
    const own = all.filter((annotation) => resources.includes(annotation.resource));
    own.sort((a, b) => (a.range?.start?.line ?? 0) - (b.range?.start?.line ?? 0));
    fill(element, own.map(drawAnnotation));
  }

  /** @param {any} annotation */
  function drawAnnotation(annotation) {
    const line = annotation.range?.start?.line;
    const act = (/** @type {string} */ label, /** @type {any} */ action) => h('button.button.small.quiet', { type: 'button', on: { click: () => dispatch(action) } }, label);
    return h('div.comment', { data: { resolved: annotation.resolved ? 'yes' : 'no' } },
      h('p.hint', null, `${line === undefined ? 'Note' : `Note on line ${line + 1}`}${annotation.resolved ? ', resolved' : ''}`),
      annotation.entries.map((/** @type {any} */ entry) => h('p.comment-text', { dir: 'auto' }, textOf(entry.text))),
      h('div.comment-buttons', null,
        act(annotation.resolved ? 'Open again' : 'Resolve', { type: 'annotations/updated', annotationId: annotation.id, resolved: !annotation.resolved }),
        act('Delete', { type: 'annotations/removed', annotationId: annotation.id })));
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
    /** Where the notes of a file stand. @param {any} edit */
    drawNotes(edit) {
      const resources = [edit.before?.uri, edit.after?.uri].filter(Boolean);
      const place = { element: h('div.file-notes', { 'aria-label': plural(2, 'note') }), resources };
      places.add(place);
      drawPlace(place);
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
