/** The root channel: agents, counts, host configuration. One function per action. */

import { StateError, changeConfig, changedFields, integerOf, readConfig, readObject, withField } from './fields.js';

/** @typedef {import('./fields.js').Json} Json */

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
