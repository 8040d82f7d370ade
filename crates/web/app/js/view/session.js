// A session: its head, its chats as tabs, the transcript of one of them, and what is written to it.
//
// Promises: every chat has an address; what a phone shows in one column is the same as on a desk; leaving it releases what it watched.
// Must not know: how a turn or a message is drawn.

import { fill, h, iconButton, keyedList, onFrame, setAttribute, setData, setText, show } from '../ui/dom.js';
import { openMenu } from '../ui/menu.js';
import { speak } from '../ui/notify.js';
import { stayAboveKeyboard } from '../ui/scroll.js';
import { writeOutName } from '../ui/visible.js';
import { STATUS } from '../state/store.js';
import { createChatContext } from './chat_context.js';
import { Composer } from './composer.js';
import { connectionMark } from './connection.js';
import { createFind } from './find.js';
import { createQueue } from './queue.js';
import { formatRoute } from './route.js';
import { createChat, openSessionMenu, reportFailure } from './session_actions.js';
import { createSignIns } from './sign_in.js';
import { stateInWords, stateOf, titleOf } from './summary.js';
import { Transcript } from './transcript.js';
import { nameOf, pathOf } from './format.js';

/** @typedef {import('./route.js').Route} Route */

const SHAPES = { 'needs-you': '◆', working: '◐', failed: '✕', new: '●', idle: '' };

/** The chat that an address means. @param {any} session @param {Route} route @returns {string | undefined} */
function chatOf(session, route) {
  if (route.chat) return route.chat;
  const shown = (session?.chats ?? []).filter((/** @type {any} */ chat) => chat.interactivity !== 'hidden');
  return session?.defaultChat ?? shown[0]?.resource;
}

/** Chats in the order of the session, each worker behind the chat that started it, those that are not done first. @param {any[]} chats */
function orderChats(chats) {
  const rank = (/** @type {any} */ chat) => ['needs-you', 'working'].indexOf(stateOf(chat)) + 1 || 3;
  const shown = chats.filter((chat) => chat.interactivity !== 'hidden');
  const isChild = (/** @type {any} */ chat) => chat.origin?.kind === 'tool' && shown.some((other) => other.resource === chat.origin.chat && other !== chat);
  /** @type {any[]} */
  const ordered = [];
  const add = (/** @type {any} */ chat, /** @type {number} */ depth) => {
    if (ordered.some((one) => one.chat === chat) || depth > 16) return; // each once, however they name each other
    ordered.push({ chat, depth });
    const workers = shown.filter((other) => other.origin?.kind === 'tool' && other.origin.chat === chat.resource);
    for (const worker of workers.sort((a, b) => rank(a) - rank(b))) add(worker, depth + 1);
  };
  for (const chat of shown) if (!isChild(chat)) add(chat, 0);
  for (const chat of shown) add(chat, 0);
  return ordered;
}

/** @type {import('./shell.js').Mount} */
export function mountSession(container, context) {
  const view = new SessionView(container, context);
  return { update: (route) => view.update(route), unmount: () => view.unmount() };
}

class SessionView {
  /** @param {HTMLElement} container @param {any} context */
  constructor(container, context) {
    this.given = context;
    this.store = context.store;
    /** @type {Route} */
    this.route = context.route;
    this.abort = new AbortController();
    /** @type {any} */
    this.session = undefined;
    /** @type {any} */
    this.chat = undefined;
    /** @type {string | undefined} */
    this.chatUri = undefined;
    /** @type {string | undefined} */
    this.sessionUri = undefined;
    this.releaseSession = () => {};
    this.releaseChat = () => {};
    this.mark = connectionMark(this.store);
    this.buildHead();
    this.drawTabs = keyedList(this.tabRow, {
      key: (/** @type {any} */ entry) => entry.chat.resource,
      create: () => h('a.chat-tab', null, h('span.chat-shape', { 'aria-hidden': 'true' }), h('span.chat-name.truncate', { dir: 'auto' }), h('span.chat-word')),
      update: (link, entry) => this.drawTab(link, entry),
    });
    this.body = h('div.session-body');
    this.waiting = h('div.empty', { role: 'status', hidden: true }, h('p.muted', null, 'The chat appears as soon as the host answers.'));
    this.element = h('div.screen', null, this.head, this.tabs, this.waiting, this.body);
    container.append(this.element);
    stayAboveKeyboard(this.element, this.abort.signal);
    document.addEventListener('keydown', (event) => this.takeKey(event), { signal: this.abort.signal });
    this.draw = () => this.drawSession();
    this.drawNow = () => this.drawDock();
    this.offConnection = this.store.onConnection(() => onFrame(this.drawNow));
    this.update(this.route);
  }

  buildHead() {
    this.title = h('h1.head-title.truncate', { dir: 'auto' });
    this.folder = h('span.chat-folder.truncate');
    this.others = h('span.chat-others', { hidden: true });
    const back = iconButton('back', 'Back to the sessions', () => this.given.navigate({ screen: 'sessions' }), 'session-back');
    const more = iconButton('more', 'More about this session', (event) => this.openMenu(/** @type {HTMLElement} */ (event.currentTarget)));
    this.head = h('header.head.session-head', null, back, h('div.session-names', null, this.title, h('div.session-about', null, this.folder, this.others)), this.mark.element, more);
    this.tabRow = h('div.chat-tabs');
    this.tabs = h('nav.chats', { 'aria-label': 'Chats of this session', hidden: true }, this.tabRow);
  }

  unmount() {
    this.abort.abort();
    this.closeChat();
    this.releaseSession();
    this.offConnection();
    this.mark.release();
    this.element.remove();
  }

  /** @param {Route} route */
  update(route) {
    const turnBefore = this.route.turn;
    this.route = route;
    if (route.session !== this.sessionUri) this.openSession(route.session);
    else if (this.session) this.openChat();
    if (route.turn && (route.turn !== turnBefore || this.transcript?.turns.length === 0)) this.transcript?.goTo(route.turn);
    this.draw();
  }

  /** @param {string | undefined} uri */
  openSession(uri) {
    this.releaseSession();
    this.closeChat();
    this.sessionUri = uri;
    this.session = undefined;
    if (!uri) return; // an address without a session leads to the list
    this.releaseSession = this.store.watch(uri, (/** @type {any} */ state) => {
      this.session = state;
      this.openChat();
      onFrame(this.draw);
    });
    if (this.route.chat) this.openChat();
  }

  openChat() {
    const uri = chatOf(this.session, this.route);
    if (!uri || uri === this.chatUri) return; // not known yet, or open already
    this.closeChat();
    this.chatUri = uri;
    const context = createChatContext({
      store: this.store, session: String(this.sessionUri), chat: uri, navigate: this.given.navigate,
      chatState: () => this.chat, sessionState: () => this.session, onSettled: () => onFrame(this.drawNow),
    });
    this.transcript = new Transcript(context, { onReading: (isFollowing, count) => this.drawReading(isFollowing, count) });
    this.composer = new Composer(context, { onSent: () => this.transcript?.keeper.follow() });
    this.signIns = createSignIns(this.store);
    this.queue = createQueue(context, { onEdit: (message) => this.composer?.edit(message), onSteer: (message) => this.composer?.deliver('steering', message) });
    this.find = createFind(this.transcript);
    this.newText = h('span');
    this.newBelow = h('button.button.new-below', { hidden: true, on: { click: () => this.transcript?.keeper.follow() } }, this.newText);
    fill(this.body, this.find.element, h('div.reading', null, this.transcript.element, this.newBelow), h('div.dock', null, this.signIns.element, this.queue.element, this.composer.element));
    if (this.route.turn) this.transcript.goTo(this.route.turn);
    this.releaseChat = this.store.watch(uri, (/** @type {any} */ state, /** @type {any[]} */ changes) => this.heardChat(state, changes));
  }

  closeChat() {
    this.releaseChat();
    this.releaseChat = () => {};
    this.transcript?.stop();
    this.composer?.unmount();
    this.queue?.unmount();
    this.transcript = this.composer = this.queue = undefined;
    this.chat = undefined;
    this.chatUri = undefined;
    fill(this.body);
  }

  /** @param {any} state @param {any[]} changes */
  heardChat(state, changes) {
    const before = this.chat;
    this.chat = state;
    if (!state) return void this.drawProblem();
    this.transcript?.heard(state, changes);
    if (changes.some((change) => change.kind !== 'append')) onFrame(this.drawNow);
    if (before?.activeTurn && !state.activeTurn) speak(state.turns.at(-1)?.state === 'error' ? 'The answer ended in an error' : 'Answer complete');
    if (!state.activeTurn && document.visibilityState === 'visible') this.markRead(state);
  }

  /** What was looked at is read. @param {any} state */
  markRead(state) {
    if ((state.status & STATUS.IS_READ) === 0) this.store.dispatch(this.chatUri, { type: 'chat/isReadChanged', isRead: true });
  }

  drawProblem() {
    const why = this.store.errorOf(this.chatUri) ?? this.store.errorOf(this.sessionUri);
    if (why) fill(this.body, h('div.empty', { role: 'alert' }, h('h2', null, 'This chat is not there'), h('p.muted', null, String(why.message ?? why)),
      h('button.button', { on: { click: () => this.given.navigate({ screen: 'sessions' }) } }, 'To the sessions')));
  }

  /** Without the host a chat that is not in memory is not there to be read; a message can be written all the same. */
  drawWaiting() {
    const isMissing = !this.chat && !this.store.connection.isLive && !this.store.errorOf(this.chatUri ?? this.sessionUri);
    show(this.waiting, isMissing);
    show(this.body, !isMissing || this.body.childElementCount > 0);
  }

  drawDock() {
    this.drawWaiting();
    if (!this.chat) return; // on its way
    this.composer?.update(this.chat);
    this.queue?.update(this.chat);
    this.signIns?.update(this.session);
  }

  drawSession() {
    const { session } = this;
    const known = session ?? this.store.sessions().find((/** @type {any} */ one) => one.resource === this.sessionUri);
    setText(this.title, known ? titleOf(known) : ' ');
    const folders = session?.workingDirectories ?? [];
    setText(this.folder, folders.map(nameOf).join(', '));
    setAttribute(this.folder, 'title', folders.map(pathOf).join('\n') || null);
    const others = (session?.activeClients ?? []).filter((/** @type {any} */ client) => client.clientId !== this.store.clientId);
    setText(this.others, others.map((/** @type {any} */ client) => writeOutName(client.displayName || 'another client')).join(', '));
    setAttribute(this.others, 'title', others.length > 0 && 'Also here');
    show(this.others, others.length > 0);
    const chats = orderChats(session?.chats ?? []);
    show(this.tabs, chats.length > 1);
    this.drawTabs(chats);
    this.drawDock();
    this.transcript?.updateActive();
    if (session === undefined && this.sessionUri && this.store.errorOf(this.sessionUri)) this.drawProblem();
  }

  /** @param {any} link @param {{ chat: any, depth: number }} entry */
  drawTab(link, { chat, depth }) {
    const [shape, name, word] = link.children;
    const state = stateOf(chat);
    const kind = chat.origin?.kind === 'tool' ? 'worker' : chat.origin?.kind === 'sideChat' ? 'side' : chat.origin?.kind === 'fork' ? 'branch' : '';
    const isCurrent = chat.resource === this.chatUri;
    const own = writeOutName(String(chat.title ?? '').trim());
    const isMain = chat.resource === this.session?.defaultChat && (own === '' || own === titleOf(this.session));
    const title = isMain ? 'main' : own || 'untitled';
    setAttribute(link, 'href', formatRoute({ screen: 'session', session: this.sessionUri, chat: chat.resource }));
    setAttribute(link, 'aria-current', isCurrent && 'page');
    setAttribute(link, 'aria-label', `${kind ? `${kind}: ` : ''}${title}, ${stateInWords(chat)}`);
    setAttribute(link, 'title', `${title} · ${stateInWords(chat)}`);
    setData(link, 'state', state);
    setData(link, 'depth', depth > 0 ? Math.min(depth, 3) : null);
    setText(shape, SHAPES[state] || (kind === 'worker' ? '✓' : '○'));
    setText(name, kind ? `${kind}: ${title}` : title);
    setText(word, state === 'needs-you' ? 'needs you' : '');
    show(word, state === 'needs-you');
    if (isCurrent) keepInRow(this.tabs, link);
  }

  /** @param {boolean} isFollowing @param {number} count */
  drawReading(isFollowing, count) {
    if (!this.newBelow || !this.newText) return; // the chat is being opened
    show(this.newBelow, !isFollowing);
    setText(this.newText, count > 0 ? `↓ ${count} new` : this.chat?.activeTurn ? '↓ more below' : '↓');
    setAttribute(this.newBelow, 'aria-label', count > 0 ? `${count} new, go to the end` : 'Go to the end');
  }

  /** @param {HTMLElement} anchor */
  openMenu(anchor) {
    const route = { session: this.sessionUri, chat: this.chatUri };
    const parent = (this.session?.chats ?? []).find((/** @type {any} */ chat) => chat.resource === this.chatUri)?.origin;
    const capability = this.store.root()?.agents?.find((/** @type {any} */ agent) => agent.provider === this.session?.provider)?.capabilities?.multipleChats;
    const lastTurn = this.chat?.activeTurn?.id ?? this.chat?.turns?.at(-1)?.id;
    const lastComplete = this.chat?.turns?.at(-1)?.id;
    openMenu(anchor, [
      { label: 'Changes', run: () => this.given.navigate({ ...route, screen: 'changes' }) },
      { label: 'Prompt', hint: 'What the model was sent', run: () => this.given.navigate({ ...route, screen: 'prompt' }) },
      { label: 'Find in this chat', run: () => this.find?.open() },
      ...this.listTerminals(),
      'line',
      ...(parent?.chat ? [{ label: 'Open the chat it came from', run: () => this.given.navigate({ screen: 'session', session: this.sessionUri, chat: parent.chat, turn: parent.turnId }) }] : []),
      ...(capability ? [{ label: 'New chat', run: () => this.createChat() }] : []),
      ...(capability?.sideChat && lastTurn ? [{ label: 'Side chat', hint: 'Reads this chat without changing it', run: () => this.createChat({ kind: 'sideChat', chat: this.chatUri, turnId: lastTurn }) }] : []),
      ...(capability?.fork && lastComplete ? [{ label: 'Fork this chat', hint: 'A copy up to the last answer', run: () => this.createChat({ kind: 'fork', chat: this.chatUri, turnId: lastComplete }) }] : []),
      { label: 'Rename, archive, delete …', run: () => this.openSessionMenu(anchor) },
    ]);
  }

  /** The terminals of this session and those of clients, and a new one. A host that has none yet does not list any. @returns {(import('../ui/menu.js').MenuEntry)[]} */
  listTerminals() {
    const listed = this.store.root()?.terminals;
    /** @type {any[]} */
    const terminals = Array.isArray(listed) ? listed : [];
    const isOurs = (/** @type {any} */ { claim }) => claim?.kind !== 'session' || claim.session === this.sessionUri;
    const open = (/** @type {string} */ terminal) => this.given.navigate({ screen: 'terminal', session: this.sessionUri, chat: this.chatUri, terminal });
    return [
      'line',
      ...terminals.filter(isOurs).slice(-8).map((one) => ({ label: `Terminal: ${writeOutName(String(one.title ?? '')) || 'untitled'}`, hint: one.lifecycle?.status === 'running' ? 'Runs' : 'Ended', run: () => open(one.resource) })),
      { label: 'New terminal', hint: 'A shell in the folder of this session', run: () => this.startTerminal(open) },
    ];
  }

  /** @param {(terminal: string) => void} open */
  async startTerminal(open) {
    try {
      const { createTerminal } = await import('./terminal.js');
      open(await createTerminal(this.store, this.session?.workingDirectories?.[0]));
    } catch (error) {
      reportFailure(error, 'No terminal was started');
    }
  }

  /** @param {any} [source] */
  createChat(source) {
    createChat({ store: this.store, session: this.sessionUri, navigate: this.given.navigate }, source);
  }

  /** @param {HTMLElement} anchor */
  openSessionMenu(anchor) {
    const summary = this.store.sessions().find((/** @type {any} */ one) => one.resource === this.sessionUri) ?? { ...this.session, resource: this.sessionUri };
    openSessionMenu(anchor, summary, { store: this.store, navigate: this.given.navigate, onDeleted: () => this.given.navigate({ screen: 'sessions' }, { replace: true }) });
  }

  /** @param {KeyboardEvent} event */
  takeKey(event) {
    const isFind = (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey && event.key.toLowerCase() === 'f';
    if (!isFind || document.querySelector('dialog[open]')) return; // not ours
    event.preventDefault();
    this.find?.open();
  }
}

/** Scrolls a row, and nothing else, so that one of its entries is seen. @param {HTMLElement} row @param {HTMLElement} entry */
function keepInRow(row, entry) {
  onFrame(() => {
    const [outer, inner] = [row.getBoundingClientRect(), entry.getBoundingClientRect()];
    if (inner.left < outer.left) row.scrollLeft += inner.left - outer.left - 16;
    else if (inner.right > outer.right) row.scrollLeft += inner.right - outer.right + 16;
  });
}
