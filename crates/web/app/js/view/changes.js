// The files that a chat or one of its turns changed, with counts and diffs, and comments on their lines.
//
// Promises: what is shown comes from the results of tool calls; several edits of a file are one diff, from what it was before the first to
// what it is after the last. Must not know: how a diff is made.

import { fill, h, iconButton, show } from '../ui/dom.js';
import { onFrame } from '../ui/frame.js';
import { createChatContext } from './chat_context.js';
import { createComments } from './comments.js';
import { drawCounts } from './diff.js';
import { drawFileEdit, uriOf } from './file_edit.js';
import { formatTime, plural } from './format.js';

/** @typedef {import('./file_edit.js').FileEdit} FileEdit */

/** The choice of all turns. */
const ALL = 'all';

/** The edits of some turns, one for each file. @param {any[]} turns @returns {(FileEdit & { steps: number })[]} */
export function collectEdits(turns) {
  /** @type {Map<string, FileEdit & { steps: number }>} */
  const files = new Map();
  for (const turn of turns) {
    for (const part of turn.responseParts ?? []) {
      if (part.kind !== 'toolCall') continue;
      for (const block of part.toolCall?.content ?? []) if (block?.type === 'fileEdit') addEdit(files, block);
    }
  }
  // What came back to what it was is no change.
  return [...files.values()].filter((edit) => edit.steps === 1 || edit.before?.content?.uri !== edit.after?.content?.uri || edit.before?.uri !== edit.after?.uri);
}

/** @param {Map<string, FileEdit & { steps: number }>} files @param {FileEdit} edit */
function addEdit(files, edit) {
  const from = edit.before?.uri ?? edit.after?.uri ?? '';
  const earlier = files.get(from);
  files.delete(from);
  if (!earlier) return void files.set(uriOf(edit), { before: edit.before, after: edit.after, diff: edit.diff, steps: 1 });
  // The counts of several edits do not add up to those of the whole; the diff itself has them.
  const whole = { before: earlier.before, after: edit.after, steps: earlier.steps + 1 };
  if (whole.before || whole.after) files.set(uriOf(whole), whole);
  return undefined;
}

/** @type {import('./slot.js').Mount} */
export function mountChanges(container, context) {
  const { store, navigate, goBack } = /** @type {any} */ (context);
  let { route } = context;
  /** @type {any} */
  let session;
  /** @type {any} */
  let chat;
  /** @type {string | undefined} */
  let chatUri;
  let drawn = '';
  let releaseChat = () => {};
  /** @type {any} */
  let comments;
  /** @type {any} */
  let chatContext;
  const choice = h('select.field', { 'aria-label': 'Which changes', on: { change: () => navigate({ ...route, turn: choice.value === ALL ? undefined : choice.value }, { replace: true }) } });
  const counts = h('span.changes-counts');
  const list = h('div.changes-list');
  const barPlace = h('div');
  const isPanel = container.id !== 'main';
  const back = iconButton('back', 'Back to the chat', () => goBack({ screen: 'session', session: route.session, chat: route.chat }));
  const element = h('div.screen', null, h('header.changes-head', null, !isPanel && back, !isPanel && h('h1.head-title', null, 'Changes'), choice, h('span.grow'), counts), h('div.scroller', null, list), barPlace);
  container.append(element);

  const releaseSession = store.watch(route.session, (/** @type {any} */ state) => {
    session = state;
    openChat();
  });

  function openChat() {
    const uri = route.chat ?? session?.defaultChat ?? session?.chats?.[0]?.resource;
    if (!uri || uri === chatUri) return; // not known yet, or open already
    releaseChat();
    chatUri = uri;
    drawn = '';
    chatContext = createChatContext({ store, session: String(route.session), chat: uri, navigate, chatState: () => chat, sessionState: () => session });
    comments = createComments(chatContext, { onSent: () => navigate({ screen: 'session', session: route.session, chat: uri }) });
    fill(barPlace, comments.bar);
    releaseChat = store.watch(uri, (/** @type {any} */ state, /** @type {any[]} */ changes) => {
      chat = state;
      if (changes.some((change) => change.kind !== 'append' && change.kind !== 'field')) onFrame(draw);
    });
  }

  function draw() {
    if (!chat) return; // on its way
    const turns = chat.activeTurn ? [...chat.turns, chat.activeTurn] : chat.turns;
    drawChoice(turns);
    const shown = route.turn ? turns.filter((/** @type {any} */ turn) => turn.id === route.turn) : turns;
    const edits = collectEdits(shown);
    const key = JSON.stringify([route.turn, edits.map((edit) => [edit.before?.content?.uri, edit.after?.content?.uri, uriOf(edit)])]);
    if (key === drawn) return; // a diff that is being read is not drawn again
    drawn = key;
    const sum = (/** @type {'added' | 'removed'} */ field) => edits.reduce((total, edit) => total + (edit.diff?.[field] ?? 0), 0);
    fill(counts, edits.length > 0 && edits.every((edit) => edit.diff) ? drawCounts(sum('added'), sum('removed')) : plural(edits.length, 'file'));
    const openOnes = new Set([...list.querySelectorAll('details[open]')].map((file) => /** @type {HTMLElement} */ (file).dataset.path));
    fill(list, edits.length === 0 ? drawNothing() : edits.map((edit) => {
      const file = drawFileEdit(chatContext, edit, {
        isOpen: edits.length === 1,
        onLine: (line, row) => comments.open(file.dataset.path ?? '', line, row),
      });
      if (openOnes.has(file.dataset.path)) file.open = true;
      return file;
    }));
  }

  /** @param {any[]} turns */
  function drawChoice(turns) {
    const withEdits = turns.filter((turn) => collectEdits([turn]).length > 0);
    fill(choice, h('option', { value: ALL }, 'This chat'), withEdits.reverse().map((turn) =>
      h('option', { value: turn.id }, `${formatTime(turn.startedAt)} ${String(turn.message?.text ?? '').split('\n', 1)[0]?.slice(0, 40)}`)));
    choice.value = route.turn ?? ALL;
    show(choice, withEdits.length > 0);
  }

  function drawNothing() {
    const older = chat.turnsNextCursor === undefined ? '' : ' in the turns that are loaded';
    return h('div.empty', null, h('p.muted', null, `No file was changed${older}.`), chat.turnsNextCursor !== undefined
      && h('button.button.small', { type: 'button', on: { click: () => store.fetchOlder(chatUri) } }, 'Load earlier turns'));
  }

  return {
    update(next) {
      if (next.session !== route.session) return; // the shell mounts another one for another session
      route = next;
      openChat();
      onFrame(draw);
    },
    unmount() {
      releaseSession();
      releaseChat();
      element.remove();
    },
  };
}
