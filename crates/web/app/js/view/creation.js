// How the creation of a session goes on, at the edge of the screen. Promises: what is quick is not shown; it goes when the session is
// there, however that is heard; why one did not come to be is said. Must not know: what there is to be made.

import { h, setAttribute, setText, show } from '../ui/dom.js';
import { showNote } from '../ui/menu.js';

const QUICK_MS = 500;

/**
 * Shows how a session is made whose token is its own URI. `isThere` is called when the host has the session, `end` if it will not be
 * made, or if nothing more is known of it.
 * @param {any} store @param {string} session
 */
export function followCreation(store, session) {
  const text = h('span', { dir: 'auto' }, 'Starting the session …');
  const bar = h('progress', { hidden: true, 'aria-label': 'Progress' });
  const note = h('div.note', { role: 'status' }, text, ' ', bar);
  const timer = setTimeout(() => document.body.append(note), QUICK_MS);
  let isOver = false;
  const releases = [
    store.onProgress((/** @type {any} */ told) => {
      if (told?.progressToken !== session) return; // another session is made
      const hasTotal = typeof told.total === 'number' && told.total > 0;
      if (hasTotal && told.progress >= told.total) return void hide();
      if (typeof told.message === 'string') setText(text, `${told.message} …`);
      show(bar, hasTotal);
      if (hasTotal) {
        setAttribute(bar, 'max', String(told.total));
        setAttribute(bar, 'value', String(told.progress));
      }
    }),
  ];

  // Nothing of it is told again after a lost connection: the session's own state says when it is ready.
  function isThere() {
    releases.push(store.watch(session, (/** @type {any} */ state) => {
      const gone = state ? undefined : store.errorOf(session);
      if (isOver || (!state && !gone) || state?.lifecycle === 'creating') return; // it was said, or is on its way
      const why = gone ?? (state.lifecycle === 'failed' ? state.creationError ?? {} : undefined);
      if (why) showNote(`The session did not start: ${why.message ?? 'the host does not say why'}`, { isProblem: true });
      end();
    }));
  }

  function hide() {
    clearTimeout(timer);
    note.remove();
  }

  function end() {
    isOver = true;
    hide();
    // A watch may tell before it is in the list.
    queueMicrotask(() => { for (const release of releases.splice(0)) release(); });
  }
  return { isThere, end };
}
