/**
 * A session channel: what it is, its chats, who is active in it, what waits for somebody; and the root with agents, counts and
 * configuration of the host: what a first visit watches. One function per action.
 *
 * No action sets the activity bits of a session's status except through `inputNeeded` (H-124).
 */

import {
  STATUS,
  StateError,
  addDirectory,
  changeConfig,
  changedFields,
  integerOf,
  isEqual,
  isObject,
  isStatus,
  keepDirectories,
  keepTexts,
  presentOf,
  readConfig,
  readObject,
  removeDirectory,
  requireStatus,
  requireTexts,
  textOf,
  upsert,
  withActivity,
  withField,
  withFlag,
  withItem,
  withoutEntry,
} from './fields.js';
import { CUSTOMIZATION_ACTIONS } from './customization.js';

/** @typedef {import('./fields.js').Json} Json */

/** @param {unknown} value @returns {Json} */
export function readSession(value) {
  const what = 'a session';
  const session = readObject(what, value);
  requireTexts(what, session, ['provider', 'title', 'lifecycle']);
  requireStatus(what, session);
  for (const list of ['activeClients', 'chats']) {
    if (!Array.isArray(session[list])) {
      throw new StateError(what, list);
    }
  }
  session.chats = session.chats.map(readSummary);
  keepTexts(session, ['activity', 'defaultChat']);
  keepDirectories(session);
  if (Object.hasOwn(session, 'config')) {
    session.config = readConfig(session.config);
  }
  if (!Array.isArray(session.customizations)) {
    delete session.customizations;
  }
  if (!Array.isArray(session.inputNeeded) || session.inputNeeded.length === 0) {
    delete session.inputNeeded;
  }
  return session;
}

/** A chat as its session's catalogue lists it. @param {unknown} value @returns {Json} */
function readSummary(value) {
  const what = 'a chat summary';
  const summary = readObject(what, value);
  requireTexts(what, summary, ['resource', 'title', 'modifiedAt']);
  requireStatus(what, summary);
  keepTexts(summary, ['activity']);
  return summary;
}

/** @param {string} field @param {string} [from] @returns {(state: Json, action: Json) => Json} */
const setOptional = (field, from = field) => (state, action) => withField(state, field, presentOf(action, from));

/** The whole entry, at the index it had or at the end: the only way to clear a field of one (H-149). @param {Json} state @param {Json} action */
function addChat(state, action) {
  let summary;
  try {
    summary = readSummary(action.summary);
  } catch {
    return state; // an entry that nobody could read is none (H-078)
  }
  const chats = upsert(state.chats, 'resource', summary);
  return chats === state.chats ? state : { ...state, chats };
}

/** @param {Json} state @param {Json} action */
function removeChat(state, action) {
  const index = state.chats.findIndex((/** @type {Json} */ chat) => chat.resource === textOf(action, 'chat'));
  if (index === -1) {
    return state;
  }
  const next = { ...state, chats: state.chats.toSpliced(index, 1) };
  return state.defaultChat === action.chat ? withField(next, 'defaultChat', undefined) : next; // H-154
}

/** @param {Json} state @param {Json} action */
function updateChat(state, action) {
  const index = state.chats.findIndex((/** @type {Json} */ chat) => chat.resource === textOf(action, 'chat'));
  const changes = action.changes;
  if (index === -1 || !isObject(changes)) {
    return state;
  }
  let chat = state.chats[index];
  for (const field of ['title', 'activity', 'modifiedAt']) {
    chat = withField(chat, field, textOf(changes, field) ?? chat[field]);
  }
  if (isStatus(changes.status)) {
    chat = withField(chat, 'status', changes.status);
  }
  // `interactivity` and `movable` are not in this list: published clients ignore them here (H-149).
  for (const field of ['changes', 'origin', 'workingDirectories']) {
    chat = withField(chat, field, presentOf(changes, field) ?? chat[field]);
  }
  return chat === state.chats[index] ? state : { ...state, chats: withItem(state.chats, index, chat) };
}

/** Takes an order only if it names every chat exactly once (H-158). @param {Json} state @param {Json} action */
function reorderChats(state, action) {
  const order = action.chats;
  if (!Array.isArray(order) || order.length !== state.chats.length || new Set(order).size !== order.length) {
    return state;
  }
  const chats = order.map((resource) => state.chats.find((/** @type {Json} */ chat) => chat.resource === resource));
  return chats.includes(undefined) || isEqual(chats, state.chats) ? state : { ...state, chats };
}

/** Puts the replacement where the directory was; it stays listed once, at the earlier of two indexes. @param {Json} state @param {Json} action */
function replaceDirectory(state, action) {
  const list = state.workingDirectories;
  const directory = textOf(action, 'directory');
  const replacement = textOf(action, 'replacement');
  const position = list?.indexOf(directory) ?? -1;
  if (directory === undefined || replacement === undefined || position === -1) {
    return state;
  }
  const isListedBefore = list.slice(0, position).includes(replacement);
  const next = list.flatMap((/** @type {string} */ known, /** @type {number} */ index) => {
    if (index === position) {
      return isListedBefore ? [] : [replacement];
    }
    return isListedBefore || known !== replacement ? [known] : [];
  });
  return withField(state, 'workingDirectories', next);
}

/** @param {Json} state @param {Json[]} list */
const withInputNeeded = (state, list) => withField(state, 'inputNeeded', list.length === 0 ? undefined : list);

/** @param {Json} state @param {Json} action */
function setInputNeeded(state, action) {
  const request = presentOf(action, 'request');
  if (!isObject(request) || typeof request.id !== 'string') {
    return state;
  }
  return refreshInputNeeded(withInputNeeded(state, upsert(state.inputNeeded ?? [], 'id', request)));
}

/** @param {Json} state @param {Json} action */
function removeInputNeeded(state, action) {
  const list = state.inputNeeded ?? [];
  const id = textOf(action, 'id');
  const next = id === undefined ? list : withoutEntry(list, 'id', id);
  return next === list ? state : refreshInputNeeded(withInputNeeded(state, next));
}

/** Work that a client does is not a question to the user (H-221); what remains after the last question is "in progress". @param {Json} state */
function refreshInputNeeded(state) {
  const asksUser = (/** @type {any} */ request) =>
    request?.kind !== 'toolClientExecution' || request.toolCall?.status !== 'running';
  const bits = (state.inputNeeded ?? []).some(asksUser)
    ? withActivity(state.status, STATUS.INPUT_NEEDED)
    : (state.status & ~(STATUS.INPUT_NEEDED & ~STATUS.IN_PROGRESS)) >>> 0;
  return withField(state, 'status', bits);
}

/** @param {Json} state @param {Json[]} list */
const withActiveClients = (state, list) => (list === state.activeClients ? state : { ...state, activeClients: list });

/** @type {Record<string, (state: Json, action: Json) => Json>} */
export const SESSION_ACTIONS = {
  'session/ready': (state) => withField(state, 'lifecycle', 'ready'), // H-112
  'session/creationFailed': (state, action) =>
    withField(withField(state, 'lifecycle', 'failed'), 'creationError', presentOf(action, 'error')),
  'session/chatAdded': addChat,
  'session/chatRemoved': removeChat,
  'session/chatUpdated': updateChat,
  'session/chatsReordered': reorderChats,
  'session/defaultChatChanged': (state, action) => withField(state, 'defaultChat', textOf(action, 'defaultChat')),
  'session/titleChanged': (state, action) => withField(state, 'title', textOf(action, 'title') ?? state.title),
  'session/isReadChanged': (state, action) =>
    withFlag(state, STATUS.IS_READ, typeof action.isRead === 'boolean' ? action.isRead : undefined),
  'session/isArchivedChanged': (state, action) =>
    withFlag(state, STATUS.IS_ARCHIVED, typeof action.isArchived === 'boolean' ? action.isArchived : undefined),
  'session/activityChanged': (state, action) => withField(state, 'activity', textOf(action, 'activity')),
  'session/changesetsChanged': setOptional('changesets'),
  'session/serverToolsChanged': (state, action) =>
    withField(state, 'serverTools', presentOf(action, 'tools') ?? state.serverTools),
  'session/activeClientSet': (state, action) => {
    const client = presentOf(action, 'activeClient');
    return client === undefined ? state : withActiveClients(state, upsert(state.activeClients, 'clientId', client));
  },
  'session/activeClientRemoved': (state, action) => {
    const id = textOf(action, 'clientId');
    return id === undefined ? state : withActiveClients(state, withoutEntry(state.activeClients, 'clientId', id));
  },
  'session/workingDirectorySet': addDirectory,
  'session/workingDirectoryRemoved': removeDirectory,
  'session/workingDirectoryReplaced': replaceDirectory,
  'session/inputNeededSet': setInputNeeded,
  'session/inputNeededRemoved': removeInputNeeded,
  ...CUSTOMIZATION_ACTIONS,
  'session/configChanged': changeConfig,
  'session/metaChanged': setOptional('_meta'),
  // The host acts on it; it is not part of any state.
  'x-session/systemMessageTransformSet': (state) => state,
  'x-session/selectionSet': (state) => state,
};

/** @param {Json} state @param {Json} action @returns {import('./fields.js').Reduced} */
export function reduceSession(state, action) {
  const reduce = Object.hasOwn(SESSION_ACTIONS, action.type) ? SESSION_ACTIONS[action.type] : undefined;
  const next = reduce === undefined ? state : reduce(state, action);
  return { state: next, changes: changedFields(state, next) };
}

// The root.

/** @param {unknown} value @returns {Json} */
export function readRoot(value) {
  const root = readObject('the root', value);
  if (!Array.isArray(root.agents)) {
    throw new StateError('the root', 'agents');
  }
  if (integerOf(root, 'activeSessions') === undefined) {
    delete root.activeSessions;
  }
  if (Object.hasOwn(root, 'config')) {
    root.config = readConfig(root.config);
  }
  return root;
}

/** @type {Record<string, (state: Json, action: Json) => Json>} */
export const ROOT_ACTIONS = {
  'root/agentsChanged': (state, action) =>
    Array.isArray(action.agents) ? withField(state, 'agents', action.agents) : state,
  'root/activeSessionsChanged': (state, action) => {
    const count = integerOf(action, 'activeSessions');
    return count === undefined ? state : withField(state, 'activeSessions', count);
  },
  'root/terminalsChanged': (state, action) =>
    action.terminals === undefined ? state : withField(state, 'terminals', action.terminals),
  'root/configChanged': changeConfig,
};

/** @param {Json} state @param {Json} action @returns {import('./fields.js').Reduced} */
export function reduceRoot(state, action) {
  const reduce = Object.hasOwn(ROOT_ACTIONS, action.type) ? ROOT_ACTIONS[action.type] : undefined;
  const next = reduce === undefined ? state : reduce(state, action);
  return { state: next, changes: changedFields(state, next) };
}
