// A place on the page that holds one screen at a time. Promises: a screen that is left is unmounted; a screen that loads late
// does not replace one that was asked for after it; one that cannot load says so and can be tried again.
// Must not know: which screens there are.

import { h, fill } from '../ui/dom.js';

/**
 * @typedef {object} Mounted
 * @property {(route: import('./route.js').Route) => void} update
 * @property {() => void} unmount
 *
 * @typedef {object} ViewContext
 * @property {any} store
 * @property {import('./route.js').Route} route
 * @property {(route: import('./route.js').Route, how?: {replace?: boolean}) => void} navigate
 *
 * @typedef {(container: HTMLElement, context: ViewContext) => Mounted} Mount
 */

/** @param {HTMLElement} container */
export function createSlot(container) {
  /** @type {{name: string, mounted: Mounted | null} | null} */
  let current = null;
  let attempt = 0;

  /**
   * Shows a screen, or tells the one that is there where it is now.
   * @param {string} name screens with one name are one screen
   * @param {() => Promise<Mount>} load
   * @param {ViewContext} context
   */
  async function show(name, load, context) {
    if (current?.name === name) {
      current.mounted?.update(context.route);
      return;
    }
    clear();
    /** @type {{name: string, mounted: Mounted | null}} */
    const own = { name, mounted: null };
    current = own;
    const ours = ++attempt;
    latest = context;
    try {
      const mount = await load();
      if (ours !== attempt) return; // another screen was asked for meanwhile
      fill(container);
      own.mounted = mount(container, latest);
    } catch (error) {
      if (ours !== attempt) return; // nobody looks at it any more
      reportError(error);
      current = null;
      fill(container, failure(() => show(name, load, latest)));
    }
  }

  /** @type {any} */
  let latest = null;

  function clear() {
    attempt += 1;
    current?.mounted?.unmount();
    current = null;
    fill(container);
  }

  return { show, clear, name: () => current?.name ?? null };
}

/** @param {() => void} retry */
function failure(retry) {
  return h('div.empty', { role: 'alert' },
    h('h2', null, 'This screen did not load'),
    h('p.muted', null, 'The host may be restarting, or this page is older than the host.'),
    h('div.row', null,
      h('button.button', { type: 'button', on: { click: retry } }, 'Try again'),
      h('button.button', { type: 'button', on: { click: () => location.reload() } }, 'Reload')));
}
