// Every open request of every session, the oldest first. Promises: none is left out; a request that was answered goes only when the
// host says so. Must not know: how a request is answered.

import { cancelFrame, fill, h, iconButton, keyedList, onFrame, setAttribute, setData, setText, show } from '../ui/dom.js';
import { age, exactTime, nameOf } from './format.js';
import { connectionMark } from './connection.js';
import { chatName, entryDetail, entryTitle, entryVerb } from './request.js';
import { askKey, formatRoute } from './route.js';
import { folderOf, titleOf } from './summary.js';

/** @type {import('./shell.js').Mount} */
export function mountInbox(container, { store, navigate }) {
  const mark = connectionMark(store);
  const list = h('ul.requests', { data: { list: 'inbox' } });
  const empty = h('div.empty', { hidden: true });
  fill(container,
    h('header.head', null,
      h('h1.head-title', null, 'Inbox'),
      mark.element,
      iconButton('settings', 'Settings', () => navigate({ screen: 'settings' }))),
    h('div.scroller', null, list, empty));

  const drawList = keyedList(list, { key: askKey, create: () => createRequest(store), update: (element, entry) => element.update(entry) });

  function draw() {
    const entries = store.inbox();
    drawList(entries);
    show(empty, entries.length === 0);
    fill(empty, drawEmpty());
  }

  /** That nothing waits is said only when the host has said so. */
  function drawEmpty() {
    if (!store.isInboxRead) return h('p.muted', null, 'Requests appear as soon as the host answers.');
    const isOld = !store.connection.isLive;
    return [h('h2', null, isOld ? 'Nothing waited for you' : 'Nothing waits for you'),
      h('p.muted', null, isOld ? 'As of the last contact with the host.' : 'Approvals and questions of all sessions and their workers come here.')];
  }

  const redraw = () => onFrame(draw);
  const releases = [store.onInbox(redraw), store.onSessions(redraw), store.onConnection(redraw), mark.release];
  const ages = setInterval(redraw, 30_000);
  draw();
  return {
    update() {},
    unmount() {
      clearInterval(ages);
      cancelFrame(draw);
      for (const release of releases) release();
    },
  };
}

/** @param {any} store */
function createRequest(store) {
  const title = h('span.request-title', { dir: 'auto' });
  const detail = h('span.request-detail.truncate', { dir: 'auto' });
  const where = h('span.request-where.truncate', { dir: 'auto' });
  const when = h('time.session-age');
  const verb = h('span.button.small', { 'aria-hidden': 'true' });
  const link = h('a.request-link', null,
    h('span.shape', { 'aria-hidden': 'true' }),
    h('span.session-text', null, h('span.session-line', null, title, when), detail, where),
    verb);
  const element = h('li.request', null, link);
  element.update = (/** @type {any} */ entry) => {
    const session = store.sessions().find((/** @type {any} */ one) => one.resource === entry.sessionUri);
    const chat = chatName(session, entry.chatUri);
    const places = [titleOf(session), chat, nameOf(folderOf(session))].filter(Boolean);
    setData(element, 'state', 'needs-you');
    setText(title, entryTitle(entry));
    setText(detail, entryDetail(entry));
    show(detail, detail.textContent !== '');
    setData(detail, 'kind', entry.kind);
    setText(where, places.join(' › '));
    setText(when, age(entry.since));
    setAttribute(when, 'title', exactTime(entry.since));
    setText(verb, entryVerb(entry));
    setAttribute(link, 'href', formatRoute({ screen: 'inbox', ask: askKey(entry) }));
    setAttribute(link, 'aria-label', `${entryVerb(entry)}: ${entryTitle(entry)}, ${places.join(', ')}`);
  };
  return element;
}
