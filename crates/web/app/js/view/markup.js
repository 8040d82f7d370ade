// What the host makes of Markdown, code and diffs: asked for in batches, remembered for a while.
//
// Promises: what is asked for in one frame goes in one request; a request holds no more than the host takes; what was answered is not
// asked for again as long as it is remembered. A host that does not answer leaves the text plain: callers get null then, and what it
// refuses to render has an `error` in the place of a tree.
// Must not know: who draws it.

/** @typedef {{ markdown: string, open?: boolean } | { code: string, lang?: string } | { diff: { before: string | null, after: string | null, path: string, context?: number } }} MarkupItem */
/** @typedef {{ tree?: unknown[], stable?: number, blocks?: number, runs?: import('../ui/highlight.js').Run[], language?: string, rows?: unknown[], binary?: boolean, path?: string, added?: number, removed?: number, cut?: boolean, error?: string }} MarkupAnswer */

/** What one request may hold; the host takes 64 items and 256 KiB. */
const ITEMS_MAX = 64;
const BYTES_MAX = 250 << 10;

/** The host answers four requests of a device at a time; one stays free for what is typed or opened now. */
const IN_FLIGHT_MAX = 3;

/** Characters of requests and answers that are remembered. */
const REMEMBERED_MAX = 4 << 20;

/** How often an item is asked for again that came without all its colours: a grammar's first use takes longer than a request may. */
const CUT_MAX = 3;

/** How long nothing is asked after a failure. */
const PAUSE_MS = 2_000;

export class Markup {
  /** @param {(items: MarkupItem[]) => Promise<MarkupAnswer[]>} post sends a request */
  constructor(post) {
    this.post = post;
    /** @type {{ item: MarkupItem, key: string, size: number, cuts: number, answer: (answer: MarkupAnswer | null) => void }[]} */
    this.waiting = [];
    this.inFlight = 0;
    this.isAsked = false;
    this.pausedUntil = 0;
    /** @type {Map<string, MarkupAnswer>} */
    this.remembered = new Map();
    this.rememberedSize = 0;
  }

  /**
   * Asks for one item; null if the host does not answer now.
   * @param {MarkupItem} item
   * @returns {Promise<MarkupAnswer | null>}
   */
  render(item) {
    const key = JSON.stringify(item);
    const known = this.remembered.get(key);
    if (known) return Promise.resolve(known);
    const size = new TextEncoder().encode(key).length;
    if (size > BYTES_MAX) return Promise.resolve({ error: 'it is too large' });
    if (performance.now() < this.pausedUntil) return Promise.resolve(null);
    return new Promise((answer) => {
      this.waiting.push({ item, key, size, cuts: 0, answer });
      this.sendSoon();
    });
  }

  /**
   * What is remembered, so that what was drawn once is drawn at once.
   * @param {MarkupItem} item
   */
  recall(item) {
    return this.remembered.get(JSON.stringify(item));
  }

  sendSoon() {
    if (this.isAsked) return;
    this.isAsked = true;
    queueMicrotask(() => {
      this.isAsked = false;
      while (this.waiting.length > 0 && this.inFlight < IN_FLIGHT_MAX) this.sendBatch();
    });
  }

  async sendBatch() {
    /** @type {typeof this.waiting} */
    const batch = [];
    let size = 0;
    for (const next of this.waiting) {
      if (batch.length === ITEMS_MAX || (batch.length > 0 && size + next.size > BYTES_MAX)) break;
      batch.push(next);
      size += next.size;
    }
    this.waiting = this.waiting.slice(batch.length);
    this.inFlight += 1;
    try {
      const answers = await this.post(batch.map(({ item }) => item));
      batch.forEach((asked, index) => {
        const found = answers[index];
        if (found && !found.error && !found.cut) this.remember(asked.key, found);
        // What is still being written is drawn again anyway.
        if (found?.cut && !('open' in asked.item) && asked.cuts < CUT_MAX) this.waiting.push({ ...asked, cuts: asked.cuts + 1 });
        else asked.answer(found ?? null);
      });
    } catch {
      // Text stands there plain as long as the host is away; the connection's own line on the screen says that it is.
      this.pausedUntil = performance.now() + PAUSE_MS;
      for (const { answer } of batch) answer(null);
    } finally {
      this.inFlight -= 1;
      if (this.waiting.length > 0) this.sendSoon();
    }
  }

  /**
   * @param {string} key
   * @param {MarkupAnswer} answer
   */
  remember(key, answer) {
    this.remembered.set(key, answer);
    this.rememberedSize += key.length;
    for (const [oldest] of this.remembered) {
      if (this.rememberedSize <= REMEMBERED_MAX) break;
      this.remembered.delete(oldest);
      this.rememberedSize -= oldest.length;
    }
  }
}
