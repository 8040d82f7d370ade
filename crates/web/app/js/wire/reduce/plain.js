/**
 * Channels that are their state and nothing else: changesets, annotations, terminals, watches of resources. One function per action.
 *
 * Promises: output of a terminal is appended without looking at what was printed before. What a client types changes nothing:
 * what the process answers does (H-272).
 */

import {
  StateError,
  changedFields,
  flagOf,
  integerOf,
  isObject,
  presentOf,
  readObject,
  requireTexts,
  textOf,
  upsert,
  withField,
  withItem,
  withoutEntry,
} from './fields.js';

/** @typedef {import('./fields.js').Json} Json */
/** @typedef {Record<string, (state: Json, action: Json) => Json>} Actions */

/** @param {string} what @param {Json} state @param {string} field */
function requireList(what, state, field) {
  if (!Array.isArray(state[field])) {
    throw new StateError(what, field);
  }
}

/** Leaves out a field that is null, which is as good as none. @param {Json} state @param {string[]} fields */
function dropNulls(state, fields) {
  for (const field of fields) {
    if (state[field] === null) {
      delete state[field];
    }
  }
}

/** @param {unknown} value @returns {Json} */
export function readChangeset(value) {
  const state = readObject('a changeset', value);
  requireTexts('a changeset', state, ['status']);
  requireList('a changeset', state, 'files');
  dropNulls(state, ['error']);
  if (!Array.isArray(state.operations)) {
    delete state.operations;
  }
  return state;
}

/** @param {unknown} value @returns {Json} */
export function readAnnotations(value) {
  const state = readObject('annotations', value);
  requireList('annotations', state, 'annotations');
  state.annotations = state.annotations.map(readAnnotation);
  return state;
}

/** @param {unknown} value @returns {Json} */
function readAnnotation(value) {
  const what = 'an annotation';
  const annotation = readObject(what, value);
  requireList(what, annotation, 'entries');
  requireTexts(what, annotation, ['id', 'resource']);
  if (annotation.origin === undefined) {
    throw new StateError(what, 'origin');
  }
  if (flagOf(annotation, 'resolved') === undefined) {
    throw new StateError(what, 'resolved');
  }
  dropNulls(annotation, ['range']);
  annotation.entries = annotation.entries.map(readEntry);
  return annotation;
}

/** @param {unknown} value @returns {Json} */
function readEntry(value) {
  const what = 'an entry of an annotation';
  const entry = readObject(what, value);
  requireTexts(what, entry, ['id']);
  if (entry.text === undefined) {
    throw new StateError(what, 'text');
  }
  return entry;
}

/** @param {unknown} value @returns {Json} */
export function readTerminal(value) {
  const what = 'a terminal';
  const state = readObject(what, value);
  requireList(what, state, 'content');
  requireTexts(what, state, ['title']);
  for (const field of ['lifecycle', 'claim']) {
    if (presentOf(state, field) === undefined) {
      throw new StateError(what, field);
    }
  }
  state.content = state.content.map(readPart);
  const kept = { cwd: textOf(state, 'cwd'), cols: integerOf(state, 'cols'), rows: integerOf(state, 'rows'), supportsCommandDetection: flagOf(state, 'supportsCommandDetection') };
  for (const [field, known] of Object.entries(kept)) {
    if (known === undefined) {
      delete state[field];
    }
  }
  return state;
}

/** @param {unknown} value @returns {Json} */
function readPart(value) {
  const part = readObject('a part of a terminal', value);
  const field = textField(part);
  return field === undefined ? part : { ...part, [field]: textOf(part, field) ?? '' };
}

/** The field that holds the output of a part; none of a part of a kind that is not known. @param {Json} part @returns {'value' | 'output' | undefined} */
export const textField = (part) => (part.type === 'unclassified' ? 'value' : part.type === 'command' ? 'output' : undefined);

/** @param {unknown} value @returns {Json} */
export function readWatch(value) {
  const state = readObject('a watch', value);
  requireTexts('a watch', state, ['root']);
  if (flagOf(state, 'recursive') === undefined) {
    throw new StateError('a watch', 'recursive');
  }
  return state;
}

/** @type {Actions} */
export const CHANGESET_ACTIONS = {
  // An error belongs to its status alone: one that recovered has none (H-286).
  'changeset/statusChanged': (state, action) => {
    const status = textOf(action, 'status');
    if (status === undefined) {
      return state;
    }
    const error = status === 'error' ? presentOf(action, 'error') : undefined;
    return withField(withField(state, 'status', status), 'error', error);
  },
  'changeset/fileSet': (state, action) => {
    const file = presentOf(action, 'file');
    return file === undefined ? state : withField(state, 'files', upsert(state.files, 'id', file));
  },
  'changeset/fileRemoved': (state, action) => {
    const id = textOf(action, 'fileId');
    return id === undefined ? state : withField(state, 'files', withoutEntry(state.files, 'id', id));
  },
  'changeset/filesReviewChanged': (state, action) => {
    const reviewed = flagOf(action, 'reviewed');
    if (!Array.isArray(action.files) || reviewed === undefined) {
      return state;
    }
    const ids = new Set(action.files.filter((/** @type {unknown} */ id) => typeof id === 'string'));
    const files = state.files.map((/** @type {any} */ file) => (isObject(file) && ids.has(file.id) ? withField(file, 'reviewed', reviewed) : file));
    return withField(state, 'files', files);
  },
  'changeset/contentChanged': (state, action) => {
    if (!Array.isArray(action.files)) {
      return state;
    }
    const next = withField(state, 'files', action.files);
    return Array.isArray(action.operations) ? withField(next, 'operations', action.operations) : next;
  },
  'changeset/operationsChanged': (state, action) =>
    withField(state, 'operations', Array.isArray(action.operations) ? action.operations : undefined),
  'changeset/operationStatusChanged': (state, action) => {
    const { operations } = state;
    const [id, status] = [textOf(action, 'operationId'), textOf(action, 'status')];
    const index = operations?.findIndex((/** @type {any} */ operation) => isObject(operation) && operation.id === id) ?? -1;
    if (index === -1 || id === undefined || status === undefined) {
      return state;
    }
    const error = status === 'error' ? presentOf(action, 'error') : undefined;
    const next = withField(withField(operations[index], 'status', status), 'error', error);
    return withField(state, 'operations', withItem(operations, index, next));
  },
  'changeset/cleared': (state) => withField(state, 'files', []),
};

/** The list with what could be read of a value in the place of the one with its id, or behind the others. @param {Json[]} list @param {(value: unknown) => Json} read @param {any} value */
function withRead(list, read, value) {
  try {
    return upsert(list, 'id', read(value));
  } catch (error) {
    if (error instanceof StateError) {
      return list; // it says nothing that can be shown
    }
    throw error;
  }
}

/** Changes the annotation that an action names. @param {Json} state @param {Json} action @param {(annotation: Json) => Json} change */
function changeAnnotation(state, action, change) {
  const id = textOf(action, 'annotationId');
  const index = state.annotations.findIndex((/** @type {Json} */ annotation) => annotation.id === id);
  return index === -1 ? state : withField(state, 'annotations', withItem(state.annotations, index, change(state.annotations[index])));
}

/** @type {Actions} */
export const ANNOTATIONS_ACTIONS = {
  'annotations/set': (state, action) =>
    withField(state, 'annotations', withRead(state.annotations, readAnnotation, presentOf(action, 'annotation'))),
  // What the action names is replaced; nothing can be cleared by it.
  'annotations/updated': (state, action) =>
    changeAnnotation(state, action, (annotation) => {
      const changes = { origin: presentOf(action, 'origin'), resource: textOf(action, 'resource'), range: presentOf(action, 'range'), resolved: flagOf(action, 'resolved') };
      const named = Object.entries(changes).filter(([, value]) => value !== undefined);
      return named.reduce((next, [field, value]) => withField(next, field, value), annotation);
    }),
  'annotations/removed': (state, action) => {
    const id = textOf(action, 'annotationId');
    return id === undefined ? state : withField(state, 'annotations', withoutEntry(state.annotations, 'id', id));
  },
  'annotations/entrySet': (state, action) =>
    changeAnnotation(state, action, (annotation) =>
      withField(annotation, 'entries', withRead(annotation.entries, readEntry, presentOf(action, 'entry')))),
  'annotations/entryRemoved': (state, action) =>
    changeAnnotation(state, action, (annotation) => {
      const id = textOf(action, 'entryId');
      return id === undefined ? annotation : withField(annotation, 'entries', withoutEntry(annotation.entries, 'id', id));
    }),
};

/** @param {Json} part */
function takesOutput(part) {
  const isCommand = part.type === 'command' && typeof part.commandId === 'string';
  return isCommand ? part.isComplete === false : textField(part) !== undefined;
}

/** Appends output to the command that runs, or to the stretch between commands. @param {Json} state @param {Json} action @returns {Json} */
function appendOutput(state, action) {
  const data = textOf(action, 'data');
  const last = state.content.at(-1);
  const field = last !== undefined && takesOutput(last) ? textField(last) : undefined;
  if (data === undefined || (data === '' && field !== undefined)) {
    return state;
  }
  const content = state.content.slice();
  if (field === undefined) {
    content.push({ type: 'unclassified', value: data });
  } else {
    content[content.length - 1] = { ...last, [field]: last[field] + data };
  }
  return { ...state, content };
}

/** A text of the action, as a field of the state. @param {string} field @returns {(state: Json, action: Json) => Json} */
const setText = (field) => (state, action) => {
  const text = textOf(action, field);
  return text === undefined ? state : withField(state, field, text);
};

/** @type {Actions} */
export const TERMINAL_ACTIONS = {
  'terminal/data': appendOutput,
  'terminal/input': (state) => state,
  'terminal/resized': (state, action) => {
    const [cols, rows] = [integerOf(action, 'cols'), integerOf(action, 'rows')];
    return cols === undefined || rows === undefined ? state : withField(withField(state, 'cols', cols), 'rows', rows);
  },
  'terminal/claimed': (state, action) => {
    const claim = presentOf(action, 'claim');
    return claim === undefined ? state : withField(state, 'claim', claim);
  },
  'terminal/titleChanged': setText('title'),
  'terminal/cwdChanged': setText('cwd'),
  'terminal/exited': (state, action) =>
    withField(state, 'lifecycle', withField({ status: 'exited' }, 'exitCode', integerOf(action, 'exitCode'))),
  'terminal/cleared': (state) => (state.content.length === 0 ? state : { ...state, content: [] }),
  'terminal/commandDetectionAvailable': (state) => withField(state, 'supportsCommandDetection', true),
  'terminal/commandExecuted': (state, action) => {
    const [commandId, commandLine] = [textOf(action, 'commandId'), textOf(action, 'commandLine')];
    const timestamp = integerOf(action, 'timestamp');
    if (commandId === undefined || commandLine === undefined || timestamp === undefined) {
      return state;
    }
    const part = { type: 'command', commandId, commandLine, timestamp, isComplete: false, output: '' };
    return { ...state, content: [...state.content, part], supportsCommandDetection: true };
  },
  'terminal/commandFinished': (state, action) => {
    const id = textOf(action, 'commandId');
    const index = state.content.findIndex((/** @type {Json} */ part) => part.type === 'command' && part.commandId === id);
    if (id === undefined || index === -1) {
      return state;
    }
    const ends = { isComplete: true, exitCode: integerOf(action, 'exitCode'), durationMs: integerOf(action, 'durationMs') };
    const part = Object.entries(ends).reduce((next, [field, value]) => withField(next, field, value), state.content[index]);
    return withField(state, 'content', withItem(state.content, index, part));
  },
};

/** @type {Actions} */
export const WATCH_ACTIONS = { 'resourceWatch/changed': (state) => state };

/** @param {Actions} actions @returns {(state: Json, action: Json) => import('./fields.js').Reduced} */
const reduceBy = (actions) => (state, action) => {
  const reduce = Object.hasOwn(actions, action.type) ? actions[action.type] : undefined;
  const next = reduce === undefined ? state : reduce(state, action);
  if (next !== state && action.type === 'terminal/data') {
    return { state: next, changes: [{ kind: 'field', field: 'content' }] }; // comparing all that was printed would cost more than drawing it
  }
  return { state: next, changes: changedFields(state, next) };
};

export const reduceChangeset = reduceBy(CHANGESET_ACTIONS);
export const reduceAnnotations = reduceBy(ANNOTATIONS_ACTIONS);
export const reduceTerminal = reduceBy(TERMINAL_ACTIONS);
export const reduceWatch = reduceBy(WATCH_ACTIONS);
