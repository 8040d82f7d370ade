// Notes on files and their lines, kept on the host: everyone who looks at the session sees them, and they go to the agent as one message.
//
// Promises: only what the host confirmed is shown; what is on its way says so, and what was refused is left as it was, with the host's
// words. A note on a file that is not listed is shown, too. Must not know: how a diff is drawn.

import { fill, h, iconButton, keyedList, onFrame, setText, show } from '../ui/dom.js';
import { randomId } from '../state/device.js';
import { askYesNo, describeProblem, reportProblem, showNote } from '../ui/menu.js';
import { makeAction } from './composer.js';
import { uriOf } from './file_edit.js';
import { plural, shortPath, textOf } from './format.js';
import { openNoteEditor } from './note_editor.js';
import { lastModel } from './picker.js';
import { messageOf } from './session_actions.js';

/** Where notes stand: those of a file, or without one those of files that stand nowhere else. @typedef {{ element: HTMLElement, resources: string[] | null, count: HTMLElement, list: (notes: any[]) => void }} Place */

/** @param {any} note */
const lineOf = (note) => note.range?.start?.line;

/** @param {import('./chat_context.js').ChatContext} context @param {{ onSent: () => void }} hooks */
export function createAnnotations(context, { onSent }) {
  const { store, session } = context;
  const channel = `${session}/annotations`;
  /** @type {Set<Place>} */
  const places = new Set();
  /** The ids of those that messages of this chat name. @type {Set<string>} */
  let sent = new Set();
  const count = h('span.grow');
  const send = h('button.button.primary.small', { on: { click: () => sendAll() } });
  const bar = h('div.comments-bar', { hidden: true, role: 'status' }, count, send);
  const release = store.watch(channel, () => onFrame(draw));

  /** @returns {any[]} */
  const all = () => store.confirmed(channel)?.annotations ?? [];
  const listOpen = () => all().filter(({ resolved }) => !resolved);
  const listFresh = () => listOpen().filter(({ id }) => !sent.has(id));

  /** As far as the turns of the chat are here. */
  function findSent() {
    const { turns = [], activeTurn, queuedMessages = [], steeringMessage } = store.confirmed(context.chat) ?? {};
    const attached = [...turns, activeTurn, ...queuedMessages, steeringMessage].flatMap((one) => one?.message?.attachments ?? []);
    sent = new Set(attached.flatMap((one) => (one?.resource === channel ? one.annotationIds ?? [] : [])));
  }

  function draw() {
    findSent();
    places.forEach((place) => place.element.isConnected || places.delete(place));
    const elsewhere = new Set([...places].flatMap(({ resources }) => resources ?? []));
    for (const { resources, count: word, list } of places) {
      const notes = all().filter(({ resource }) => (resources ? resources.includes(resource) : !elsewhere.has(resource)));
      list(notes.sort((a, b) => (lineOf(a) ?? -1) - (lineOf(b) ?? -1)));
      setText(word, notes.length > 0 ? plural(notes.length, 'note') : '');
    }
    drawBar();
  }

  function drawBar() {
    const [open, fresh] = [listOpen().length, listFresh().length];
    const error = store.errorOf(channel);
    setText(count, error ? `Notes cannot be shown: ${messageOf(error)}` : fresh > 0 ? plural(fresh, 'open note') : `${plural(open, 'open note')}, sent`);
    setText(send, fresh > 0 ? 'Send as one message' : 'Send again');
    show(send, !error);
    show(bar, open > 0 || error !== undefined);
  }

  async function sendAll() {
    const fresh = listFresh();
    const annotationIds = (fresh.length > 0 ? fresh : listOpen()).map(({ id }) => id);
    const chat = context.chatState();
    const kind = chat?.activeTurn ? 'queued' : 'turn';
    const attachments = [{ type: 'annotations', label: plural(annotationIds.length, 'note'), resource: channel, annotationIds }];
    const model = lastModel(chat);
    const message = { text: 'Please look at my notes.', origin: { kind: 'user' }, ...(model ? { model } : {}), attachments };
    send.disabled = true;
    const isTaken = await reportProblem(context.dispatch(makeAction(kind, message)), 'Not sent');
    send.disabled = false;
    onFrame(draw);
    if (!isTaken) return; // it was said, and the notes are still there
    showNote(kind === 'queued' ? 'Queued: the agent reads it when it is done.' : 'Sent.');
    onSent();
  }

  /** @param {any} action @returns {Promise<string>} why the host does not have it, or nothing */
  async function keep(action) {
    const sent = store.dispatch(channel, action);
    onFrame(draw);
    const why = await describeProblem(sent, 'Not saved');
    onFrame(draw);
    return why;
  }

  /** @param {any} action */
  const act = (action) => void keep(action).catch(messageOf).then((why) => why && showNote(why, { isProblem: true }));

  /** @param {boolean} isNamed whether it says which file it is about */
  function createNote(isNamed) {
    const content = h('div');
    const place = h('div');
    const element = h('div.comment', null, content, place);
    let drawn = '';
    element.update = (/** @type {any} */ note) => {
      const { id: annotationId, resolved, entries } = note;
      const isSending = store.isPending(channel, (/** @type {any} */ action) => action.annotationId === annotationId);
      const words = [resolved && 'resolved', sent.has(annotationId) && 'sent', isSending && 'sending …'].filter(Boolean);
      const key = JSON.stringify([note, words]);
      if (key === drawn) return; // as it is
      drawn = key;
      const line = lineOf(note);
      const about = [`${isNamed ? `${shortPath(note.resource, context.directories())}: ` : ''}Note on ${line === undefined ? 'the file' : `line ${line + 1}`}`, ...words].join(', ');
      const edit = (/** @type {string} */ label, /** @type {any} */ entry) => openNoteEditor((editor) => fill(place, editor), {
        label, value: textOf(entry.text), save: (text) => keep({ type: 'annotations/entrySet', annotationId, entry: { ...entry, text } }),
      });
      const button = (/** @type {string} */ label, /** @type {() => void} */ click) => h('button.button.small.quiet', { on: { click } }, label);
      fill(content, h('p.hint', null, about),
        entries.map((/** @type {any} */ entry) => h('div.row.comment-entry', null, h('p.comment-text.grow', { dir: 'auto' }, textOf(entry.text)),
          iconButton('edit', 'Edit', () => edit('Note', entry)), iconButton('close', 'Remove', () => remove(note, entry)))),
        h('div.comment-buttons', null, button('Reply', () => edit('Reply', { id: randomId() })),
          button(resolved ? 'Reopen' : 'Resolve', () => act({ type: 'annotations/updated', annotationId, resolved: !resolved }))));
    };
    return element;
  }

  /** The last entry goes with its note. @param {any} note @param {any} entry */
  async function remove({ id: annotationId, entries }, entry) {
    const isSure = await askYesNo({ title: 'Remove this note?', text: textOf(entry.text).slice(0, 200), yes: 'Remove', danger: true });
    if (isSure) act({ annotationId, ...(entries.length > 1 ? { type: 'annotations/entryRemoved', entryId: entry.id } : { type: 'annotations/removed' }) });
  }

  /** Where notes stand: those of a file, or those of all files that stand nowhere else. @param {string[] | null} resources */
  function addPlace(resources) {
    const element = h('div.file-notes');
    const list = keyedList(element, { key: (/** @type {any} */ note) => note.id, create: () => createNote(resources === null), update: (note, given) => note.update(given) });
    const place = { element, resources, count: h('span.file-word'), list };
    places.add(place);
    onFrame(draw);
    return place;
  }

  return {
    bar,
    release,
    redraw: () => onFrame(draw),
    drawOthers: () => addPlace(null).element,
    /** Puts the notes on a file below its name, and their number into it. @param {HTMLElement} file @param {any} edit */
    attach(file, edit) {
      const place = addPlace([edit.before?.uri, edit.after?.uri].filter(Boolean));
      const head = file.querySelector('summary');
      head?.append(place.count);
      head?.after(place.element);
    },
    /** Opens a field for a note on a line, or on the whole file. @param {any} edit @param {HTMLElement} above what it stands below @param {import('./diff.js').DiffLine} [line] */
    open(edit, above, line) {
      const next = above.nextElementSibling;
      if (next?.matches('form.comment')) return void next.querySelector('textarea')?.focus();
      const [id, entryId] = [randomId(), randomId()]; // the same if it has to be sent again
      // A line that is gone has no place in the file: the note says which one it was.
      const isGone = line?.side === 'old';
      const range = line && !isGone ? { range: { start: { line: line.line - 1, character: 0 }, end: { line: line.line - 1, character: line.text.length } } } : {};
      const before = isGone ? `On removed line ${line?.line}, "${line?.text.trim().slice(0, 160)}":\n` : '';
      return openNoteEditor((editor) => above.after(editor), {
        label: line ? `Note on line ${line.line}` : 'Note on the file',
        save: (text) => keep({
          type: 'annotations/set',
          annotation: { id, origin: { session, chat: context.chat }, resource: uriOf(edit), ...range, resolved: false, entries: [{ id: entryId, text: before + text }] },
        }),
      });
    },
  };
}
