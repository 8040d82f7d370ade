// Tells people who do not look at the page what happened: something needs them, work ended after more than a minute, work failed.
// Promises: each is told once; what is not asked any more is withdrawn; what was so when the page opened is no news.
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
  /** Requests that were told. @type {Set<string> | null} null until the first list is here */
  let told = null;
  /** What each session did last, and since when it is busy or not. @type {Map<string, {state: string, since: number}>} */
  const doing = new Map();

  function drawTitle() {
    const { session } = shell.route();
    const summary = session && store.sessions().find((/** @type {any} */ one) => one.resource === session);
    showCount(store.inbox().length, summary ? titleOf(summary) : '');
  }

  function takeInbox() {
    drawTitle();
    const entries = store.inbox();
    const keys = new Set(entries.map(askKey));
    const isFirst = told === null;
    if (isFirst && !store.connection.isLive) return; // the list is on its way
    for (const entry of entries) {
      if (isFirst || told?.has(askKey(entry))) continue;
      const what = `${entry.kind === 'question' ? 'Question' : 'Approval needed'}: ${entryTitle(entry)}`;
      speak(what);
      tell({ title: what, body: titleOf({ title: entry.sessionTitle }), tag: askKey(entry), hash: formatRoute({ screen: 'inbox', ask: askKey(entry) }) });
    }
    told = keys;
    withdrawNotifications((tag) => tag.includes('@') && !keys.has(tag)).catch(reportError);
  }

  function takeSessions() {
    drawTitle();
    for (const summary of store.sessions()) {
      const state = stateOf(summary);
      const before = doing.get(summary.resource);
      if (before?.state === state) continue;
      if (!before && shell.route().session === summary.resource) markRead(summary);
      const isSame = before !== undefined && isBusy(before.state) === isBusy(state);
      doing.set(summary.resource, { state, since: isSame ? before.since : Date.now() });
      if (!before) continue; // how it was when the page opened is no news
      if (state === 'new' && shell.route().session === summary.resource) markRead(summary);
      const hash = formatRoute({ screen: 'session', session: summary.resource });
      if (state === 'failed') {
        speak(`Failed: ${titleOf(summary)}`);
        tell({ title: 'Failed', body: titleOf(summary), tag: summary.resource, hash });
      } else if (isBusy(before.state) && (state === 'new' || state === 'idle')) {
        speak(`Answer complete: ${titleOf(summary)}`);
        if (Date.now() - before.since > LONG_WORK_MS) tell({ title: 'Finished', body: titleOf(summary), tag: summary.resource, hash });
      }
    }
  }

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
