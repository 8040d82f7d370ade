// What a model was sent, call by call: the sections of its prompt before and after, the parts of the messages, and the request.
//
// Promises: a restricted section is its id, size and digest; nothing is fetched before it is looked at; a device that may not look is told
// how to get the right to. Must not know: how a prompt is made.

import { fill, h, iconButton, setAttribute, setText, show } from '../ui/dom.js';
import { writeOut, writeOutName } from '../ui/visible.js';
import { api } from '../state/api.js';
import { findMarkup } from './chat_context.js';
import { drawDiff } from './diff.js';
import { formatBytes, formatCost, formatCount, formatDuration, formatTime } from './format.js';

const TABS = { sections: 'Sections', message: 'Message', sent: 'As sent' };

/** @type {import('./shell.js').Mount} */
export function mountPrompt(container, context) {
  const view = new PromptView(container, context);
  return { update: (route) => view.update(route), unmount: () => view.unmount() };
}

class PromptView {
  /** @param {HTMLElement} container @param {any} context */
  constructor(container, context) {
    this.given = context;
    this.route = context.route;
    /** @type {any[]} */
    this.calls = [];
    /** @type {any} */
    this.call = undefined;
    this.tab = 'sections';
    this.loading = 0;
    this.chatUri = '';
    this.release = () => {};
    const isPanel = container.id !== 'main';
    this.position = h('span.prompt-position');
    this.previous = iconButton('back', 'Previous call', () => this.step(-1));
    this.next = iconButton('forward', 'Next call', () => this.step(1));
    this.facts = h('div.prompt-facts');
    const back = iconButton('back', 'Back to the chat', () => context.goBack({ screen: 'session', session: this.route.session, chat: this.route.chat }));
    this.head = h('header.prompt-head', null, !isPanel && back, !isPanel && h('h1.head-title', null, 'Prompt'), this.position, isPanel && h('span.grow'), this.previous, this.next, this.facts);
    this.body = h('div.scroller.prompt-scroller', { role: 'tabpanel', tabIndex: 0, id: 'prompt-body' });
    this.tabs = Object.entries(TABS).map(([name, label]) => h('button.prompt-tab', {
      role: 'tab', 'aria-controls': 'prompt-body', data: { name }, on: { click: () => this.choose(name) },
    }, label));
    this.element = h('div.screen', null, this.head, this.body, h('div.prompt-tabs', { role: 'tablist', 'aria-label': 'Parts of the call' }, this.tabs));
    container.append(this.element);
    /** @type {any} */
    this.session = undefined;
    this.release = context.store.watch(this.route.session, (/** @type {any} */ session) => {
      this.session = session;
      this.open(this.route.chat ?? session?.defaultChat);
    });
    this.drawTabs();
  }

  unmount() {
    this.loading += 1;
    this.release();
    this.element.remove();
  }

  /** @param {any} route */
  update(route) {
    this.route = route;
    if (route.chat && route.chat !== this.chatUri) this.open(route.chat);
    else if (route.call && String(this.call?.call) !== route.call) this.load(route.call);
  }

  /** @param {string | undefined} chat */
  async open(chat) {
    if (!chat || chat === this.chatUri) return; // not known yet, or open already
    this.chatUri = chat;
    const own = (this.loading += 1);
    fill(this.body, h('p.muted', null, 'Loading …'));
    try {
      const answer = await api.prompt(chat);
      if (own !== this.loading) return; // another chat was opened meanwhile
      // An agent that asks no model renders prompts all the same.
      const renders = (answer.renders ?? []).map((/** @type {any} */ render, /** @type {number} */ index) => ({ ...render, call: `render ${index + 1}`, isRender: true }));
      this.calls = answer.calls?.length > 0 ? answer.calls : renders;
      if (this.calls.length === 0) return this.drawNothing();
      const wanted = this.route.call ?? String(this.calls.at(-1).call);
      await this.load(wanted);
    } catch (error) {
      if (own === this.loading) this.drawProblem(error);
    }
  }

  /** @param {string} number */
  async load(number) {
    const render = this.calls.find((call) => call.isRender && call.call === number);
    if (render) {
      this.call = render;
      return this.draw();
    }
    const own = (this.loading += 1);
    try {
      const call = await api.prompt(this.chatUri, number);
      if (own !== this.loading) return; // another call was asked for meanwhile
      this.call = call;
      this.draw();
    } catch (error) {
      if (own === this.loading) this.drawProblem(error);
    }
  }

  /** @param {any} error */
  drawProblem(error) {
    const isForbidden = error?.status === 403;
    fill(this.body, h('div.empty', { role: 'alert' },
      h('h2', null, isForbidden ? 'This device may not look at prompts' : 'The prompt cannot be read now'),
      h('p.muted', null, isForbidden ? 'Pair it again with “greenroom pair --inspect”, or use the browser that “greenroom open” starts.' : String(error?.message ?? error)),
      !isForbidden && h('button.button', { on: { click: () => { const chat = this.chatUri; this.chatUri = ''; this.open(chat); } } }, 'Try again')));
    this.drawHead();
  }

  drawNothing() {
    this.call = undefined;
    this.drawHead();
    fill(this.body, h('div.empty', null, h('p.muted', null, 'No model calls are stored for this chat.')));
  }

  /** @param {number} by */
  step(by) {
    const at = this.calls.findIndex((call) => call.call === this.call?.call) + by;
    const call = this.calls[at];
    if (call) this.given.navigate({ ...this.route, screen: 'prompt', chat: this.chatUri, call: String(call.call) }, { replace: true });
  }

  /** @param {string} name */
  choose(name) {
    this.tab = name;
    this.drawTabs();
    this.draw();
  }

  drawTabs() {
    for (const tab of this.tabs) setAttribute(tab, 'aria-selected', String(tab.dataset.name === this.tab));
  }

  drawHead() {
    const at = this.calls.findIndex((call) => call.call === this.call?.call);
    setText(this.position, at < 0 ? '' : `${this.call.isRender ? 'prompt' : 'call'} ${at + 1} of ${this.calls.length}`);
    this.previous.disabled = at <= 0;
    this.next.disabled = at < 0 || at >= this.calls.length - 1;
    show(this.previous, this.calls.length > 1);
    show(this.next, this.calls.length > 1);
    setText(this.facts, this.call ? describeCall(this.call) : '');
    show(this.facts, this.call !== undefined);
  }

  /** The client that was asked to rewrite the prompt: by its name as long as it is here. */
  nameAsked() {
    const id = this.call.transform?.asked?.clientId ?? 'a client';
    const client = (this.session?.activeClients ?? []).find((/** @type {any} */ one) => one.clientId === id);
    return writeOutName(String(client?.displayName || id));
  }

  draw() {
    if (!this.call) return; // on its way
    this.drawHead();
    const drawn = this.tab === 'sections' ? drawSections(this.call, this.nameAsked()) : this.tab === 'message' ? drawParts(this.call) : drawRequest(this.call);
    fill(this.body, drawn);
    this.body.scrollTop = 0;
  }
}

/** @param {any} call */
function describeCall(call) {
  const tokens = typeof call.inputTokens === 'number' ? `${formatCount(call.inputTokens)} tokens in, ${formatCount(call.outputTokens ?? 0)} out` : '';
  const purpose = call.purpose && call.purpose !== 'answer' ? call.purpose : '';
  const cost = typeof call.cost === 'number' ? { amount: call.cost } : call.cost;
  return [writeOutName(String(call.model ?? '')), purpose, tokens, formatCost(cost), formatTime(call.at)].filter(Boolean).join(' · ');
}

/** @param {any} section */
function sizeOf(section) {
  return formatBytes(section.bytes ?? new TextEncoder().encode(String(section.after ?? '')).length);
}

/** What came of asking a client to rewrite the prompt. @param {any} transform @param {string} who */
function describeTransform(transform, who) {
  const asked = transform?.asked;
  if (!asked) return '';
  const took = formatDuration(asked.ms);
  return asked.error ? `Passed through: ${who} was asked and sent an invalid answer: ${writeOutName(String(asked.error))}` : `${who} was asked${took ? `, ${took}` : ''}: ${writeOutName(String(transform.outcome ?? ''))}`;
}

/** @param {any} call @param {string} who the client that was asked to rewrite it */
function drawSections(call, who) {
  const sections = call.sections ?? [];
  const asked = describeTransform(call.transform, who);
  const ms = formatDuration(call.transform?.asked?.ms);
  return [asked && h('p.hint', null, asked), ...sections.map((/** @type {any} */ section) => drawSection(section, who, ms)), sections.length === 0 && h('p.muted', null, 'This call had no system prompt.')];
}

/** @param {any} section @param {string} who @param {string} ms */
function drawSection(section, who, ms) {
  const name = writeOutName(String(section.id ?? ''));
  if (section.restricted) {
    return h('div.prompt-section', null, h('div.row', { class: 'prompt-line is-restricted' }, h('span.prompt-name', null, name), h('span.prompt-word', null, `restricted · ${sizeOf(section)}`)),
      h('p.hint.mono', null, `sha256 ${writeOutName(String(section.sha256))}`));
  }
  const before = String(section.before ?? '');
  const after = String(section.after ?? before);
  const isRewritten = before !== after;
  const body = h('div.prompt-body');
  const word = h('span.prompt-word', { class: isRewritten ? 'is-rewritten' : '' }, isRewritten ? `rewritten${who ? ` by ${who}` : ''}${ms ? `, ${ms}` : ''}` : sizeOf(section));
  const details = h('details.prompt-section', null, h('summary', null, h('span.prompt-name', null, name), word), body);
  let isBuilt = false;
  details.addEventListener('toggle', async () => {
    if (!details.open || isBuilt) return; // folded again, or built before
    isBuilt = true;
    if (!isRewritten) return fill(body, h('pre.output', { tabIndex: 0 }, writeOut(before)));
    const answer = await findMarkup().render({ diff: { before, after, path: `${section.id}.md` } });
    return fill(body, answer?.rows ? h('div.file', null, drawDiff(answer)) : [h('h4.tool-title', null, 'Before'), h('pre.output', null, writeOut(before)), h('h4.tool-title', null, 'After'), h('pre.output', null, writeOut(after))]);
  });
  if (isRewritten) details.open = true;
  return details;
}

/** @param {any} call */
function drawParts(call) {
  const parts = call.parts ?? [];
  if (parts.length === 0) return [h('p.muted', null, call.isRender ? 'This prompt went to no model.' : 'This call had no message parts.')];
  return parts.map((/** @type {any} */ part) => h('div.prompt-section', null,
    h('div.row', { class: 'prompt-line' }, h('span.prompt-name', null, [part.kind, part.name].filter(Boolean).map((text) => writeOutName(String(text))).join(' ')),
      h('span.prompt-word', null, [part.treatment, part.became && part.became !== part.treatment ? `as ${part.became}` : '', formatBytes(part.bytes), part.tokens ? `about ${formatCount(part.tokens)} tokens` : ''].filter(Boolean).join(' · '))),
    part.why && h('p.hint', { dir: 'auto' }, writeOut(String(part.why)))));
}

/** @param {any} call */
function drawRequest(call) {
  if (call.isRender) return [h('p.muted', null, 'This prompt went to no model.')];
  return [
    call.fault && h('p.problem', { role: 'alert' }, `Not as it was sent: ${writeOutName(String(call.fault))}`),
    h('pre.output', { tabIndex: 0 }, writeOut(`POST ${call.url ?? ''}`)),
    h('h4.tool-title', null, 'Body'),
    call.withheld ? h('p.muted', null, `Not shown: ${writeOutName(String(call.withheld))}.`) : drawBody(JSON.stringify(call.request ?? null, null, 2)),
  ];
}

/** @param {string} text */
function drawBody(text) {
  const CHARS = 60_000;
  const seen = writeOut(text);
  const block = h('pre.output.prompt-request', { tabIndex: 0 }, seen.slice(0, CHARS));
  if (seen.length <= CHARS) return block;
  const more = h('button.output-more', { on: { click: () => { setText(block, seen); more.remove(); } } }, `Show all ${formatBytes(seen.length)}`);
  return h('div', null, block, more);
}
