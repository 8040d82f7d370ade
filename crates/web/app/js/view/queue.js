// Messages that wait: the one that steers the running turn, and the queue in its order.
//
// Promises: an item that is edited is out of the queue before it can be changed; the order is changed by dragging and by buttons; a queue
// that is paused says so and can be set in motion. Must not know: how a message is written.

import { h, iconButton, keyedList, setText, show } from '../ui/dom.js';
import { reportProblem } from '../ui/menu.js';
import { plural } from './format.js';
import { labelOf } from './message.js';

/** @typedef {import('./chat_context.js').ChatContext} ChatContext */

/** A queue that does not move for this long while nothing runs is paused; between two turns it rests for a moment. */
const PAUSED_AFTER_MS = 400;

/** @param {ChatContext} context @param {{ onEdit: (message: any) => void, onSteer: (message: any) => void }} hooks */
export function createQueue(context, { onEdit, onSteer }) {
  const title = h('span.grow');
  const release = h('button.button.small.primary', { hidden: true, on: { click: () => sendNow() } }, 'Send now');
  const list = h('ul.queue-list');
  const element = h('section.queue', { 'aria-label': 'Waiting messages', hidden: true }, h('div.queue-head', null, title, release), list);
  /** @type {any} */
  let state;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let pausing;
  let isPaused = false;
  /** @type {string | undefined} */
  let dragged;

  const drawItems = keyedList(list, {
    key: (/** @type {any} */ item) => item.id,
    create: (item) => createItem(item),
    update: (row, item, index) => row.update(item, index),
  });

  /** @param {any} first */
  function createItem(first) {
    let item = first;
    const text = h('span.queue-text', { dir: 'auto' });
    const word = h('span.queue-word');
    const up = iconButton('up', 'Move up', () => move(item.id, -1));
    const down = iconButton('down', 'Move down', () => move(item.id, 1));
    const steer = iconButton('send', 'Send now: the agent reads it in this turn', () => takeOut(item, onSteer));
    const edit = iconButton('edit', 'Edit: takes it out of the queue', () => takeOut(item, onEdit));
    const remove = iconButton('close', 'Remove from the queue', () => takeOut(item));
    const grip = h('span.queue-grip', { 'aria-hidden': 'true', title: 'Drag to reorder' }, '⠿');
    const row = h('li.queue-item', null, grip, h('div.grow', null, text, word), h('div.queue-buttons', null, steer, up, down, edit, remove));
    row.addEventListener('dragstart', (/** @type {DragEvent} */ event) => { dragged = item.id; event.dataTransfer?.setData('text/plain', ''); row.classList.add('is-dragged'); });
    row.addEventListener('dragend', () => { dragged = undefined; row.classList.remove('is-dragged'); });
    row.addEventListener('dragover', (/** @type {DragEvent} */ event) => { if (dragged !== undefined && dragged !== item.id) event.preventDefault(); });
    row.addEventListener('drop', (/** @type {DragEvent} */ event) => { event.preventDefault(); if (dragged !== undefined) place(dragged, item.id); });
    row.update = (/** @type {any} */ next, /** @type {number} */ index) => {
      item = next;
      const queued = state.queuedMessages ?? [];
      const position = queued.findIndex((/** @type {any} */ one) => one.id === next.id);
      const names = (next.message?.attachments ?? []).map(labelOf).join(', ');
      setText(text, String(next.message?.text ?? '').trim() || names);
      const isPending = context.store.isPending(context.chat, (/** @type {any} */ action) => action.id === next.id || action.order?.includes(next.id));
      setText(word, [next.isSteering ? 'steers this turn' : position === 0 ? 'next' : '', isPending ? 'not confirmed yet' : ''].filter(Boolean).join(' · '));
      row.draggable = !next.isSteering && queued.length > 1;
      show(grip, row.draggable);
      show(steer, position === 0 && state.activeTurn !== undefined);
      show(up, !next.isSteering && position > 0);
      show(down, !next.isSteering && position >= 0 && position < queued.length - 1);
      row.dataset.index = String(index);
    };
    return row;
  }

  /** @param {string[]} order */
  const reorder = (order) => reportProblem(context.dispatch({ type: 'chat/queuedMessagesReordered', order }), 'The order was not changed');

  /** @param {string} id @param {number} step */
  function move(id, step) {
    const order = (state.queuedMessages ?? []).map((/** @type {any} */ item) => item.id);
    const at = order.indexOf(id);
    if (at < 0 || at + step < 0 || at + step >= order.length) return; // it left the queue, or is at its end
    order.splice(at, 1);
    order.splice(at + step, 0, id);
    reorder(order);
  }

  /** @param {string} id @param {string} before */
  function place(id, before) {
    const order = (state.queuedMessages ?? []).map((/** @type {any} */ item) => item.id);
    const from = order.indexOf(id);
    const to = order.indexOf(before);
    if (from < 0 || to < 0) return; // one of them left the queue meanwhile
    order.splice(from, 1);
    order.splice(to, 0, id);
    reorder(order);
  }

  /** @param {any} item @param {(message: any) => void} [then] what becomes of its message */
  async function takeOut(item, then) {
    const sent = context.dispatch({ type: 'chat/pendingMessageRemoved', kind: item.isSteering ? 'steering' : 'queued', id: item.id });
    if (await reportProblem(sent, 'Not taken out of the queue')) then?.(item.message);
  }

  function sendNow() {
    const head = state.queuedMessages?.[0];
    if (!head) return; // it was sent or removed meanwhile
    reportProblem(context.dispatch({ type: 'chat/pendingMessageSet', kind: 'queued', id: head.id, message: head.message }), 'Not sent');
  }

  function drawHead() {
    const count = state?.queuedMessages?.length ?? 0;
    setText(title, isPaused ? 'Queue paused. Send now?' : count > 0 ? plural(count, 'message') + ' queued' : 'Waiting');
    element.classList.toggle('is-paused', isPaused);
    show(release, isPaused);
  }

  return {
    element,
    /** @param {any} next the chat */
    update(next) {
      state = next;
      const steering = next?.steeringMessage ? [{ ...next.steeringMessage, isSteering: true }] : [];
      const queued = next?.queuedMessages ?? [];
      show(element, steering.length + queued.length > 0);
      drawItems([...steering, ...queued]);
      const rests = queued.length > 0 && next.activeTurn === undefined;
      clearTimeout(pausing);
      if (!rests) isPaused = false;
      else if (!isPaused) pausing = setTimeout(() => { isPaused = true; drawHead(); }, PAUSED_AFTER_MS);
      drawHead();
    },
    unmount: () => clearTimeout(pausing),
  };
}
