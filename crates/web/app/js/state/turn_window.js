/**
 * How much of a long chat is in memory.
 *
 * Promises: at most `TURNS_MAX` whole turns of a chat. Older turns come in pages; the pages farthest from where somebody reads
 * are dropped whole: of each turn its id stays, marked `isDropped`, so that the list does not jump, and the cursor of the page,
 * so that it can be fetched again. What cannot be put together any more is subscribed to anew.
 * Must not know: connections, the document, heights.
 */

/** @typedef {import('../wire/reduce/fields.js').Json} Json */
/** @typedef {{cursor: string, ids: string[]}} Page the turns that a cursor led to */
/** @typedef {{pages: Page[], asked?: string, reading?: string, loading?: Promise<boolean>}} Held `reading` is none at the end of the chat */
/**
 * @typedef {object} WindowPorts
 * @property {(chat: string) => Json | undefined} stateOf a chat as the host confirmed it
 * @property {(chat: string, state: Json) => void} replace holds another state of the chat
 * @property {(chat: string, cursor: string) => Promise<unknown>} fetch asks for a page, which comes as an action before the answer
 * @property {(chat: string) => void} renew subscribes to the chat anew
 */

const TURNS_MAX = 1_000;

/** What stays of a turn. @param {Json} turn @returns {Json} */
const dropped = ({ id, state }) => ({ id, state, message: { text: '' }, responseParts: [], isDropped: true });

export class TurnWindow {
  /** @type {Map<string, Held>} */
  #chats = new Map();
  #ports;
  #turnsMax;

  /** @param {WindowPorts} ports @param {number} [turnsMax] */
  constructor(ports, turnsMax = TURNS_MAX) {
    this.#ports = ports;
    this.#turnsMax = turnsMax;
  }

  /** @param {string} chat @returns {Held} */
  #held(chat) {
    let held = this.#chats.get(chat);
    if (held === undefined) {
      held = { pages: [] };
      this.#chats.set(chat, held);
    }
    return held;
  }

  /** The state of the chat is another one, or gone: no page of it is known. @param {string} chat */
  reset(chat) {
    this.#chats.delete(chat);
  }

  /** Fetches the turns before the oldest one. @param {string} chat @returns {Promise<boolean>} whether there were any */
  fetchOlder(chat) {
    const cursor = this.#ports.stateOf(chat)?.turnsNextCursor;
    return cursor === undefined ? Promise.resolve(false) : this.#load(chat, cursor);
  }

  /** Somebody reads at this turn, or at the end of the chat: what was dropped around it is fetched again. @param {string} chat @param {string} [turnId] @returns {Promise<void>} */
  async readAt(chat, turnId) {
    const held = this.#held(chat);
    held.reading = turnId;
    const index = turnId === undefined ? 0 : held.pages.findIndex((page) => page.ids.includes(turnId));
    // Pages are in the order they were fetched, the newest turns first: what is read next is on either side.
    for (const page of held.pages.slice(Math.max(index - 1, 0), index + 2)) {
      if (this.#hasDropped(chat, page) && this.#chats.get(chat) === held && held.reading === turnId) {
        await this.#load(chat, page.cursor);
        if (this.#hasDropped(chat, page)) {
          this.#ports.renew(chat); // the host's pages are others now
          return;
        }
      }
    }
  }

  /** One page after the other. @param {string} chat @param {string} cursor @returns {Promise<boolean>} */
  async #load(chat, cursor) {
    const held = this.#held(chat);
    if (held.loading !== undefined) {
      const isSame = held.asked === cursor;
      const result = await held.loading;
      return isSame ? result : this.#load(chat, cursor);
    }
    held.asked = cursor;
    held.loading = (async () => {
      try {
        await this.#ports.fetch(chat, cursor);
        return true;
      } finally {
        held.asked = undefined;
        held.loading = undefined;
      }
    })();
    return held.loading;
  }

  /** Takes the page that just came, with the state that has it. @param {string} chat @param {Json} action */
  takePage(chat, action) {
    const held = this.#held(chat);
    const cursor = held.asked;
    const isKnown = held.pages.some((page) => page.cursor === cursor);
    if (cursor !== undefined && !isKnown && Array.isArray(action.turns)) {
      held.pages.push({ cursor, ids: action.turns.map((/** @type {Json} */ turn) => turn?.id) });
      held.reading ??= action.turns.at(-1)?.id; // who fetches older turns reads there
    }
    this.#drop(chat, held);
  }

  /** Turns were added or cut off. @param {string} chat */
  takeList(chat) {
    const held = this.#held(chat);
    const turns = this.#ports.stateOf(chat)?.turns ?? [];
    if (turns.at(-1)?.isDropped === true) {
      this.reset(chat);
      this.#ports.renew(chat); // cut back to a turn that is not here any more
      return;
    }
    const ids = new Set(turns.map((/** @type {Json} */ turn) => turn.id));
    held.pages = held.pages
      .map((page) => ({ ...page, ids: page.ids.filter((id) => ids.has(id)) }))
      .filter((page) => page.ids.length > 0);
    this.#drop(chat, held);
  }

  /** @param {string} chat @param {Page} page */
  #hasDropped(chat, page) {
    const turns = this.#ports.stateOf(chat)?.turns ?? [];
    const ids = new Set(page.ids);
    return turns.some((/** @type {Json} */ turn) => turn.isDropped === true && ids.has(turn.id));
  }

  /** Drops whole pages, the farthest from who reads first, until few enough turns are left. @param {string} chat @param {Held} held */
  #drop(chat, held) {
    const state = this.#ports.stateOf(chat);
    const turns = /** @type {Json[]} */ (state?.turns ?? []);
    let count = turns.filter((turn) => turn.isDropped !== true).length;
    if (state === undefined || count <= this.#turnsMax) {
      return;
    }
    const places = new Map(turns.map((turn, index) => [turn.id, index]));
    const reading = (held.reading === undefined ? undefined : places.get(held.reading)) ?? turns.length;
    const distance = (/** @type {Page} */ page) =>
      Math.min(...page.ids.map((id) => Math.abs((places.get(id) ?? reading) - reading)));
    const gone = new Set();
    for (const page of held.pages.toSorted((a, b) => distance(b) - distance(a))) {
      if (count <= this.#turnsMax) {
        break;
      }
      for (const id of page.ids) {
        const index = places.get(id);
        if (index !== undefined && turns[index].isDropped !== true) {
          gone.add(id);
          count -= 1;
        }
      }
    }
    if (gone.size === 0) {
      this.reset(chat);
      this.#ports.renew(chat); // a chat that grew so long while it was watched starts over at its end
      return;
    }
    this.#ports.replace(chat, { ...state, turns: turns.map((turn) => (gone.has(turn.id) ? dropped(turn) : turn)) });
  }
}
