/**
 * What the reducers share: reading fields of actions, and setting fields of states that are never changed in place.
 *
 * Promises: a value that is equal to the one that is there gives back the same object, so `===` says whether anything
 * changed. No key that comes from outside can reach a prototype.
 * Must not know: connections, what is pending, the document.
 */

/**
 * What an action changed, for whoever draws the state.
 * @typedef {{kind: 'append', turnId: string, partId: string, text: string}
 *   | {kind: 'part', turnId: string, partId: string}
 *   | {kind: 'turn', turnId: string}
 *   | {kind: 'list'}
 *   | {kind: 'field', field: string}
 *   | {kind: 'all'}} Change
 */

/** @typedef {Record<string, any>} Json an object as it came over the wire */
/** @typedef {{state: any, changes: Change[]}} Reduced the state, the same object if nothing changed, and what changed */

/** @type {Change[]} */
export const NO_CHANGES = [];

/** Bits of `status` (H-178): 0 to 4 say what happens, 5 and up are flags of their own. */
export const STATUS = Object.freeze({
  IDLE: 1,
  ERROR: 2,
  IN_PROGRESS: 8,
  INPUT_NEEDED: 24,
  IS_READ: 32,
  IS_ARCHIVED: 64,
  ACTIVITY_MASK: 31,
});

/** A state that is not what it should be: nothing can be built on it. */
export class StateError extends Error {
  /** @param {string} what @param {string} field */
  constructor(what, field) {
    super(`${what} has no usable \`${field}\``);
    this.name = 'StateError';
  }
}

/** @param {unknown} value @returns {value is Json} */
export const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** @param {Json} object @param {string} field @returns {string | undefined} */
export const textOf = (object, field) => (typeof object[field] === 'string' ? object[field] : undefined);

/** @param {Json} object @param {string} field @returns {boolean | undefined} */
export const flagOf = (object, field) => (typeof object[field] === 'boolean' ? object[field] : undefined);

/** @param {Json} object @param {string} field @returns {number | undefined} */
export const integerOf = (object, field) => (Number.isSafeInteger(object[field]) ? object[field] : undefined);

/** A field whose `null` means the same as its absence (H-052). @param {Json} object @param {string} field */
export const presentOf = (object, field) => (object[field] === null ? undefined : object[field]);

/** @param {unknown} value @returns {value is number} whether it is a set of status bits */
export const isStatus = (value) =>
  typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= 0xffff_ffff;

/** Whether two values are the same JSON; the order of keys does not count. @param {any} a @param {any} b @returns {boolean} */
export function isEqual(a, b) {
  if (a === b) {
    return true;
  }
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return false;
  }
  if (Array.isArray(a) || Array.isArray(b)) {
    const both = Array.isArray(a) && Array.isArray(b) && a.length === b.length;
    return both && a.every((/** @type {any} */ item, /** @type {number} */ index) => isEqual(item, b[index]));
  }
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isEqual(a[key], b[key]))
  );
}

/**
 * The object with a field set, or without it if there is no value.
 * @template {Json} T @param {T} object @param {string} field @param {any} value @returns {T}
 */
export function withField(object, field, value) {
  if (value === undefined) {
    return withoutField(object, field);
  }
  if (Object.hasOwn(object, field) && isEqual(object[field], value)) {
    return object;
  }
  return { ...object, [field]: value };
}

/** @template {Json} T @param {T} object @param {string} field @returns {T} */
export function withoutField(object, field) {
  if (!Object.hasOwn(object, field)) {
    return object;
  }
  const { [field]: _, ...rest } = object;
  return /** @type {T} */ (rest);
}

/** The fields of an object that another has, over its own. @param {Json} next @param {Json} from @param {readonly string[]} fields @returns {Json} */
export function copyFields(next, from, fields) {
  for (const field of fields) {
    const value = presentOf(from, field);
    if (value !== undefined) {
      next = { ...next, [field]: value };
    }
  }
  return next;
}

/** @param {number} status @param {number} activity */
export const withActivity = (status, activity) => ((status & ~STATUS.ACTIVITY_MASK) | activity) >>> 0;

/** Sets or clears a flag of a state's status. @template {Json} T @param {T} state @param {number} flag @param {boolean | undefined} on @returns {T} */
export function withFlag(state, flag, on) {
  if (on === undefined) {
    return state;
  }
  return withField(state, 'status', (on ? state.status | flag : state.status & ~flag) >>> 0);
}

/** Replaces the item at an index; the same list if it is equal. @template T @param {T[]} list @param {number} index @param {T} item @returns {T[]} */
export function withItem(list, index, item) {
  if (isEqual(list[index], item)) {
    return list;
  }
  const next = list.slice();
  next[index] = item;
  return next;
}

/** Replaces the first entry with the same `key`, at its index, or appends. @param {Json[]} list @param {string} key @param {Json} entry */
export function upsert(list, key, entry) {
  const keyOf = (/** @type {unknown} */ item) => (isObject(item) ? item[key] : undefined);
  const index = list.findIndex((old) => isEqual(keyOf(old), keyOf(entry)));
  return index === -1 ? [...list, entry] : withItem(list, index, entry);
}

/** Removes the first entry whose `key` is `id`. @param {Json[]} list @param {string} key @param {string} id */
export function withoutEntry(list, key, id) {
  const index = list.findIndex((entry) => isObject(entry) && entry[key] === id);
  return index === -1 ? list : list.toSpliced(index, 1);
}

/** @param {Json} state @param {Json} action */
export function addDirectory(state, action) {
  const directory = textOf(action, 'directory');
  if (directory === undefined || state.workingDirectories?.includes(directory)) {
    return state;
  }
  return { ...state, workingDirectories: [...(state.workingDirectories ?? []), directory] };
}

/** The list stays when it was the last (H-146: empty is not the same as absent). @param {Json} state @param {Json} action */
export function removeDirectory(state, action) {
  const index = state.workingDirectories?.indexOf(textOf(action, 'directory')) ?? -1;
  return index === -1 ? state : { ...state, workingDirectories: state.workingDirectories.toSpliced(index, 1) };
}

/** Merges or replaces configuration values; without a published configuration there is nothing to change (H-096). @param {Json} state @param {Json} action */
export function changeConfig(state, action) {
  if (state.config === undefined || !isObject(action.config)) {
    return state;
  }
  let values = state.config.values;
  if (action.replace === true) {
    values = isEqual(values, action.config) ? values : action.config;
  } else {
    for (const [key, value] of Object.entries(action.config)) {
      values = withField(values, key, value);
    }
  }
  return values === state.config.values ? state : { ...state, config: { ...state.config, values } };
}

/** What changed at the top of a state, field by field. @param {Json} before @param {Json} after @param {readonly string[]} [except] @returns {Change[]} */
export function changedFields(before, after, except = []) {
  if (before === after) {
    return NO_CHANGES;
  }
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...fields]
    .filter((field) => !except.includes(field) && !isEqual(before[field], after[field]))
    .map((field) => ({ kind: 'field', field }));
}

// How a state is read from a snapshot: what the types of the protocol do not allow there is left out, or an error.

/** @param {string} what @param {unknown} value @returns {Json} */
export function readObject(what, value) {
  if (!isObject(value)) {
    throw new StateError(what, '(object)');
  }
  return { ...value };
}

/** @param {string} what @param {Json} object @param {string[]} fields */
export function requireTexts(what, object, fields) {
  for (const field of fields) {
    if (typeof object[field] !== 'string') {
      throw new StateError(what, field);
    }
  }
}

/** @param {string} what @param {Json} object */
export function requireStatus(what, object) {
  if (!isStatus(object.status)) {
    throw new StateError(what, 'status');
  }
}

/** Leaves out fields that are no texts. @param {Json} object @param {string[]} fields */
export function keepTexts(object, fields) {
  for (const field of fields) {
    if (typeof object[field] !== 'string') {
      delete object[field];
    }
  }
}

/** @param {Json} object */
export function keepDirectories(object) {
  if (Array.isArray(object.workingDirectories)) {
    object.workingDirectories = object.workingDirectories.filter((item) => typeof item === 'string');
  } else {
    delete object.workingDirectories;
  }
}

/** @param {unknown} value */
export function readConfig(value) {
  const config = readObject('a config', value);
  if (!Object.hasOwn(config, 'schema')) {
    throw new StateError('a config', 'schema');
  }
  if (!isObject(config.values)) {
    throw new StateError('a config', 'values');
  }
  return config;
}

/** The id that deltas and tool-call actions address: text parts and tool calls have one, others do not. @param {Json} part @returns {string | undefined} */
export function addressOf(part) {
  switch (part.kind) {
    case 'markdown':
    case 'reasoning':
      return textOf(part, 'id');
    case 'toolCall':
      return isObject(part.toolCall) ? textOf(part.toolCall, 'toolCallId') : undefined;
    default:
      return undefined;
  }
}

/** What names a part within its turn, for keyed drawing: its address, the id of its request, or its place. @param {Json} part @param {number} index @returns {string} */
export function partKey(part, index) {
  const address = addressOf(part);
  if (address !== undefined) {
    return address;
  }
  const request = part.kind === 'inputRequest' && isObject(part.request) ? textOf(part.request, 'id') : undefined;
  return request ?? `#${index}`;
}
