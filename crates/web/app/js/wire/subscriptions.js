/**
 * Which channels are to be watched, with what, and who waits for them.
 *
 * Promises: whoever waits for a channel hears that it is there, or why not.
 * Must not know: connections, states.
 */

/** @typedef {import('./reduce/fields.js').Json} Json */
/** @typedef {{resolve: () => void, reject: (error: Error) => void}} Waiter */
/** @typedef {{further: Json, isThere: boolean, waiters: Waiter[]}} Subscription `further`: the params of its `subscribe` beside the channel */

export class Subscriptions {
  /** @type {Map<string, Subscription>} */
  #channels = new Map();

  /** Wants a channel, from now on with these params. @param {string} channel @param {Json} further @returns {Promise<void>} fulfilled when its state is there */
  add(channel, further) {
    const known = this.#channels.get(channel);
    /** @type {Subscription} */
    const subscription = { further, isThere: known?.isThere ?? false, waiters: [...(known?.waiters ?? [])] };
    this.#channels.set(channel, subscription);
    /** @type {Promise<void>} */
    const there = new Promise((resolve, reject) => {
      subscription.waiters.push({ resolve, reject });
    });
    there.catch(() => {}); // whoever does not wait for it hears of it by other means
    return there;
  }

  /** @param {string} channel */
  has(channel) {
    return this.#channels.has(channel);
  }

  /** @param {string} channel */
  get(channel) {
    return this.#channels.get(channel);
  }

  /** @returns {string[]} all that are wanted */
  all() {
    return [...this.#channels.keys()];
  }

  /** @returns {string[]} those that a connection watched, and that the next one is to resume */
  there() {
    return this.all().filter((channel) => this.#channels.get(channel)?.isThere);
  }

  /** @returns {string[]} those that no connection watched yet */
  missing() {
    return this.all().filter((channel) => !this.#channels.get(channel)?.isThere);
  }

  /** @param {string} channel */
  markThere(channel) {
    const subscription = this.#channels.get(channel);
    if (subscription !== undefined) {
      subscription.isThere = true;
      for (const { resolve } of subscription.waiters.splice(0)) {
        resolve();
      }
    }
  }

  /** Wants a channel no more. @param {string} channel @param {Error} why for those who wait @returns {boolean} whether it was wanted */
  remove(channel, why) {
    const subscription = this.#channels.get(channel);
    this.#channels.delete(channel);
    for (const { reject } of subscription?.waiters ?? []) {
      reject(why);
    }
    return subscription !== undefined;
  }
}
