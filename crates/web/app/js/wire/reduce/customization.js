/**
 * Customizations of a session: plugins, directories and MCP servers, and what they contain.
 *
 * An entry of an unknown type stays in the list, and no action addresses it.
 */

import { isObject, presentOf, textOf, withField, withItem } from './fields.js';

/** @typedef {import('./fields.js').Json} Json */
/** @typedef {{index: number, child?: number}} Position at the top level, or among the children of a container */

const TOP = ['plugin', 'directory', 'mcpServer'];
const CHILD = ['agent', 'skill', 'prompt', 'rule', 'hook', 'mcpServer'];

/** @param {any} entry @param {string[]} types */
const idOf = (entry, types) => (isObject(entry) && types.includes(entry.type) ? textOf(entry, 'id') : undefined);

/** @param {any} container @returns {any[]} */
const childrenOf = (container) =>
  isObject(container) && ['plugin', 'directory'].includes(container.type) && Array.isArray(container.children)
    ? container.children
    : [];

/** Finds an id: first at the top level, then among the children. @param {any[]} list @param {string} id @returns {Position | undefined} */
function find(list, id) {
  const top = list.findIndex((entry) => idOf(entry, TOP) === id);
  if (top !== -1) {
    return { index: top };
  }
  for (const [index, entry] of list.entries()) {
    const child = childrenOf(entry).findIndex((candidate) => idOf(candidate, CHILD) === id);
    if (child !== -1) {
      return { index, child };
    }
  }
  return undefined;
}

/** Changes the entry that an action names. @param {Json} state @param {Json} action @param {(entry: Json) => Json} change */
function changeEntry(state, action, change) {
  const list = state.customizations;
  const id = textOf(action, 'id');
  const position = list === undefined || id === undefined ? undefined : find(list, id);
  if (position === undefined) {
    return state;
  }
  const { index, child } = position;
  let next;
  if (child === undefined) {
    next = withItem(list, index, change(list[index]));
  } else {
    const children = withItem(list[index].children, child, change(list[index].children[child]));
    next = children === list[index].children ? list : withItem(list, index, { ...list[index], children });
  }
  return next === list ? state : { ...state, customizations: next };
}

/** The first decision counts; without one it is on; one that cannot be read is off (H-301). @param {any[]} decisions */
function isEnabled(decisions) {
  if (decisions.length === 0) {
    return true;
  }
  const first = isObject(decisions[0]) ? decisions[0] : {};
  const isReadable =
    first.kind === 'global' ||
    first.kind === 'session' ||
    (first.kind === 'workspace' && typeof first.uri === 'string');
  return isReadable && first.enabled === true;
}

/** Changes the MCP server with the action's id; an id that names something else first names no server. @param {Json} state @param {Json} action @param {(server: Json) => Json} change */
const changeServer = (state, action, change) =>
  changeEntry(state, action, (entry) => (entry.type === 'mcpServer' ? change(entry) : entry));

/** @param {Json} state @param {Json} action @param {any} next @param {any} channel */
const setServerState = (state, action, next, channel) =>
  changeServer(state, action, (server) => withField(withField(server, 'state', next), 'channel', channel));

/** @type {Record<string, (state: Json, action: Json) => Json>} */
export const CUSTOMIZATION_ACTIONS = {
  'session/customizationsChanged': (state, action) =>
    Array.isArray(action.customizations) ? withField(state, 'customizations', action.customizations) : state,
  // The explicit decisions are replaced whole (H-302).
  'session/customizationToggled': (state, action) => {
    const decisions = action.enablement;
    if (!Array.isArray(decisions)) {
      return state;
    }
    return changeEntry(state, action, (entry) =>
      entry.type === 'plugin' || entry.type === 'mcpServer'
        ? withField(entry, 'enablement', decisions.length === 0 ? undefined : decisions)
        : withField(entry, 'enabled', isEnabled(decisions)),
    );
  },
  'session/customizationUpdated': (state, action) => {
    const customization = presentOf(action, 'customization');
    if (customization === undefined) {
      return state;
    }
    // Published clients begin a list here even for a type they do not know; ours must not differ from theirs (H-074).
    const list = state.customizations ?? [];
    const id = idOf(customization, TOP);
    let next = list;
    if (id !== undefined) {
      const index = list.findIndex((/** @type {any} */ entry) => idOf(entry, TOP) === id);
      next = index === -1 ? [...list, customization] : withItem(list, index, customization);
    }
    return next === state.customizations ? state : { ...state, customizations: next };
  },
  'session/customizationRemoved': (state, action) => {
    const list = state.customizations;
    const id = textOf(action, 'id');
    const position = list === undefined || id === undefined ? undefined : find(list, id);
    if (position === undefined) {
      return state;
    }
    const { index, child } = position;
    if (child === undefined) {
      return { ...state, customizations: list.toSpliced(index, 1) };
    }
    const container = { ...list[index], children: list[index].children.toSpliced(child, 1) };
    return { ...state, customizations: list.with(index, container) };
  },
  // A change without a channel clears it (H-305).
  'session/mcpServerStateChanged': (state, action) => {
    const next = presentOf(action, 'state');
    return next === undefined ? state : setServerState(state, action, next, presentOf(action, 'channel'));
  },
  'session/mcpServerStartRequested': (state, action) =>
    setServerState(state, action, { kind: 'starting' }, undefined),
  'session/mcpServerStopRequested': (state, action) => setServerState(state, action, { kind: 'stopped' }, undefined),
  // Only a server whose start holds messages back can be sent to the background.
  'session/mcpServerBackgroundRequested': (state, action) =>
    changeServer(state, action, (server) =>
      isObject(server.state) && server.state.kind === 'starting' && server.state.blocking === true
        ? { ...server, state: { ...server.state, blocking: false } }
        : server,
    ),
};
