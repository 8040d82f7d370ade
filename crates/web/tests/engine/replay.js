/**
 * Puts the page's reducers and replica through what the Rust ones went through, and says what came of it.
 *
 * Runs in QuickJS (`mod.rs`) and in a browser; it is handed the modules, so it need not know where they are.
 */

/**
 * A sequence of actions: `{start, actions}`; gives `{start, steps: [{changed, state}]}`, and of a state that is not one `{error}`.
 */
export function reduceAll(modules, { start, actions }) {
  let state;
  try {
    state = modules.readState(start);
  } catch (error) {
    return { error: error.name };
  }
  const steps = [];
  const read = state.value;
  for (const action of actions) {
    const before = freeze(state);
    const { state: next, changes } = modules.reduceState(before, action);
    const wrong = checkChanges(before, next, changes);
    if (wrong !== undefined) {
      return { error: `${wrong} after ${JSON.stringify(action)}` };
    }
    steps.push({ changed: next !== before, state: next.value });
    state = next;
  }
  return { start: read, steps };
}

/** Whoever changes a state that was handed out gets an error. */
function freeze(value) {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
}

const same = (a, b) => JSON.stringify(a) === JSON.stringify(b);

/** What is wrong with what a reducer says has changed: it must name everything that did. */
function checkChanges(before, after, changes) {
  if ((before === after) !== (changes.length === 0)) {
    return 'a change without changes, or changes without a change';
  }
  const kinds = new Set(changes.map(({ kind }) => kind));
  for (const field of new Set([...Object.keys(before.value), ...Object.keys(after.value)])) {
    if (field === 'turns' || field === 'activeTurn' || same(before.value[field], after.value[field])) {
      continue;
    }
    if (!changes.some((change) => change.kind === 'field' && change.field === field)) {
      return `\`${field}\` changed and is not named`;
    }
  }
  if (before.kind !== 'chat' || kinds.has('list')) {
    return undefined;
  }
  if (!same(before.value.turns, after.value.turns)) {
    return 'turns changed and the list is not named';
  }
  return checkTurn(before.value.activeTurn, after.value.activeTurn, changes);
}

function checkTurn(before, after, changes) {
  if (before?.id !== after?.id) {
    return 'another turn runs and the list is not named';
  }
  if (after === undefined || changes.some((change) => change.kind === 'turn')) {
    return undefined;
  }
  const partsBefore = before.responseParts;
  for (const [index, part] of after.responseParts.entries()) {
    if (same(part, partsBefore[index])) {
      continue;
    }
    const ids = [part.id, part.toolCall?.toolCallId, part.request?.id, `#${index}`];
    const named = changes.find((change) => ids.includes(change.partId) && change.turnId === after.id);
    if (named === undefined) {
      return `part ${index} changed and is not named`;
    }
    if (named.kind === 'append' && part.content !== partsBefore[index].content + named.text) {
      return `part ${index} is not what was appended`;
    }
  }
  const rest = ({ responseParts, ...fields }) => fields;
  return same(rest(before), rest(after)) ? undefined : 'the running turn changed and is not named';
}

/** The calls of a replica: `{clientId, calls}`; gives what each gave, and what could be seen after it. */
export function callAll(modules, { clientId, calls }) {
  const replica = new modules.Replica(clientId);
  return calls.map((call) => {
    const gives = doCall(modules, replica, call) ?? null;
    return { gives: withoutChanges(gives), after: look(replica) };
  });
}

function doCall({ readEnvelope, readSnapshot }, replica, call) {
  switch (call.call) {
    case 'dispatch':
      return replica.dispatch(call.channel, call.action);
    case 'takeUnsent':
      return replica.takeUnsent();
    case 'sentUpTo':
      return replica.sentUpTo();
    case 'dropChannel':
      return replica.dropChannel(call.channel);
    case 'removeChannel':
      return replica.removeChannel(call.channel);
    case 'takeSnapshot':
      return replica.takeSnapshot(readSnapshot(call.snapshot), call.sentBefore);
    case 'receive':
      return replica.receive(readEnvelope(call.envelope));
    case 'applyReplay':
      return replica.applyReplay(call.actions.map(readEnvelope), call.missing);
    case 'applySnapshots':
      return replica.applySnapshots(call.snapshots.map(readSnapshot));
    default:
      throw new Error(`no such call: ${call.call}`);
  }
}

/** What changed is for those who draw; the replica in Rust does not say it. */
function withoutChanges(gives) {
  const strip = ({ changes, ...rest }) => rest;
  if (gives?.kind !== undefined) {
    return strip(gives);
  }
  return gives?.effects === undefined ? gives : { ...gives, effects: gives.effects.map(strip) };
}

function look(replica) {
  const states = (stateOf) =>
    Object.fromEntries(replica.channels().map((channel) => [channel, stateOf(channel)?.value]));
  return {
    confirmed: states((channel) => replica.confirmed(channel)),
    shown: states((channel) => replica.state(channel)),
    pending: replica.pending().map(({ clientSeq }) => clientSeq),
    hasUnsent: replica.hasUnsent(),
    lastSeen: replica.lastSeen,
  };
}

/** A text that is the same for the same JSON, whatever the order of its keys. */
function canonical(value) {
  const sorted = (_, part) =>
    typeof part === 'object' && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.keys(part).sort().map((key) => [key, part[key]]))
      : part;
  return JSON.stringify(value, sorted);
}

/**
 * Sequences that were recorded with what our reducers and our replica made of them: `{sequences}`, each
 * `{start, actions, changed, end}` or `{clientId, calls, end}`. Gives how many there were, and what is different.
 */
export function replayAll(modules, { sequences }) {
  const wrong = [];
  for (const [index, sequence] of sequences.entries()) {
    const found = sequence.calls === undefined ? reduced(modules, sequence) : called(modules, sequence);
    if (canonical(found.found) !== canonical(found.expected)) {
      wrong.push(`sequence ${index}: ${canonical(found.found)} is not ${canonical(found.expected)}`);
    }
  }
  return { count: sequences.length, wrong };
}

function reduced(modules, { start, actions, changed, end }) {
  const { error, steps = [] } = reduceAll(modules, { start, actions });
  const found = { error, changed: steps.map((step) => step.changed), end: steps.at(-1)?.state };
  return { found, expected: { changed, end } };
}

function called(modules, { clientId, calls, end }) {
  const found = callAll(modules, { clientId, calls });
  return {
    found: { gives: found.map(({ gives }) => gives), end: found.at(-1)?.after },
    expected: { gives: calls.map(({ gives }) => gives), end },
  };
}
