// The list of sessions. Promises: what needs somebody comes first; a state is told by a word and a shape, not by colour alone; the
// list keeps its place while it changes. Must not know: what is in a session.

import { cancelFrame, fill, h, icon, iconButton, keyedList, loadStyles, onFrame, setAttribute, setData, setText, show } from '../ui/dom.js';
import { age, exactTime, nameOf } from './format.js';
import { connectionMark } from './connection.js';
import { inboxWords } from './request.js';
import { askKey, formatRoute } from './route.js';
import { changedLines, folderOf, groupSessions, modifiedAt, stateInWords, stateOf, titleOf } from './summary.js';

/** Ages are told anew this often. */
const AGES_EVERY = 30_000;

/** @type {import('./shell.js').Mount} */
export function mountSessions(container, context) {
  const { store, navigate } = context;
  let route = context.route;
  const mark = connectionMark(store);
  const search = h('input.field.search-field', {
    type: 'search', placeholder: 'Search titles and folders', 'aria-label': 'Search titles and folders', autocomplete: 'off', spellcheck: 'false',
    on: { input: () => onFrame(draw) },
  });
  const inboxCount = h('span.count', { hidden: true });
  const inboxLink = h('a.button.quiet.inbox-link', { href: formatRoute({ screen: 'inbox' }) }, icon('inbox'), h('span', null, 'Inbox'), inboxCount);
  const groups = h('div.session-groups');
  const empty = h('div.empty', { hidden: true });
  const scroller = h('div.scroller.session-list', { data: { list: 'sessions' }, on: { scroll: loadMore } }, groups, empty);
  fill(container,
    h('header.head', null,
      h('h1.head-title.brand', null, h('span.brand-mark', { 'aria-hidden': 'true' }), 'greenroom'),
      mark.element,
      iconButton('plus', 'New session', () => navigate({ screen: 'new' })),
      iconButton('settings', 'Settings', () => navigate({ screen: 'settings' }))),
    h('div.search-row', null, h('label.search', null, icon('search'), search), inboxLink),
    scroller);

  const drawGroups = keyedList(groups, {
    key: (/** @type {any} */ group) => `${group.state}:${group.folder ?? ''}`,
    create: createGroup,
    update: (element, group) => element.update(group, route),
  });

  /** @param {any} group */
  function createGroup(group) {
    const name = h('span.truncate', { dir: 'auto' });
    const count = h('span.group-count');
    const list = h('ul');
    const element = h('section.session-group', { data: { state: group.state } }, h('h2.group-name', { title: group.folder }, name, count), list);
    const drawList = keyedList(list, {
      key: (/** @type {any} */ summary) => summary.resource,
      create: (summary) => createEntry(summary, context),
      update: (entry, summary) => entry.update(summary, route),
    });
    element.update = (/** @type {any} */ next) => {
      setText(name, next.name);
      setText(count, next.state === 'earlier' ? '' : next.sessions.length);
      drawList(next.sessions);
    };
    return element;
  }

  function draw() {
    const sessions = store.sessions();
    const found = groupSessions(sessions, search.value);
    drawGroups(found);
    const waiting = store.inbox().length;
    setText(inboxCount, waiting);
    show(inboxCount, waiting > 0);
    setAttribute(inboxLink, 'aria-label', waiting > 0 ? `Inbox, ${waiting} waiting` : 'Inbox');
    show(empty, found.length === 0);
    if (found.length === 0) drawEmpty();
    else fill(empty);
    // A short page may leave room for the next one.
    onFrame(loadMore);
  }

  function drawEmpty() {
    if (search.value.trim() !== '') {
      fill(empty, h('p.muted', null, 'No title or folder has these words.'));
    } else if (!store.isListRead) {
      fill(empty, h('p.muted', null, 'Sessions appear as soon as the host answers.'));
    } else {
      fill(empty,
        h('h2', null, 'No sessions yet'),
        h('p.muted', null, 'A session is one piece of work with an agent. It continues when you close this page.'),
        h('button.button.primary', { on: { click: () => navigate({ screen: 'new' }) } }, 'Start one'));
    }
  }

  function loadMore() {
    if (scroller.clientHeight > 0 && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 600) store.loadMoreSessions();
  }

  const redraw = () => onFrame(draw);
  const releases = [store.onSessions(redraw), store.onInbox(redraw), store.onConnection(redraw), mark.release];
  const ages = setInterval(redraw, AGES_EVERY);
  draw();
  return {
    update(next) {
      route = next;
      draw();
    },
    unmount() {
      clearInterval(ages);
      cancelFrame(draw);
      cancelFrame(loadMore);
      for (const release of releases) release();
    },
  };
}

/** @param {any} first @param {import('./shell.js').ViewContext} context */
function createEntry(first, { store, navigate }) {
  let summary = first;
  const title = h('span.session-title.truncate', { dir: 'auto' });
  const when = h('time.session-age');
  const words = h('span.session-words.truncate', { dir: 'auto' });
  const folder = h('span.entry-folder.truncate', { dir: 'auto' });
  const added = h('span.added');
  const removed = h('span.removed');
  const lines = h('span.session-lines', null, added, ' ', removed);
  const link = h('a.session-link', null,
    h('span.shape', { 'aria-hidden': 'true' }),
    h('span.session-text', null,
      h('span.session-line', null, title, when),
      h('span.session-line.session-sub', null, words, lines, folder)));
  const review = h('a.button.small.session-review', { hidden: true });
  const more = iconButton('more', 'More', async () => {
    const [{ openSessionMenu }] = await Promise.all([import('./session_actions.js'), loadStyles()]);
    const isOpen = link.hasAttribute('aria-current');
    openSessionMenu(more, summary, { store, navigate, onDeleted: () => { if (isOpen) navigate({ screen: 'sessions' }, { replace: true }); } });
  }, 'session-more');
  const element = h('li.entry', null, link, review, more);

  element.update = (/** @type {any} */ next, /** @type {any} */ route) => {
    summary = next;
    const state = stateOf(next);
    const waiting = store.inbox().filter((/** @type {any} */ entry) => entry.sessionUri === next.resource);
    const at = modifiedAt(next);
    const path = folderOf(next);
    setData(element, 'state', state);
    setAttribute(link, 'href', formatRoute({ screen: 'session', session: next.resource }));
    setAttribute(link, 'aria-current', route.session === next.resource && 'page');
    setText(title, titleOf(next));
    setAttribute(title, 'title', titleOf(next));
    setText(when, age(at));
    setAttribute(when, 'title', exactTime(at));
    setText(words, state === 'needs-you' && waiting.length > 0 ? inboxWords(waiting) : stateInWords(next));
    setText(folder, nameOf(path));
    show(folder, path !== '');
    const changed = changedLines(next);
    show(lines, changed !== null);
    setText(added, `+${changed?.added ?? 0}`);
    setText(removed, `−${changed?.removed ?? 0}`);
    show(review, waiting.length > 0);
    if (waiting.length > 0) {
      setText(review, waiting[0].kind === 'question' ? 'Answer' : 'Review');
      setAttribute(review, 'aria-label', `${review.textContent}: ${titleOf(next)}`);
      setAttribute(review, 'href', formatRoute({ ...route, ask: askKey(waiting[0]) }));
    }
    setAttribute(more, 'aria-label', `More about ${titleOf(next)}`);
  };
  return element;
}
