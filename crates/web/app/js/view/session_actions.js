// What can be done with a session from the list and from its head: rename, archive, fork, delete.
// Promises: deleting asks first and says what is lost; what the host refuses is said. Must not know: where the menu is opened.

import { randomId } from '../state/device.js';
import { askText, askYesNo, openMenu, reportProblem, showNote } from '../ui/menu.js';
import { isArchived, isRead, titleOf } from './summary.js';

const REFUSED = 'The host refused';

/**
 * Opens the menu of a session.
 * @param {HTMLElement} anchor
 * @param {any} summary
 * @param {{store: any, navigate: (route: any, how?: any) => void, onDeleted?: () => void}} context
 */
export function openSessionMenu(anchor, summary, { store, navigate, onDeleted }) {
  const uri = summary.resource;
  const tell = (/** @type {any} */ action) => reportProblem(store.dispatch(uri, action), REFUSED);
  const archived = isArchived(summary);
  openMenu(anchor, [
    { label: 'Rename', run: () => rename(store, summary) },
    isRead(summary)
      ? { label: 'Mark as not read', run: () => tell({ type: 'session/isReadChanged', isRead: false }) }
      : { label: 'Mark as read', run: () => tell({ type: 'session/isReadChanged', isRead: true }) },
    { label: 'Fork', hint: 'a new chat from its last answer', run: () => fork(store, summary, navigate) },
    archived
      ? { label: 'Restore from the archive', run: () => tell({ type: 'session/isArchivedChanged', isArchived: false }) }
      : { label: 'Archive', hint: 'found again by search', run: () => tell({ type: 'session/isArchivedChanged', isArchived: true }) },
    'line',
    { label: 'Delete …', danger: true, run: () => remove(store, summary, onDeleted) },
  ]);
}

/** @param {any} store @param {any} summary */
async function rename(store, summary) {
  const title = await askText({ title: 'Rename session', label: 'Title', value: summary.title ?? '', yes: 'Rename' });
  if (title !== null && title !== summary.title) reportProblem(store.dispatch(summary.resource, { type: 'session/titleChanged', title }), REFUSED);
}

/** @param {any} store @param {any} summary @param {(() => void) | undefined} onDeleted */
async function remove(store, summary, onDeleted) {
  const chats = (summary.chats ?? []).length;
  const text = `"${titleOf(summary)}" and ${chats > 1 ? `its ${chats} chats are` : 'its chat is'} deleted for every client. Files it changed stay as they are.`;
  if (!(await askYesNo({ title: 'Delete session?', text, yes: 'Delete', danger: true }))) return; // left as it is
  try {
    const answer = await store.request('disposeSession', { channel: summary.resource });
    const kept = answer?._meta?.['greenroom.message'];
    if (typeof kept === 'string') showNote(`Deleted; ${kept}`);
    onDeleted?.();
  } catch (error) {
    reportFailure(error, 'Not deleted');
  }
}

/** A new chat that begins with everything said so far. @param {any} store @param {any} summary @param {(route: any) => void} navigate */
async function fork(store, summary, navigate) {
  const source = summary.defaultChat ?? summary.chats?.[0]?.resource;
  const turn = source && (await lastTurn(store, source));
  if (!turn) {
    showNote('There is no complete answer to fork from yet.');
    return;
  }
  await createChat({ store, session: summary.resource, navigate }, { kind: 'fork', chat: source, turnId: turn });
}

/** Makes a chat of a session and goes there. @param {{store: any, session: string | undefined, navigate: (route: any) => void}} context @param {any} [source] what it begins with */
export async function createChat({ store, session, navigate }, source) {
  const chat = `ahp-chat:/${randomId()}`;
  try {
    await store.request('createChat', { channel: session, chat, ...(source ? { source } : {}) });
    navigate({ screen: 'session', session, chat });
  } catch (error) {
    reportFailure(error, 'The chat was not created');
  }
}

/** The id of the last complete turn of a chat. @param {any} store @param {string} chat @returns {Promise<string | null>} */
function lastTurn(store, chat) {
  return new Promise((resolve) => {
    /** @type {any} */
    let release = null;
    let isDone = false;
    const finish = (/** @type {string | null} */ id) => {
      if (isDone) return; // the state and the time limit may both come
      isDone = true;
      clearTimeout(limit);
      resolve(id);
      // `watch` may call back before it returns.
      queueMicrotask(() => release?.());
    };
    const limit = setTimeout(() => finish(null), 5_000);
    release = store.watch(chat, (/** @type {any} */ state) => {
      if (state) finish(state.turns?.at(-1)?.id ?? null);
    }, { view: { turns: 1 } });
  });
}

/** @param {any} error */
export function messageOf(error) {
  return error?.message ? String(error.message) : String(error);
}

/** Says that a request failed. Only the host's own word, or that it was not sent, says that nothing was done. @param {any} error @param {string} problem such as "Not deleted" */
export function reportFailure(error, problem) {
  const isKnown = error?.code !== undefined || error?.wasOpen === false;
  showNote(`${isKnown ? problem : 'This may not have been done'}: ${messageOf(error)}`, { isProblem: true });
}
