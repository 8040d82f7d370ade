// One turn: what was said, the parts of the answer, and what it took.
//
// Promises: an article with a heading; its parts keep their elements; only what changed is touched. Must not know: the list, scrolling.

import { h, fill, iconButton, setData, setText, show } from '../ui/dom.js';
import { randomId } from '../state/device.js';
import { askYesNo, openMenu, reportProblem, showNote } from '../ui/menu.js';
import { partKey } from '../state/store.js';
import { createPart } from './part.js';
import { drawMessage } from './message.js';
import { formatDuration, formatPassed, formatTime, plural } from './format.js';
import { formatRoute } from './route.js';
import { createChat } from './session_actions.js';
import { describeUsage } from './usage.js';

/** @typedef {import('./chat_context.js').ChatContext} ChatContext */
/** @typedef {import('./part.js').PartView} PartView */

const WHO = /** @type {Record<string, string>} */ ({ user: 'You', agent: 'Agent', tool: 'Tool', automation: 'Automation', systemNotification: 'Note' });

export class TurnView {
  /** @param {ChatContext} context @param {string} id */
  constructor(context, id) {
    this.context = context;
    this.id = id;
    const headingId = `turn-${id.replace(/[^\w-]/g, '_')}`;
    this.heading = h('h3.spoken', { id: headingId });
    this.who = h('span.message-who');
    this.time = h('time.message-time');
    this.message = h('div.message-body');
    this.answer = h('div.answer');
    this.status = h('p.turn-status', { hidden: true }, h('span.pulse', { 'aria-hidden': 'true' }), (this.statusText = h('span')));
    this.facts = h('span.turn-facts');
    this.foot = h('footer.turn-foot', null, this.facts,
      iconButton('copy', 'Copy the answer', () => this.copyAnswer(), 'turn-action'),
      iconButton('more', 'More about this turn', (event) => this.openMenu(/** @type {HTMLElement} */ (event.currentTarget)), 'turn-action'));
    this.element = h('article.turn', { 'aria-labelledby': headingId, data: { turn: id } },
      this.heading, h('div.message', null, h('div.message-head', null, this.who, this.time), this.message), this.answer, this.status, this.foot);
    /** @type {Map<string, PartView>} */
    this.parts = new Map();
    /** @type {any} */
    this.turn = undefined;
    /** @type {unknown} */
    this.drawnMessage = undefined;
    this.isActive = false;
    this.isLatest = false;
  }

  /** @param {any} turn @param {boolean} isActive @param {boolean} isLatest */
  update(turn, isActive, isLatest) {
    this.turn = turn;
    this.isActive = isActive;
    this.isLatest = isLatest;
    this.element.classList.toggle('is-dropped', turn.isDropped === true);
    if (turn.isDropped) return; // it left memory, and comes again while it is looked at
    if (this.drawnMessage !== turn.message) this.drawMessage(turn);
    this.drawParts();
    this.drawFoot();
    setData(this.element, 'state', isActive ? 'active' : turn.state);
  }

  /** @param {any} turn */
  drawMessage(turn) {
    this.drawnMessage = turn.message;
    const kind = String(turn.message?.origin?.kind ?? 'user');
    const who = WHO[kind] ?? 'Message';
    setText(this.who, who);
    setText(this.time, formatTime(turn.startedAt));
    setText(this.heading, `${who}, ${formatTime(turn.startedAt)}`);
    setData(this.element, 'origin', kind);
    fill(this.message, drawMessage(this.context, turn.message));
  }

  /** @param {number} index @param {number} count @returns {import('./part.js').PartPlace} */
  placeOf(index, count) {
    return { isLast: index === count - 1, isActive: this.isActive, isLatestTurn: this.isLatest, turnId: this.id, turnState: this.turn.state ?? '' };
  }

  /** @returns {number} how many parts came */
  drawParts() {
    const parts = this.turn.responseParts ?? [];
    /** @type {Map<string, PartView>} */
    const next = new Map();
    let added = 0;
    parts.forEach((/** @type {any} */ part, /** @type {number} */ index) => {
      const key = next.has(partKey(part, index)) ? `#${index}` : partKey(part, index); // an id may occur twice
      const place = this.placeOf(index, parts.length);
      const known = this.parts.get(key);
      if (known) known.update(part, place);
      else added += 1;
      next.set(key, known ?? createPart(this.context, part, place));
    });
    for (const [key, view] of this.parts) if (!next.has(key)) view.element.remove();
    const elements = [...next.values()].map((view) => view.element);
    elements.forEach((element, index) => {
      if (this.answer.children[index] !== element) this.answer.insertBefore(element, this.answer.children[index] ?? null);
    });
    this.parts = next;
    return added;
  }

  /**
   * Adds streamed text; false if it does not fit to what is shown.
   * @param {string} partId
   * @param {string} text
   */
  append(partId, text) {
    const parts = this.turn.responseParts ?? [];
    const index = parts.findIndex((/** @type {any} */ part, /** @type {number} */ at) => partKey(part, at) === partId);
    return this.parts.get(partId)?.append?.(text, String(parts[index]?.content ?? '').length) ?? false;
  }

  /** @param {string} partId */
  updatePart(partId) {
    const parts = this.turn.responseParts ?? [];
    const index = parts.findIndex((/** @type {any} */ part, /** @type {number} */ at) => partKey(part, at) === partId);
    const view = this.parts.get(partId);
    // A part that came ends the one before it, so all are looked at.
    if (index < 0 || !view) return void this.drawParts();
    view.update(parts[index], this.placeOf(index, parts.length));
  }

  drawFoot() {
    show(this.foot, !this.isActive);
    show(this.status, this.isActive);
    if (!this.isActive) setText(this.facts, describeTurn(this.turn));
  }

  /** Says how long the turn runs, and what it does. @param {string | undefined} activity @param {number} now */
  tick(activity, now) {
    const began = Date.parse(this.turn?.startedAt ?? '');
    const passed = Number.isFinite(began) && now > began ? ` · ${formatPassed(now - began)}` : '';
    const isSent = this.context.store.isPending(this.context.chat, (/** @type {any} */ action) => action.type === 'chat/turnStarted' && action.turnId === this.id);
    setText(this.time, isSent ? 'sent, not confirmed yet' : formatTime(this.turn?.startedAt));
    setText(this.statusText, isSent ? 'Sending' : `${activity || 'Working'}${passed}`);
  }

  /** The answer as it was written. */
  readAnswer() {
    const texts = (this.turn?.responseParts ?? []).filter((/** @type {any} */ part) => part.kind === 'markdown');
    return texts.map((/** @type {any} */ part) => String(part.content ?? '')).join('\n\n').trim();
  }

  copyAnswer() {
    copyText(this.readAnswer() || String(this.turn?.message?.text ?? ''));
  }

  /** @param {HTMLElement} anchor */
  openMenu(anchor) {
    const { context } = this;
    const route = { screen: /** @type {const} */ ('session'), session: context.session, chat: context.chat, turn: this.id };
    const later = countLater(context.chatState(), this.id);
    const isBusy = context.chatState()?.activeTurn !== undefined;
    openMenu(anchor, [
      { label: 'Copy message', run: () => copyText(String(this.turn?.message?.text ?? '')) },
      { label: 'Copy answer', run: () => this.copyAnswer() },
      { label: 'Copy link to this turn', run: () => copyText(new URL(formatRoute(route), location.href).href) },
      { label: 'Changes of this turn', run: () => context.navigate({ ...route, screen: 'changes' }) },
      'line',
      { label: 'Branch from here', hint: 'A new chat with everything up to this turn', run: () => createChat(context, { kind: 'fork', chat: context.chat, turnId: this.id }) },
      ...(later > 0 && !isBusy ? [{ label: 'Rewind to here', hint: `Removes ${plural(later, 'later turn')}`, danger: true, run: () => this.rewind(later) }] : []),
    ]);
  }

  /** @param {number} later */
  async rewind(later) {
    const isSure = await askYesNo({
      title: 'Rewind to here?', text: `${plural(later, 'turn')} after this one leave the chat, and the agent forgets them. If they changed files you are asked what to do with those.`,
      yes: 'Rewind', danger: true,
    });
    if (!isSure) return;
    const sent = this.context.dispatch({
      type: 'chat/turnStarted', turnId: `turn-${randomId()}`, startedAt: new Date().toISOString(),
      message: { text: `/rewind ${later}`, origin: { kind: 'user' } },
    });
    await reportProblem(sent, 'Not rewound');
  }
}

/** @param {any} chat @param {string} id */
function countLater(chat, id) {
  const turns = chat?.turns ?? [];
  const index = turns.findIndex((/** @type {any} */ turn) => turn.id === id);
  return index < 0 ? 0 : turns.length - 1 - index;
}

/** Model, duration, tokens, cost, as far as they are known. @param {any} turn */
function describeTurn(turn) {
  const usage = turn.usage ?? {};
  const end = turn.state === 'cancelled' ? 'stopped' : turn.state === 'error' ? 'failed' : '';
  const model = usage.model ?? turn.message?.model?.id ?? '';
  return [end, model, formatDuration(turn.duration), describeUsage([usage])].filter(Boolean).join(' · ');
}

/** @param {string} text */
export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    showNote('Copied');
  } catch {
    copyBySelection(text);
  }
}

/** Pages without https have no clipboard of the newer kind. @param {string} text */
function copyBySelection(text) {
  const area = h('textarea.spoken', { value: text, readOnly: true });
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  showNote(isCopied ? 'Copied' : 'This browser does not allow copying here. Select the text instead.', { isProblem: !isCopied });
}
