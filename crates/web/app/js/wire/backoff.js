/**
 * How long to wait before the next attempt: doubling up to a bound, and anything below that by chance, so that clients
 * which lost their host together do not reconnect together.
 */

/** The bound of the first wait, in milliseconds. */
const FIRST_MS = 100;

export class Backoff {
  #attempt = 0;
  #maxMs;
  #chance;

  /** @param {number} maxMs @param {() => number} [chance] */
  constructor(maxMs, chance = Math.random) {
    this.#maxMs = maxMs;
    this.#chance = chance;
  }

  /** The wait before the next attempt, in milliseconds. */
  next() {
    this.#attempt += 1;
    return this.bound() * this.#chance();
  }

  bound() {
    return Math.min(FIRST_MS * 2 ** Math.min(Math.max(this.#attempt - 1, 0), 20), this.#maxMs);
  }

  /** A connection lasted this long. One that ends at once counts as a failed attempt, or a host that takes connections and drops them would be asked without pause. @param {number} lastedMs */
  recordConnection(lastedMs) {
    if (lastedMs >= this.#maxMs) {
      this.#attempt = 0;
    }
  }
}
