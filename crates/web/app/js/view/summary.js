// What the list says about a session, in words. Promises: an unknown status is shown as quiet, never as done or failed.
// Must not know: elements.

import { writeOutName } from '../ui/visible.js';
import { nameOf, pathOf } from './format.js';

// The bits of `status`: 0 to 4 say what happens, the others are flags.
const ACTIVITY = 0b1_1111;
const ERROR = 2;
const IN_PROGRESS = 8;
const INPUT_NEEDED = 24;
const IS_READ = 32;
const IS_ARCHIVED = 64;

/** @typedef {'needs-you' | 'working' | 'failed' | 'new' | 'idle'} SessionState */

/** @param {any} summary @returns {SessionState} */
export function stateOf(summary) {
  const status = Number(summary.status ?? 0);
  switch (status & ACTIVITY) {
    case INPUT_NEEDED:
      return 'needs-you';
    case IN_PROGRESS:
      return 'working';
    case ERROR:
      return 'failed';
    default:
      return status & IS_READ ? 'idle' : 'new';
  }
}

/** @param {any} summary */
export const isRead = (summary) => (Number(summary.status ?? 0) & IS_READ) !== 0;
/** @param {any} summary */
export const isArchived = (summary) => (Number(summary.status ?? 0) & IS_ARCHIVED) !== 0;
/** Nothing was ever said in it. @param {any} summary */
export const isEmpty = (summary) => summary._meta?.['x-empty'] === true;

/** What happens in it, in words. @param {any} summary */
export function stateInWords(summary) {
  const activity = typeof summary.activity === 'string' ? summary.activity.trim() : '';
  switch (stateOf(summary)) {
    case 'needs-you':
      return 'Needs you';
    case 'working':
      return activity ? writeOutName(activity) : 'Working';
    case 'failed':
      return 'Failed';
    case 'new':
      return 'Done, not read';
    default:
      return 'Done';
  }
}

/** @param {any} summary */
export function titleOf(summary) {
  const title = typeof summary?.title === 'string' ? summary.title.trim() : '';
  return title ? writeOutName(title) : 'Untitled session';
}

/** The first folder of a session as a path; empty if it has none. @param {any} summary */
export function folderOf(summary) {
  return pathOf(summary?.workingDirectories?.[0]);
}

/** Lines added and removed over all chats; null if none is known. @param {any} summary @returns {{added: number, removed: number} | null} */
export function changedLines(summary) {
  let added = 0;
  let removed = 0;
  for (const of of [summary, ...(summary.chats ?? [])]) {
    added += Number(of.changes?.additions ?? 0);
    removed += Number(of.changes?.deletions ?? 0);
  }
  return added + removed > 0 ? { added, removed } : null;
}

/** @param {any} summary */
export const modifiedAt = (summary) => Date.parse(summary.modifiedAt ?? '');

/**
 * The list in the order it is looked at.
 * @param {any[]} sessions
 * @param {string} search words that must be in the title or the folder
 * @returns {{name: string, folder?: string, state: SessionState | 'earlier' | 'archived', sessions: any[]}[]}
 */
export function groupSessions(sessions, search) {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const isFound = (/** @type {any} */ summary) => {
    const text = `${titleOf(summary)} ${folderOf(summary)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  };
  const found = sessions.filter((summary) => !isEmpty(summary) && isFound(summary)).sort((a, b) => modifiedAt(b) - modifiedAt(a));
  const open = found.filter((summary) => !isArchived(summary));
  const of = (/** @type {SessionState[]} */ ...states) => open.filter((summary) => states.includes(stateOf(summary)));
  const needsYou = of('needs-you').sort((a, b) => modifiedAt(a) - modifiedAt(b));
  /** @type {ReturnType<typeof groupSessions>} */
  const groups = [
    { name: 'Needs you', state: /** @type {const} */ ('needs-you'), sessions: needsYou },
    { name: 'Working', state: /** @type {const} */ ('working'), sessions: of('working') },
    { name: 'New', state: /** @type {const} */ ('new'), sessions: open.filter((summary) => isUnread(summary)) },
    ...byFolder(open.filter((summary) => ['idle', 'failed'].includes(stateOf(summary)) && !isUnread(summary))),
  ];
  // What was put away is looked for by whoever searches.
  if (words.length > 0) groups.push({ name: 'Archived', state: /** @type {const} */ ('archived'), sessions: found.filter(isArchived) });
  return groups.filter((group) => group.sessions.length > 0);
}

/** @param {any} summary */
function isUnread(summary) {
  const state = stateOf(summary);
  return state === 'new' || (state === 'failed' && !isRead(summary));
}

/** @param {any[]} sessions */
function byFolder(sessions) {
  /** @type {Map<string, any[]>} */
  const folders = new Map();
  for (const summary of sessions) {
    const folder = folderOf(summary);
    folders.set(folder, [...(folders.get(folder) ?? []), summary]);
  }
  return [...folders].map(([folder, list]) => ({ name: folder ? nameOf(folder) : 'No folder', folder, state: /** @type {const} */ ('earlier'), sessions: list }));
}
