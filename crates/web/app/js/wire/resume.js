/**
 * What may be sent again after a connection was lost, and what only its author can decide about (G-30).
 *
 * Must not know: connections, time.
 */

/** @typedef {import('./reduce/fields.js').Json} Json */

/**
 * Why an action was not sent again:
 * - `moved-on`: something happened on the chat meanwhile, and the action was meant for what was there before;
 * - `state-replaced`: the state came as a snapshot, which does not show whether the action is in it;
 * - `channel-gone`: the channel is not there any more;
 * - `not-watched`: the channel is not watched, so the replay does not show whether the host took the action;
 * - `sent-too-often`: connection after connection ended before the host answered it.
 * @typedef {'moved-on' | 'state-replaced' | 'channel-gone' | 'not-watched' | 'sent-too-often'} DropReason
 */

/** Connections that an action may go down with. One that every connection ends at is likely what ends them. */
export const SENDS_MAX = 5;

/** They mean what was on the screen. Input requests are not here: their ids are never reused (G-10). */
const ONLY_IF_NOTHING_HAPPENED = new Set([
  'chat/truncated',
  'chat/turnCancelled',
  'chat/turnResume',
  'chat/toolCallConfirmed',
  'chat/toolCallResultConfirmed',
  // What was typed was meant for what was on the screen.
  'terminal/input',
]);

/** Whether an action means the same later as now, or the host checks that it does. @param {Json} action */
export const isResentFreely = (action) => !ONLY_IF_NOTHING_HAPPENED.has(action.type);

/** @param {Json} action @param {Json} chat */
function startsUnknownTurn(action, chat) {
  const id = action.turnId;
  if (action.type !== 'chat/turnStarted' || typeof id !== 'string') {
    return false;
  }
  return chat.activeTurn?.id !== id && !chat.turns.some((/** @type {Json} */ turn) => turn.id === id);
}

/**
 * After a replay: why a pending action is not sent again, if it is not.
 * @param {import('./replica.js').PendingAction} pending @param {ReadonlySet<string>} touched channels the replay holds actions of
 * @param {readonly string[]} missing @returns {DropReason | undefined}
 */
export function dropAfterReplay(pending, touched, missing) {
  if (missing.includes(pending.channel)) {
    return 'channel-gone';
  }
  if (!pending.isWatched) {
    return pending.isSent ? 'not-watched' : undefined;
  }
  return !isResentFreely(pending.action) && touched.has(pending.channel) ? 'moved-on' : undefined;
}

/**
 * The same after snapshots: only a new turn is started again.
 * @param {import('./replica.js').PendingAction} pending @param {import('./mirror.js').State | undefined} state @param {readonly string[]} gone
 * @returns {DropReason | undefined}
 */
export function dropAfterSnapshots(pending, state, gone) {
  if (gone.includes(pending.channel)) {
    return 'channel-gone';
  }
  if (state === undefined) {
    return 'not-watched';
  }
  return state.kind === 'chat' && startsUnknownTurn(pending.action, state.value) ? undefined : 'state-replaced';
}
