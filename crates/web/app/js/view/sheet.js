// The sheet over any screen that shows one request: which one, how many there are, what became of the answer.
// Promises: it opens and closes by the address; an answer is shown as done only after the host said so; the next request follows by
// itself; it takes the focus from no field that somebody types in. Must not know: what a request asks.

import { fill, h, iconButton, setData, setText, show } from '../ui/dom.js';
import { isTyping } from '../ui/keys.js';
import { mountConfirm } from './confirm.js';
import { watchConnection } from './connection.js';
import { mountQuestion } from './question.js';
import { chatName } from './request.js';
import { askKey } from './route.js';
import { messageOf } from './session_actions.js';
import { titleOf } from './summary.js';

/** Taps and keys count only when the sheet stood still for this long. */
const GUARD_MS = 300;
/** How long what became of an answer is read before the next request comes. */
const DONE_MS = 700;

/** @param {{store: any, shell: any}} given */
export function startSheet({ store, shell }) {
  const parts = buildSheet();
  const { dialog, body, foot } = parts;
  /** @type {any} what is open: the entry, its view, the watched channels */
  let open = null;
  let armedAt = 0;
  /** @type {any} what the line of the sheet says now */
  let lastState = null;
  /** Answers on their way, by request: a sheet that is opened again goes on telling about them. @type {Map<string, {sent: any, words: {done: string}}>} */
  const onTheirWay = new Map();

  /** @returns {any[]} */
  const entries = () => store.inbox();
  const place = () => ({ ...shell.route(), ask: undefined });

  watchConnection(parts.connection, store);
  shell.onRoute((/** @type {any} */ route) => follow(route.ask ?? null));
  store.onInbox(refresh);
  store.onConnection(refresh);
  parts.close.addEventListener('click', leave);
  parts.before.addEventListener('click', () => step(-1));
  parts.after.addEventListener('click', () => step(1));
  dialog.addEventListener('cancel', (/** @type {Event} */ event) => {
    event.preventDefault();
    leave();
  });
  dialog.addEventListener('click', (/** @type {MouseEvent} */ event) => {
    // Beside the sheet; what was typed into it is kept in the sheet, so nothing is lost by closing.
    if (event.target === dialog && isArmed()) leave();
  });
  for (const kind of ['pointerdown', 'click', 'keydown']) {
    foot.addEventListener(kind, (/** @type {Event} */ event) => {
      const isKey = event instanceof KeyboardEvent;
      if (isArmed() || (isKey && event.key !== 'Enter' && event.key !== ' ')) return; // it may act
      event.preventDefault();
      event.stopImmediatePropagation();
    }, { capture: true });
  }

  /** Taps and keys that were meant for what was there before do nothing. */
  function guard() {
    armedAt = performance.now() + GUARD_MS;
    setData(foot, 'armed', 'no');
    setTimeout(() => { if (isArmed()) setData(foot, 'armed', 'yes'); }, GUARD_MS + 20);
  }
  const isArmed = () => performance.now() >= armedAt;

  function leave() {
    if (!open || open.isLeft || !shell.route().ask) return; // it is on its way out
    open.isLeft = true;
    shell.goBack(place());
  }

  /** @param {number} by */
  function step(by) {
    const all = entries();
    const at = all.findIndex((entry) => askKey(entry) === open?.key);
    const next = all[(at + by + all.length) % all.length];
    if (next) shell.navigate({ ...place(), ask: askKey(next) }, { replace: true });
  }

  /** @param {string | null} key */
  function follow(key) {
    if (key === (open?.key ?? null)) return; // it is open already, or nothing is
    closeView();
    if (key === null) {
      dialog.close();
      // What was focused before is often gone with its request.
      if (document.activeElement === document.body) document.getElementById('main')?.focus({ preventScroll: true });
      return;
    }
    open = { key, entry: null, view: null, outcome: null, releases: [] };
    if (!dialog.open) showDialog();
    refresh();
  }

  function showDialog() {
    if (isTyping(document.activeElement)) {
      dialog.show(); // beside what is being typed, without the focus
      return;
    }
    dialog.showModal();
    parts.title.focus({ preventScroll: true });
  }

  function closeView() {
    open?.view?.unmount();
    for (const release of open?.releases ?? []) release();
    clearTimeout(open?.following);
    open = null;
    fill(body);
    fill(foot);
    setState(null);
  }

  function refresh() {
    if (!open) return; // no sheet is open
    const all = entries();
    const at = all.findIndex((entry) => askKey(entry) === open.key);
    setText(parts.count, all.length > 1 && at >= 0 ? `${at + 1} of ${all.length}` : '');
    show(parts.before, all.length > 1 && at >= 0);
    show(parts.after, all.length > 1 && at >= 0);
    if (at < 0) return void missing();
    if (!open.entry) begin(all[at]);
    open.entry = all[at];
    drawContent();
  }

  /** Watches the session and the chat: what is accepted on a channel that nobody watches is not echoed. @param {any} entry */
  function begin(entry) {
    open.releases.push(store.watch(entry.sessionUri, () => { if (open?.entry) drawPlace(); }));
    open.releases.push(store.watch(entry.chatUri, () => {}, { view: { turns: 1 } }));
  }

  function drawContent() {
    drawPlace();
    if (open.outcome === 'gone') {
      open.outcome = null; // it is asked again
      setState(null);
      open.view?.drawButtons();
    }
    if (open.view) {
      open.view.update(open.entry);
      return;
    }
    fill(body);
    const mount = open.entry.kind === 'question' ? mountQuestion : mountConfirm;
    open.view = mount({ body, foot, title: parts.title, dialog }, contextOf(open));
    guard();
    const earlier = onTheirWay.get(open.key);
    if (earlier) tell(open, earlier);
  }

  /** What a view may do, as long as its own request is the one that is open. @param {any} own */
  function contextOf(own) {
    const isOpen = () => open === own;
    return {
      store, entry: own.entry, guard,
      /** Whether an answer can be given now: none is on its way or has ended it, and what is shown stood still. */
      canSend: () => isOpen() && canSend(),
      send: (/** @type {any} */ action, /** @type {{done: string}} */ words) => { if (isOpen()) send(action, words); },
      /** Says that something else is asked than before; what is said of an answer that was given stays. @param {string} text */
      tellChanged: (/** @type {string} */ text) => { if (isOpen() && !isAnswered()) setState({ kind: 'changed', text, canRetry: true }); },
      /** To be called when controls were made anew: they are locked if those before them were. */
      redrawn: () => { if (isOpen()) setState(lastState); },
    };
  }

  function drawPlace() {
    const session = store.state(open.entry.sessionUri);
    const chat = chatName(session, open.entry.chatUri);
    setText(parts.place, [titleOf(session), chat].filter(Boolean).join(' › '));
  }

  /** The request is not in the list: answered, or not known yet. */
  function missing() {
    if (open.sent || open.outcome) return; // what became of our own answer is being told
    if (!store.connection.isLive) {
      if (!open.view) {
        setText(parts.title, 'Waiting for the host');
        fill(body, h('p.muted', null, 'The question appears as soon as the host answers.'));
      }
      return;
    }
    if (!open.entry && !store.isInboxRead) return; // it may be among what is on its way
    open.outcome = 'gone';
    guard();
    if (!open.view) setText(parts.title, 'Answered already');
    setState({ kind: 'gone', text: 'This was answered by someone else or withdrawn.', canRetry: false });
    offerNext();
  }

  const isAnswered = () => Boolean(open.sent || open.outcome);
  const canSend = () => Boolean(open?.entry) && !isAnswered() && isArmed();

  /**
   * Sends an answer, if one can be given now, and tells what becomes of it.
   * @param {any} action
   * @param {{done: string}} words
   */
  function send(action, words) {
    if (!canSend()) return; // one was given, or what is asked has just changed
    const { key, entry } = open;
    const given = { sent: dispatch(entry.chatUri, action), words };
    onTheirWay.set(key, given);
    given.sent.done.then(() => onTheirWay.delete(key));
    tell(open, given);
  }

  /** Tells what becomes of an answer. @param {any} own what is open @param {{sent: any, words: {done: string}}} given */
  async function tell(own, { sent, words }) {
    own.sent = sent;
    const text = store.connection.isLive ? 'Sent. Waiting for the host to confirm …' : 'Goes to the host as soon as it is connected. Not confirmed yet.';
    setState({ kind: 'sent', text, canRetry: false });
    const { status, reason } = await sent.done;
    if (open !== own) return; // the sheet went on to another request
    own.sent = null;
    guard();
    if (status === 'confirmed') {
      own.outcome = 'done';
      setState({ kind: 'done', text: words.done, canRetry: false });
      own.following = setTimeout(followOn, DONE_MS);
    } else if (status === 'answered-elsewhere') {
      own.outcome = 'gone';
      setState({ kind: 'gone', text: 'Your answer came too late: this was answered by someone else or withdrawn.', canRetry: false });
      offerNext();
    } else if (status === 'refused') {
      setState({ kind: 'refused', text: `The host refused: ${reason || 'no reason was given'}. It still waits.`, canRetry: true });
      refresh();
    } else {
      setState({ kind: 'unknown', text: 'Your answer may not have arrived. If the question is still open, answer again.', canRetry: true });
      refresh();
    }
  }

  /** @param {string} chat @param {any} action */
  function dispatch(chat, action) {
    try {
      return store.dispatch(chat, action);
    } catch (error) {
      // Far too much is on its way already: nothing was sent.
      return { done: Promise.resolve({ status: 'refused', reason: messageOf(error) }) };
    }
  }

  /** The next request, or back to where the sheet was opened. */
  function followOn() {
    const next = entries().find((entry) => askKey(entry) !== open?.key);
    if (next) shell.navigate({ ...place(), ask: askKey(next) }, { replace: true });
    else leave();
  }

  function offerNext() {
    const hasNext = entries().some((entry) => askKey(entry) !== open?.key);
    const button = h('button.button.primary', { on: { click: followOn } }, hasNext ? 'Next' : 'Close');
    fill(foot, button);
    if (dialog.contains(document.activeElement) && !isTyping(document.activeElement)) parts.title.focus();
  }

  /** @param {{kind: string, text: string, canRetry: boolean} | null} state */
  function setState(state) {
    lastState = state;
    setData(dialog, 'outcome', state?.kind ?? null);
    setText(parts.state, state?.text ?? '');
    show(parts.stateLine, state !== null);
    const isLocked = state !== null && !state.canRetry && state.kind !== 'gone';
    for (const control of foot.querySelectorAll('button')) control.disabled = isLocked;
    open?.view?.lock?.(state !== null && !state.canRetry);
  }

  return { isOpen: () => open !== null, view: () => open?.view ?? null, leave, isArmed };
}

function buildSheet() {
  const title = h('h2.sheet-title', { id: 'sheet-title', tabindex: '-1', dir: 'auto' });
  const placeLine = h('p.sheet-place.truncate', { dir: 'auto' });
  const count = h('span.muted');
  const before = iconButton('back', 'Previous request', () => {});
  const after = iconButton('forward', 'Next request', () => {});
  const close = iconButton('close', 'Close', () => {});
  const body = h('div.sheet-body', { tabindex: '0', role: 'group', 'aria-label': 'What is asked' });
  const foot = h('div.sheet-foot');
  const state = h('span');
  const stateLine = h('p.sheet-state', { role: 'status', 'aria-live': 'polite', hidden: true }, h('span.sheet-state-shape', { 'aria-hidden': 'true' }), state);
  const connection = h('div', { role: 'status' });
  const dialog = h('dialog.sheet', { 'aria-labelledby': 'sheet-title' },
    h('div.sheet-inner', null,
      h('header.sheet-head', null,
        placeLine, h('span.row.sheet-steps', null, count, before, after, close), title),
      body, connection, stateLine, foot));
  document.body.append(dialog);
  return { dialog, title, place: placeLine, count, before, after, close, body, connection, foot, state, stateLine };
}
