// The files that a session, a chat or one of its turns changed, with counts and diffs, and notes on them.
//
// Promises: what the host keeps of changes is shown where it does; else what the results of tool calls say, several edits of a file as one
// diff, from what it was before the first to what it is after the last. Must not know: how a diff is made.

import { fill, h, iconButton, onFrame, show } from '../ui/dom.js';
import { createAnnotations } from './annotations.js';
import { createChangeset, expandTemplate } from './changeset.js';
import { createChatContext } from './chat_context.js';
import { drawTotal } from './diff.js';
import { drawFileEdit, uriOf } from './file_edit.js';
import { formatTime, plural } from './format.js';

/** @typedef {import('./file_edit.js').FileEdit} FileEdit */

/** The choice of all turns, and the one that is none: more turns are listed. */
const ALL = 'all';
const EARLIER = 'earlier';

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

/** The last part of an address. @param {any} uri */
const lastName = (uri) => String(uri).slice(String(uri).lastIndexOf('/') + 1);

/** Only what calls do counts to a turn: one without any changed nothing. @param {any} turn */
const hasCalls = (turn) => (turn.responseParts ?? []).some((/** @type {any} */ part) => part.kind === 'toolCall');

/** A turn in a list, with the number of files that its calls say they changed. @param {any} turn */
function labelOf(turn) {
  const text = `${formatTime(turn.startedAt)} ${String(turn.message?.text ?? '').split('\n', 1)[0]?.slice(0, 40)}`.trim();
  const files = collectEdits([turn]).length;
  return (text || 'An earlier turn') + (files > 0 ? ` · ${plural(files, 'file')}` : '');
}

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
  let chatContext;
  /** @type {{ uri: string, element: HTMLElement, release: () => void } | undefined} */
  let changeset;
  /** @type {any} */
  let annotations;
  let offered = '';
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
    releaseAll();
    chatUri = uri;
    chat = undefined;
    drawn = '';
    chatContext = createChatContext({ store, session: String(route.session), chat: uri, navigate, chatState: () => chat, sessionState: () => session });
    annotations = createAnnotations(chatContext, { onSent: () => navigate({ screen: 'session', session: route.session, chat: uri }) });
    fill(barPlace, annotations.bar);
    releaseChat = store.watch(uri, (/** @type {any} */ state, /** @type {any[]} */ changes) => {
      chat = state;
      if (changes.every((change) => change.kind === 'append' || change.kind === 'field')) return; // no turn is another
      annotations.redraw();
      onFrame(draw);
    });
  }

  function releaseAll() {
    releaseChat();
    changeset?.release();
    annotations?.release();
    changeset = undefined;
  }

  function choose() {
    if (choice.value === EARLIER) {
      store.fetchOlder(chatUri);
      offered = '';
      return void onFrame(draw);
    }
    const turn = choice.selectedOptions[0]?.dataset.turn;
    return void navigate({ ...route, screen: 'changes', turn, changes: turn ? undefined : lastName(choice.value) }, { replace: true });
  }

  /** What the host keeps of changes: of the session, and of this chat. @returns {any[]} */
  const listChangesets = () => [...(session?.changesets ?? []), ...(chat?.changesets ?? [])].filter((one) => typeof one?.uriTemplate === 'string');

  /** The addresses that can be chosen, the changes of single turns last. @param {any[]} turns */
  function listChoices(turns) {
    const offers = listChangesets();
    const choiceOf = (/** @type {any} */ one, /** @type {any} */ label, /** @type {string | undefined} */ turn) =>
      ({ uri: expandTemplate(one.uriTemplate, turn), label: String(label ?? 'Changes'), turn, isReviewable: Boolean(one.capabilities?.review) });
    const ofTurn = offers.find((one) => one.uriTemplate.includes('{turnId}'));
    // What a turn changed is known when it is over.
    const single = ofTurn ? turns.filter((turn) => (hasCalls(turn) && turn !== chat.activeTurn) || turn.id === route.turn).reverse() : [];
    // An address may name a turn that is not loaded.
    if (ofTurn && route.turn && !single.some((turn) => turn.id === route.turn)) single.push({ id: route.turn });
    return [...offers.map((one) => choiceOf(one, one.label, undefined)), ...single.map((turn) => choiceOf(ofTurn, labelOf(turn), turn.id))].filter((one) => one.uri !== null);
  }

  /** Shows what the host keeps. @param {any[]} turns @returns {boolean} whether it keeps any */
  function drawKept(turns) {
    const choices = listChoices(turns);
    const found = route.turn ? choices.find((one) => one.turn === route.turn) : choices.find((one) => !one.turn && lastName(one.uri) === route.changes) ?? choices.find((one) => !one.turn);
    if (!found) return false;
    drawChoice(choices.map((one) => ({ value: one.uri, label: one.label, turn: one.turn })), String(found.uri));
    if (changeset?.uri === found.uri) return true; // it draws itself
    changeset?.release();
    const { isReviewable } = found;
    const made = createChangeset(chatContext, String(found.uri), { annotations, isReviewable, onCounts: (node) => fill(counts, node) });
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
    const withEdits = turns.filter((/** @type {any} */ turn) => collectEdits([turn]).length > 0).reverse();
    drawChoice([{ value: ALL, label: 'This chat' }, ...withEdits.map((/** @type {any} */ turn) => ({ value: turn.id, label: labelOf(turn), turn: turn.id }))], route.turn ?? ALL);
    const shown = route.turn ? turns.filter((/** @type {any} */ turn) => turn.id === route.turn) : turns;
    const edits = collectEdits(shown);
    const key = JSON.stringify([route.turn, edits.map((edit) => [edit.before?.content?.uri, edit.after?.content?.uri, uriOf(edit)])]);
    if (key === drawn) return; // a diff that is being read is not drawn again
    drawn = key;
    fill(counts, drawTotal(edits));
    const openOnes = new Set([...list.querySelectorAll('details[open]')].map((file) => /** @type {HTMLElement} */ (file).dataset.path));
    fill(list, edits.length === 0 && h('p.muted.empty', null, `No files were changed${chat.turnsNextCursor === undefined ? '' : ' in the turns that are loaded'}.`), edits.map((edit) => {
      const file = drawFileEdit(chatContext, edit, {
        isOpen: edits.length === 1,
        onLine: (line, row) => annotations.open(edit, row, line),
      });
      annotations.attach(file, edit);
      if (openOnes.has(file.dataset.path)) file.open = true;
      return file;
    }), annotations.drawOthers());
  }

  /** A list that somebody looks at is not made anew. @param {{ value: any, label: string, turn?: any }[]} entries @param {string} value */
  function drawChoice(entries, value) {
    if (chat.turnsNextCursor !== undefined) entries.push({ value: EARLIER, label: 'Load earlier turns …' });
    const key = JSON.stringify(entries);
    if (key !== offered) fill(choice, entries.map((one) => h('option', { value: one.value, data: { turn: one.turn ?? null } }, one.label)));
    offered = key;
    choice.value = value;
    show(choice, entries.length > 1);
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
      releaseAll();
      element.remove();
    },
  };
}
