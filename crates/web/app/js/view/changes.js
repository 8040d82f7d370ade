// The files that a session, a chat or one of its turns changed, with counts and diffs, and comments on their lines.
//
// Promises: what the host keeps of changes is shown where it does; else what the results of tool calls say, several edits of a file as one
// diff, from what it was before the first to what it is after the last. Must not know: how a diff is made.

import { fill, h, iconButton, onFrame, show } from '../ui/dom.js';
import { createAnnotations } from './annotations.js';
import { createChangeset, expandTemplate } from './changeset.js';
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

/** A turn in a list. @param {any} turn */
const labelOf = (turn) => `${formatTime(turn.startedAt)} ${String(turn.message?.text ?? '').split('\n', 1)[0]?.slice(0, 40)}`;

/** @type {import('./shell.js').Mount} */
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
  /** The changeset that is chosen, if the host keeps any. @type {string | undefined} */
  let chosen;
  /** @type {{ uri: string, element: HTMLElement, release: () => void } | undefined} */
  let changeset;
  /** @type {any} */
  let annotations;
  const choice = h('select.field', { 'aria-label': 'Which changes', on: { change: choose } });
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
    onFrame(draw);
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

  function choose() {
    const turn = choice.selectedOptions[0]?.dataset.turn;
    chosen = listChangesets().length > 0 && !turn ? choice.value : undefined;
    navigate({ ...route, turn: turn ?? undefined }, { replace: true });
    onFrame(draw);
  }

  /** What the host keeps of changes: of the session, and of this chat. @returns {any[]} */
  const listChangesets = () => [...(session?.changesets ?? []), ...(chat?.changesets ?? [])].filter((one) => typeof one?.uriTemplate === 'string');

  /** The addresses that can be chosen, the changes of single turns last. @param {any[]} turns */
  function listChoices(turns) {
    const whole = listChangesets().map((one) => ({ uri: expandTemplate(one.uriTemplate), label: String(one.label ?? 'Changes'), turn: undefined }));
    const ofTurn = listChangesets().find((one) => one.uriTemplate.includes('{turnId}'));
    const single = ofTurn ? turns.filter((turn) => collectEdits([turn]).length > 0 || turn.id === route.turn).reverse() : [];
    return [...whole, ...single.map((turn) => ({ uri: expandTemplate(ofTurn.uriTemplate, turn.id), label: labelOf(turn), turn: turn.id }))].filter((one) => one.uri !== null);
  }

  /** Shows what the host keeps. @param {any[]} turns @returns {boolean} whether it keeps any */
  function drawKept(turns) {
    const choices = listChoices(turns);
    const found = route.turn ? choices.find((one) => one.turn === route.turn) : choices.find((one) => one.uri === chosen) ?? choices.find((one) => !one.turn);
    if (!found) return false;
    fill(choice, choices.map((one) => h('option', { value: one.uri, data: { turn: one.turn ?? null } }, one.label)));
    choice.value = found.uri;
    show(choice, choices.length > 1);
    if (changeset?.uri === found.uri) return true; // it draws itself
    changeset?.release();
    annotations ??= createAnnotations(chatContext);
    const made = createChangeset(chatContext, String(found.uri), {
      onLine: (path, edit, line, row) => comments.open(path, line, row, (/** @type {string} */ text) => annotations.add(edit, line, text)),
      drawNotes: (edit) => annotations.drawNotes(edit),
      onCounts: (node) => fill(counts, node),
    });
    changeset = { uri: String(found.uri), ...made };
    drawn = '';
    fill(list, made.element);
    return true;
  }

  function draw() {
    if (!chat) return; // on its way
    const turns = chat.activeTurn ? [...chat.turns, chat.activeTurn] : chat.turns;
    if (drawKept(turns)) return; // the host's own word
    changeset?.release();
    changeset = undefined;
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
      h('option', { value: turn.id, data: { turn: turn.id } }, labelOf(turn))));
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
      changeset?.release();
      annotations?.release();
      element.remove();
    },
  };
}
