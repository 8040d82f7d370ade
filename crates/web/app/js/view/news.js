// Tells people who do not look at the page what happened: something needs them, work ended after more than a minute, work failed.
// Promises: each is told once; what is not asked any more, or was read, is withdrawn; what was so when the page opened is no news.
// Must not know: how a notification is shown.

import { device } from '../state/device.js';
import { notify, showCount, speak, withdrawNotifications } from '../ui/notify.js';
import { entryTitle } from './request.js';
import { askKey, formatRoute } from './route.js';
import { isRead, stateOf, titleOf } from './summary.js';

/** Work that took less than this is not worth a notification. */
const LONG_WORK_MS = 60_000;

/** Whether a session works, or waits for somebody in the middle of it: that is the same work. @param {string} state */
const isBusy = (state) => state === 'working' || state === 'needs-you';

/** @param {{store: any, shell: any}} given */
export function startNews({ store, shell }) {
  /** Requests that were told, or are no news. @type {Set<string>} */
  let told = new Set();
  /** Sessions whose end was told. @type {Set<string>} */
  const ended = new Set();
  /** What each session did last, and since when it is busy or not. @type {Map<string, {state: string, wasRead: boolean, since: number}>} */
  const doing = new Map();
  /** Until the first list is here. */
  let isOpening = true;
  /** Sessions that waited for somebody when the page opened; what they wait for comes later. @type {Set<string>} */
  const waited = new Set();

  function drawTitle() {
    const { session } = shell.route();
    const summary = session && store.sessions().find((/** @type {any} */ one) => one.resource === session);
    showCount(store.inbox().length, summary ? titleOf(summary) : '');
  }

  function takeInbox() {
    drawTitle();
    const entries = store.inbox();
    const keys = new Set(entries.map(askKey));
    for (const entry of entries) {
      if (isOpening || waited.has(entry.sessionUri) || told.has(askKey(entry))) continue;
      const what = `${entry.kind === 'question' ? 'Question' : 'Approval needed'}: ${entryTitle(entry)}`;
      speak(what);
      tell({ title: what, body: titleOf({ title: entry.sessionTitle }), tag: askKey(entry), hash: formatRoute({ screen: 'inbox', ask: askKey(entry) }) });
    }
    for (const { sessionUri } of entries) waited.delete(sessionUri); // what comes from now on is news
    told = keys;
    // Before the first list is here nothing is known of what was told by an earlier page.
    if (!isOpening) withdraw((tag) => tag.includes('@') && !keys.has(tag));
  }

  function takeSessions() {
    drawTitle();
    for (const summary of store.sessions()) takeSession(summary);
    isOpening &&= store.sessions().length === 0;
  }

  /** @param {any} summary */
  function takeSession(summary) {
    const { resource } = summary;
    const [state, wasRead] = [stateOf(summary), isRead(summary)];
    const before = doing.get(resource);
    if (before?.state === state && before.wasRead === wasRead) return; // as it was
    const isSame = before !== undefined && isBusy(before.state) === isBusy(state);
    doing.set(resource, { state, wasRead, since: isSame ? before.since : Date.now() });
    if (state !== 'needs-you') waited.delete(resource);
    else if (isOpening && !store.inbox().some((/** @type {any} */ entry) => entry.sessionUri === resource)) waited.add(resource);
    // What was read, here or elsewhere, need not be told any more.
    if (wasRead && ended.delete(resource)) withdraw((tag) => tag === resource);
    if ((!before || (state === 'new' && before.state !== state)) && shell.route().session === resource) markRead(summary);
    if (!before || before.state === state) return; // how it was when the page opened is no news
    if (state === 'failed') {
      speak(`Failed: ${titleOf(summary)}`);
      tellEnd('Failed', summary);
    } else if (isBusy(before.state) && (state === 'new' || state === 'idle')) {
      speak(`Answer complete: ${titleOf(summary)}`);
      if (Date.now() - before.since > LONG_WORK_MS) tellEnd('Finished', summary);
    }
  }

  /** @param {string} title @param {any} summary */
  function tellEnd(title, summary) {
    ended.add(summary.resource);
    tell({ title, body: titleOf(summary), tag: summary.resource, hash: formatRoute({ screen: 'session', session: summary.resource }) });
  }

  /** @param {(tag: string) => boolean} isGone */
  const withdraw = (isGone) => void withdrawNotifications(isGone).catch(reportError);

  /** What is on screen is read; what somebody marks as not read while it is on screen stays so. @param {any} summary */
  function markRead(summary) {
    if (document.visibilityState !== 'visible' || isRead(summary) || store.isPending(summary.resource, () => true)) return; // nobody looks, or it is said
    store.dispatch(summary.resource, { type: 'session/isReadChanged', isRead: true });
  }

  function takePlace() {
    drawTitle();
    const summary = store.sessions().find((/** @type {any} */ one) => one.resource === shell.route().session);
    if (summary) markRead(summary);
  }

  /** @param {Parameters<typeof notify>[0]} about */
  function tell(about) {
    if (device.settings().isNotifying) notify(about).catch(reportError);
  }

  store.onInbox(takeInbox);
  store.onSessions(takeSessions);
  store.onConnection(takeInbox);
  shell.onRoute(takePlace);
  document.addEventListener('visibilitychange', takePlace);
}
