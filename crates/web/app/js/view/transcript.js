// The turns of a chat, as many of them on the page as are near to what is read.
//
// Promises: at most 150 turns are on the page, and room of their height stands for the others; older pages are asked for before they are
// reached; what streams is drawn once a frame; the reading position stays (see `ui/scroll.js`). Must not know: how a turn looks.

import { cancelFrame, h, keyedList, onFrame, setText, show } from '../ui/dom.js';
import { sweepColours } from '../ui/highlight.js';
import { ScrollKeeper } from '../ui/scroll.js';
import { writeOutName } from '../ui/visible.js';
import { STATUS } from '../state/store.js';
import { DRAWN } from './markdown.js';
import { copyText, TurnView } from './turn.js';

/** @typedef {import('./chat_context.js').ChatContext} ChatContext */

const TURNS_MAX = 150;

/** Turns that are drawn at first and kept ready on each side. */
const TURNS_FIRST = 20;
const TURNS_AHEAD = 12;

/** How often what is on its way is looked at. */
const PENDING_MS = 150;

/** The height of a turn that was never on the page, until some were. */
const HEIGHT_GUESS = 240;

export class Transcript {
  /** @param {ChatContext} context @param {{ onReading?: (isFollowing: boolean, newParts: number) => void }} [hooks] */
  constructor(context, hooks = {}) {
    this.context = context;
    this.hooks = hooks;
    this.above = h('div');
    this.below = h('div');
    this.list = h('div.turn-list');
    this.older = h('p.turn-older', { role: 'status' });
    this.empty = h('div.turn-empty', { hidden: true }, h('p.muted', null, 'No messages yet.'));
    this.content = h('div.turns', null, this.older, this.above, this.list, this.below, this.empty);
    this.element = h('div.transcript.scroller', { tabIndex: 0, role: 'region', 'aria-label': 'Transcript' }, this.content);
    this.element.addEventListener('click', copyCode);
    this.element.addEventListener(DRAWN, () => this.restoreSoon());
    this.keeper = new ScrollKeeper(this.element, this.content, this.list, { onChange: () => this.heardFollowing(), onScroll: () => onFrame(this.look) });
    /** @type {any} */
    this.state = undefined;
    /** @type {any[]} the turns of the state, the active one last */
    this.turns = [];
    this.from = 0;
    this.to = 0;
    /** @type {Map<string, TurnView>} */
    this.views = new Map();
    /** @type {Map<string, number>} */
    this.heights = new Map();
    this.newParts = 0;
    this.isRestoring = false;
    /** @type {any[]} */
    this.changes = [];
    this.isLoading = false;
    /** @type {string | undefined} */
    this.target = undefined;
    /** @type {string | null | undefined} */
    this.readingAt = undefined;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.pendingTimer = undefined;
    this.draw = () => this.drawChanges();
    this.look = () => this.lookAround();
    this.sizes = new ResizeObserver((entries) => this.noteHeights(entries));
    this.show = keyedList(this.list, {
      key: (turn) => turn.id,
      create: (turn) => this.createTurn(turn),
      update: (_, turn) => this.updateTurn(turn),
      remove: (element) => this.removeTurn(element),
    });
    this.ticking = setInterval(() => this.tick(), 1_000);
  }

  /**
   * Keeps the reading position before anything else is laid out: a list that became shorter and then longer again looks as if the reader
   * had gone up. Once for all that was drawn together.
   */
  restoreSoon() {
    if (this.isRestoring) return; // it is about to
    this.isRestoring = true;
    queueMicrotask(() => {
      this.isRestoring = false;
      this.keeper.restore();
    });
  }

  stop() {
    clearInterval(this.ticking);
    clearTimeout(this.pendingTimer);
    cancelFrame(this.draw);
    cancelFrame(this.look);
    this.keeper.stop();
    this.sizes.disconnect();
    queueMicrotask(sweepColours);
  }

  /** @param {any} state @param {any[]} changes */
  heard(state, changes) {
    this.state = state;
    this.changes.push(...changes);
    onFrame(this.draw);
    this.watchPending();
  }

  /** What is on its way is marked until the host confirmed it; that changes no state, so it is looked for. */
  watchPending() {
    if (this.pendingTimer !== undefined || !this.hasPending()) return; // looked for already, or nothing is on its way
    this.pendingTimer = setTimeout(() => {
      this.pendingTimer = undefined;
      this.updateActive();
      this.watchPending();
    }, PENDING_MS);
  }

  hasPending() {
    return this.context.store.isPending(this.context.chat, (/** @type {any} */ action) => action.turnId !== undefined);
  }

  drawChanges() {
    const { changes, state } = this;
    this.changes = [];
    if (!state) return; // nothing was heard yet
    const isSmall = this.turns.length > 0 && changes.every((change) => change.kind !== 'list' && change.kind !== 'all');
    const lastBefore = this.turns.at(-1);
    if (isSmall) this.drawSmall(state, changes);
    else this.drawAll(state);
    if (!this.keeper.isFollowing) this.newParts += this.countNew(lastBefore);
    this.keeper.restore();
    this.heardFollowing();
  }

  /** Turns and parts that came behind what was the last turn; older pages come before it. @param {any} last */
  countNew(last) {
    const index = this.turns.findIndex((turn) => turn.id === last?.id);
    if (index < 0) return 0;
    const parts = (/** @type {any} */ turn) => turn.responseParts?.length ?? 0;
    return this.turns.length - 1 - index + Math.max(0, parts(this.turns[index]) - parts(last));
  }

  /** @param {any} state @param {any[]} changes */
  drawSmall(state, changes) {
    this.turns = listTurns(state);
    /** @type {Map<string, { turnId: string, partId: string, text: string }>} */
    const appended = new Map();
    for (const change of changes) {
      const view = this.views.get(change.turnId);
      if (!view) continue; // not on the page: it is drawn from the state when it comes into view
      const turn = this.turns.find((one) => one.id === change.turnId);
      if (turn) view.turn = turn;
      if (change.kind === 'append') {
        const key = `${change.turnId} ${change.partId}`;
        const before = appended.get(key)?.text ?? '';
        appended.set(key, { turnId: change.turnId, partId: change.partId, text: before + change.text });
      }
    }
    for (const { turnId, partId, text } of appended.values()) {
      const view = this.views.get(turnId);
      if (view && !view.append(partId, text)) view.updatePart(partId);
    }
    const whole = new Set(changes.filter((change) => change.kind === 'turn').map((change) => change.turnId));
    for (const change of changes) {
      if (change.kind === 'part' && !whole.has(change.turnId)) this.views.get(change.turnId)?.updatePart(change.partId);
    }
    for (const turnId of whole) {
      const turn = this.turns.find((one) => one.id === turnId);
      if (turn && this.views.has(turnId)) this.updateTurn(turn);
    }
  }

  /** @param {any} state */
  drawAll(state) {
    const first = this.turns[this.from]?.id;
    const last = this.turns[this.to - 1]?.id;
    const hadNone = this.turns.length === 0;
    const reachedEnd = this.to === this.turns.length;
    this.turns = listTurns(state);
    const find = (/** @type {string | undefined} */ id) => this.turns.findIndex((turn) => turn.id === id);
    const count = this.turns.length;
    const isOther = hadNone || find(last) < 0;
    if (isOther) {
      this.to = count;
      this.from = Math.max(0, count - TURNS_FIRST);
    } else {
      // What was on the page stays on it; what is new at the end comes if the end was there.
      this.to = reachedEnd ? count : find(last) + 1;
      const kept = find(first);
      this.from = kept < 0 ? Math.max(0, this.to - TURNS_FIRST) : kept;
    }
    this.bound();
    this.drawWindow();
    this.goToTarget();
    if (isOther) onFrame(this.look); // nobody scrolls for that
  }

  /** Keeps the window within its size; the end that is not read gives way. */
  bound() {
    if (this.to - this.from <= TURNS_MAX) return;
    if (this.keeper.isFollowing || this.isNearEnd()) this.from = this.to - TURNS_MAX;
    else this.to = this.from + TURNS_MAX;
  }

  isNearEnd() {
    return this.keeper.distanceToEnd() < this.element.clientHeight * 2;
  }

  drawWindow() {
    this.show(this.turns.slice(this.from, this.to));
    this.above.style.height = `${this.sumHeights(0, this.from)}px`;
    this.below.style.height = `${this.sumHeights(this.to, this.turns.length)}px`;
    const hasOlder = this.state?.turnsNextCursor !== undefined;
    setText(this.older, hasOlder ? 'Loading earlier turns …' : '');
    show(this.older, hasOlder);
    show(this.empty, this.turns.length === 0);
    this.tick();
  }

  /** @param {number} from @param {number} to */
  sumHeights(from, to) {
    if (from >= to) return 0;
    const guess = this.averageHeight();
    let sum = 0;
    for (let index = from; index < to; index += 1) sum += this.heights.get(this.turns[index].id) ?? guess;
    return Math.round(sum);
  }

  averageHeight() {
    if (this.heights.size === 0) return HEIGHT_GUESS;
    let sum = 0;
    for (const height of this.heights.values()) sum += height;
    return sum / this.heights.size;
  }

  /** @param {ResizeObserverEntry[]} entries */
  noteHeights(entries) {
    for (const { target, borderBoxSize, contentRect } of entries) {
      const element = /** @type {HTMLElement} */ (target);
      const id = element.dataset.turn;
      const height = borderBoxSize[0]?.blockSize;
      if (!id || !height || !element.isConnected) continue; // it left the page meanwhile
      this.heights.set(id, height);
      if (element.querySelector('.md-plain')) continue; // it has another height when it is rendered
      element.style.containIntrinsicBlockSize = `${contentRect.height}px`;
      element.classList.add('is-measured');
    }
  }

  /** @param {any} turn */
  createTurn(turn) {
    const view = new TurnView(this.context, turn.id);
    this.views.set(turn.id, view);
    this.sizes.observe(view.element);
    return view.element;
  }

  /** @param {any} turn */
  updateTurn(turn) {
    const isActive = this.state.activeTurn?.id === turn.id;
    const view = this.views.get(turn.id);
    view?.update(turn, isActive, turn === this.turns.at(-1));
    // Room for what is not in memory; it is as high as it was.
    if (view) view.element.style.minHeight = turn.isDropped ? `${this.heights.get(turn.id) ?? HEIGHT_GUESS}px` : '';
  }

  /** What the session says about a worker shows in the call that started it. */
  updateActive() {
    const active = this.state?.activeTurn;
    const view = active && this.views.get(active.id);
    view?.drawParts();
    view?.tick(this.describeActivity(), Date.now());
  }

  /** @param {HTMLElement} element */
  removeTurn(element) {
    this.sizes.unobserve(element);
    this.views.delete(element.dataset.turn ?? '');
  }

  /** Draws what came near, and asks for older turns before they are reached. */
  lookAround() {
    if (!this.element.isConnected || this.turns.length === 0) return; // nothing to look at
    const reach = this.element.clientHeight * 1.5;
    const list = this.list.getBoundingClientRect();
    const view = this.element.getBoundingClientRect();
    const roomAbove = view.top - list.top;
    const roomBelow = list.bottom - view.bottom;
    if (roomAbove < -reach || roomBelow < -reach) this.jump(view.top - this.content.getBoundingClientRect().top);
    else if (roomAbove < reach && this.from > 0) this.move(this.from - TURNS_AHEAD, Math.min(this.to, this.from - TURNS_AHEAD + TURNS_MAX));
    else if (roomBelow < reach && this.to < this.turns.length) this.move(Math.max(this.from, this.to + TURNS_AHEAD - TURNS_MAX), this.to + TURNS_AHEAD);
    if (this.from < TURNS_AHEAD && roomAbove < reach * 2) this.loadOlder();
    this.tellReading();
  }

  /** Tells the store where somebody reads: what is far from there may leave memory. */
  tellReading() {
    const [anchor] = this.keeper.anchors;
    if (!this.keeper.isFollowing && !anchor) return; // in the room that stands for turns: they are being drawn
    const at = this.keeper.isFollowing ? undefined : /** @type {HTMLElement | undefined} */ (anchor?.element)?.dataset.turn;
    if (at === this.readingAt) return; // as it was
    this.readingAt = at;
    this.context.store.readAt(this.context.chat, at).catch(() => { this.readingAt = null; }); // tried again when somebody scrolls
  }

  /** The view is inside of the room that stands for turns: draws those that belong there. @param {number} top */
  jump(top) {
    const guess = this.averageHeight();
    let index = 0;
    for (let sum = 0; index < this.turns.length - 1; index += 1) {
      sum += this.heights.get(this.turns[index].id) ?? guess;
      if (sum > top) break;
    }
    this.move(index - TURNS_AHEAD, index + TURNS_AHEAD);
  }

  /** @param {number} from @param {number} to */
  move(from, to) {
    this.from = Math.max(0, from);
    this.to = Math.min(this.turns.length, to);
    this.drawWindow();
    this.keeper.restore();
    this.keeper.noteAnchor();
    onFrame(this.look);
  }

  async loadOlder() {
    if (this.isLoading || this.state?.turnsNextCursor === undefined) return; // under way, or there are none
    this.isLoading = true;
    try {
      await this.context.store.fetchOlder(this.context.chat);
    } catch {
      setText(this.older, 'Earlier turns cannot be loaded now.');
      await new Promise((resolve) => setTimeout(resolve, 2_000));
    } finally {
      this.isLoading = false;
      if (this.element.isConnected) onFrame(this.look);
    }
  }

  heardFollowing() {
    if (this.keeper.isFollowing) this.newParts = 0;
    this.hooks.onReading?.(this.keeper.isFollowing, this.newParts);
  }

  /** Goes to a turn, as soon as it is there. @param {string | undefined} turnId */
  goTo(turnId) {
    this.target = turnId;
    this.goToTarget();
  }

  goToTarget() {
    if (this.target === undefined || this.turns.length === 0) return; // nowhere to go, or nothing there yet
    const index = this.turns.findIndex((turn) => turn.id === this.target);
    if (index < 0) return void this.loadOlder(); // it may be in an older page; tried again when that came
    this.target = undefined;
    this.from = Math.max(0, index - TURNS_AHEAD);
    this.to = Math.min(this.turns.length, Math.max(index + TURNS_AHEAD, Math.min(this.to, this.from + TURNS_MAX)));
    this.drawWindow();
    const view = this.views.get(this.turns[index].id);
    if (!view) return; // cannot be: the window holds it
    this.keeper.goTo(view.element);
    view.element.classList.add('is-target');
    setTimeout(() => view.element.classList.remove('is-target'), 1_600);
  }

  tick() {
    const active = this.state?.activeTurn;
    if (active) this.views.get(active.id)?.tick(this.describeActivity(), Date.now());
  }

  describeActivity() {
    const { ACTIVITY_MASK, INPUT_NEEDED } = STATUS;
    return (this.state.status & ACTIVITY_MASK) === INPUT_NEEDED ? 'Waits for you' : writeOutName(String(this.state.activity ?? ''));
  }
}

/** @param {any} state @returns {any[]} */
function listTurns(state) {
  const turns = state.turns ?? [];
  return state.activeTurn ? [...turns, state.activeTurn] : turns;
}

/** @param {MouseEvent} event */
function copyCode(event) {
  const button = event.target instanceof Element ? event.target.closest('[data-copy="code"]') : null;
  const code = button?.closest('figure')?.querySelector('code');
  if (code) copyText(code.textContent ?? '');
}
