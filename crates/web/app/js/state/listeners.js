/**
 * Who wants to be told.
 *
 * Promises: all are told, also if one of them fails; its error is reported and goes no further, for a screen that cannot be drawn
 * is no reason to give up a connection.
 */

/** @param {() => void} tell */
export function tellSafely(tell) {
  try {
    tell();
  } catch (error) {
    if (globalThis.reportError === undefined) {
      console.error(error);
    } else {
      globalThis.reportError(error);
    }
  }
}

/** @template T */
export class Listeners {
  /** @type {Set<{listener: (value: T) => void}>} */
  #all = new Set();

  /** @param {(value: T) => void} listener @returns {() => void} */
  add(listener) {
    const entry = { listener };
    this.#all.add(entry);
    return () => this.#all.delete(entry);
  }

  /** @param {T} value */
  call(value) {
    for (const { listener } of [...this.#all]) {
      tellSafely(() => listener(value));
    }
  }
}
