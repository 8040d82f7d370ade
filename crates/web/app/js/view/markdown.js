// Markdown on the page, complete or while it is being written.
//
// Promises: new text is on the page at the next frame, plain; finished blocks are drawn once and then left alone; at the end the whole is
// drawn once more, and only what differs is replaced. At most one question about a part is under way, and no more than one in 120 ms.
// Without an answer the text stands there plain. Must not know: AHP, where the text comes from.

import { buildTree, readText } from '../ui/tree.js';

/** @typedef {import('./markup.js').Markup} Markup */

/** Time between two questions about a part. */
const ASK_EVERY_MS = 120;

/** How much may come inside of an open fence before it is asked about. */
const FENCE_CHARS = 4_096;

/** How much may stand open at all; a longer block is shown plain until it ends. */
const OPEN_CHARS_MAX = 200_000;

/** How far white space is looked for before what no block shows yet. */
const GAP_CHARS = 80;

/** How long to wait before the whole is asked for again. */
const FINISH_AGAIN_MS = 2_500;

/** What a text tells those around it when it was drawn anew: it may take less room than it did. */
export const DRAWN = 'drawn';

/** @typedef {{ json: string, node: Node }} DrawnBlock */

export class MarkdownView {
  /**
   * @param {Markup} markup
   * @param {{ isWriting?: boolean }} [options]
   */
  constructor(markup, options = {}) {
    this.markup = markup;
    this.element = document.createElement('div');
    this.element.className = 'md';
    this.element.dir = 'auto';
    this.source = '';
    this.isWriting = options.isWriting ?? false;
    /** Where the part begins that may still change. */
    this.stableAt = 0;
    /** How many of the drawn blocks stand before it. */
    this.stableBlocks = 0;
    /** How much of the source the drawn blocks show. */
    this.drawnTo = 0;
    /** @type {DrawnBlock[]} */
    this.blocks = [];
    /** The end of the text that no block shows yet; what of it continues a line may stand in another node. */
    this.rest = document.createTextNode('');
    /** @type {Text | undefined} */
    this.lineEnd = undefined;
    this.isAsking = false;
    this.askedAt = 0;
    this.askedTo = 0;
    /** Where the fence begins that was open when it was last asked. */
    this.askedFence = -1;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.timer = undefined;
    this.version = 0;
  }

  /**
   * Shows a source, of which what was shown before is usually the beginning.
   * @param {string} source
   * @param {boolean} isWriting
   */
  update(source, isWriting) {
    const hasEnded = this.isWriting && !isWriting;
    const isSame = source.length === this.source.length && source === this.source;
    // Also after its end: what was stopped here may have gone on at the host for a moment.
    if (!isSame && this.source !== '' && source.startsWith(this.source)) {
      this.append(source.slice(this.source.length));
    } else if (!isSame) {
      this.reset(source);
    }
    this.isWriting = isWriting;
    if (!isWriting && (hasEnded || !isSame)) this.finish();
  }

  /** @param {string} source */
  reset(source) {
    this.version += 1;
    this.source = source;
    this.stableAt = 0;
    this.stableBlocks = 0;
    this.drawnTo = 0;
    this.askedTo = 0;
    this.askedFence = -1;
    this.blocks = [];
    this.element.replaceChildren();
    this.showRest();
    if (this.isWriting) this.askSoon();
  }

  /**
   * Adds what was written.
   * @param {string} text
   */
  append(text) {
    this.source += text;
    const isPlain = this.rest.parentElement?.classList.contains('md-plain') ?? false;
    if (this.rest.isConnected && (isPlain || !text.includes('\n') || this.isInCode())) this.rest.appendData(text);
    else this.showRest();
    this.askSoon();
  }

  /** Whether the text goes on inside of the code that is drawn last. */
  isInCode() {
    const last = this.blocks.at(-1)?.node;
    return this.askedFence >= 0 && last instanceof Element && last.matches('figure.code');
  }

  /** Takes the text that no block shows off the page. */
  removeRest() {
    this.lineEnd?.remove();
    this.lineEnd = undefined;
    const parent = this.rest.parentElement;
    this.rest.remove();
    if (parent?.classList.contains('md-plain')) parent.remove();
    for (const live of this.element.querySelectorAll('.md-live')) live.classList.remove('md-live');
  }

  /** Puts the text that no block shows behind the last block: as far as it continues a line of text, into that. */
  showRest() {
    this.removeRest();
    const text = this.source.slice(this.drawnTo);
    if (!text) return;
    const { place, between = '' } = this.findPlace();
    const gap = this.isInCode() ? text.length : text.search(/\n[ \t]*\n|\n$/);
    const line = place ? text.slice(0, gap < 0 ? text.length : gap) : '';
    const below = text.slice(line.length);
    if (place && line) {
      const node = document.createTextNode(between + line);
      place.append(node);
      if (below.trim()) this.lineEnd = node;
      else this.rest = node;
    }
    if (!line || below.trim()) {
      this.rest = document.createTextNode(below.replace(/^\n+/, ''));
      const plain = document.createElement('p');
      plain.className = 'md-plain';
      plain.dir = 'auto';
      plain.append(this.rest);
      this.element.append(plain);
    }
    if (this.isWriting) this.rest.parentElement?.classList.add('md-live');
  }

  /** Where the line goes on that is drawn last, if it does, and what stands between: white space at an end is in no block. */
  findPlace() {
    const place = this.isWriting ? findLastLine(this.blocks.at(-1)?.node) : undefined;
    const gap = /\s*$/.exec(this.source.slice(Math.max(0, this.drawnTo - GAP_CHARS), this.drawnTo))?.[0] ?? '';
    if (place?.matches('code')) return this.isInCode() ? { place, between: place.textContent && gap.endsWith('\n') ? '\n' : '' } : {};
    // Behind the end of a line only a paragraph goes on, and not behind an empty one.
    const isOver = gap.includes('\n') && (/\n.*\n/.test(gap) || !place?.matches('.md > p'));
    return isOver ? {} : { place, between: gap && ' ' };
  }

  askSoon() {
    if (this.isAsking || this.timer !== undefined || !this.isWriting) return;
    // A long open block takes longer to draw, so it is asked about less often.
    const every = Math.max(ASK_EVERY_MS, (this.source.length - this.stableAt) / 80);
    const wait = Math.max(0, this.askedAt + every - performance.now());
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.ask();
    }, wait);
  }

  async ask() {
    const open = this.source.slice(this.stableAt);
    const grown = this.source.length - this.askedTo;
    if (!this.isWriting || grown === 0 || open.length > OPEN_CHARS_MAX) return; // asked again when more comes, or at the end
    const { version, stableAt } = this;
    const inOpen = findFence(open);
    const fence = inOpen < 0 ? -1 : stableAt + inOpen;
    if (fence >= 0 && fence === this.askedFence && grown < FENCE_CHARS) return; // asked when it closes or grew
    this.isAsking = true;
    this.askedAt = performance.now();
    this.askedTo = this.source.length;
    // Its first line may say more: in which language it is.
    this.askedFence = open.includes('\n', inOpen) ? fence : -1;
    const answer = await this.markup.render({ markdown: open, open: true });
    this.isAsking = false;
    if (version !== this.version || !this.isWriting) return; // another text, or the end, was drawn meanwhile
    if (answer?.tree) {
      this.redraw(this.stableBlocks, answer.tree, stableAt + open.length);
      this.advance(open, answer);
    }
    this.askSoon();
  }

  /**
   * Moves the beginning of the open part behind what cannot change any more.
   * @param {string} open
   * @param {import('./markup.js').MarkupAnswer} answer
   */
  advance(open, answer) {
    const stable = countUnits(open, answer.stable ?? 0);
    if (stable === 0 || !answer.blocks) return; // all of it may change
    this.stableAt += stable;
    this.stableBlocks += answer.blocks;
  }

  /** Draws the whole once more: a link's definition may have come after it. */
  async finish() {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.version += 1;
    const { version, source } = this;
    const known = this.markup.recall({ markdown: source });
    const answer = known ?? (await this.markup.render({ markdown: source }));
    if (version !== this.version) return; // it goes on after all
    if (answer === null) this.finishLater(version);
    if (!answer?.tree) return this.showRest();
    return this.redraw(0, answer.tree, source.length);
  }

  /** Shows blocks, the text that none of them shows behind them, and says so. @param {number} from @param {unknown[]} tree @param {number} drawnTo */
  redraw(from, tree, drawnTo) {
    this.draw(from, tree);
    this.drawnTo = drawnTo;
    this.showRest();
    this.element.dispatchEvent(new Event(DRAWN, { bubbles: true }));
  }

  /** The host did not answer: the text stands there plain until it does. @param {number} version */
  finishLater(version) {
    this.timer = setTimeout(() => {
      if (version === this.version && this.element.isConnected) this.finish();
    }, FINISH_AGAIN_MS * (1 + Math.random()));
  }

  /**
   * Draws blocks behind the first `from`; those that are the same stay as they are.
   * @param {number} from
   * @param {unknown[]} tree
   */
  draw(from, tree) {
    this.removeRest();
    const kept = this.blocks.slice(0, from);
    const old = this.blocks.slice(from);
    /** @type {DrawnBlock[]} */
    const drawn = [];
    let isSame = true;
    tree.forEach((block, index) => {
      const json = JSON.stringify(block);
      const before = old[index];
      isSame &&= before !== undefined && before.json === json;
      if (isSame && before) return drawn.push(before);
      const node = buildTree([block]).firstChild ?? document.createTextNode(readText([block]));
      return drawn.push({ json, node });
    });
    const stay = new Set(drawn.map(({ node }) => node));
    for (const { node } of old) if (!stay.has(node)) this.element.removeChild(node);
    for (const { node } of drawn) if (node.parentNode !== this.element) this.element.append(node);
    this.blocks = [...kept, ...drawn];
  }
}

/**
 * The element at the end of a block in which a line of text can go on.
 * @param {Node | undefined} block
 * @returns {Element | undefined}
 */
function findLastLine(block) {
  let last = block instanceof Element ? block : undefined;
  while (last) {
    if (last.matches('p, h4, h5, h6, pre > code')) return last;
    if (!last.matches('ul, ol, li, blockquote, figure.code, pre')) return undefined;
    const next = last.lastElementChild;
    if (!next && last.matches('li')) return last;
    last = next ?? undefined;
  }
  return undefined;
}

/**
 * Where the fenced block begins, at the top level of a text, in which the text ends; -1 if it ends in none.
 * @param {string} text
 */
export function findFence(text) {
  let fence = '';
  let at = -1;
  let offset = 0;
  for (const line of text.split('\n')) {
    const mark = /^ {0,3}(`{3,}|~{3,})(.*)$/.exec(line);
    const [, marks = '', after = ''] = mark ?? [];
    if (mark && !fence && (marks[0] === '~' || !after.includes('`'))) {
      fence = marks;
      at = offset;
    } else if (mark && fence && marks[0] === fence[0] && marks.length >= fence.length && after.trim() === '') {
      fence = '';
      at = -1;
    }
    offset += line.length + 1;
  }
  return at;
}

/**
 * How many UTF-16 code units the first `bytes` bytes of a text take; the host counts bytes.
 * @param {string} text
 * @param {number} bytes
 */
export function countUnits(text, bytes) {
  let units = 0;
  let counted = 0;
  for (const char of text) {
    if (counted >= bytes) break;
    const code = char.codePointAt(0) ?? 0;
    counted += code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    units += char.length;
  }
  return units;
}
