// The state of the connection in words, with what can be done about it. Promises: it is on screen in every state; nothing is said
// to be live that is not. Must not know: sockets, how often is tried.

import { fill, h, loadStyles, setData, setText } from '../ui/dom.js';

/** @typedef {{status: string, retryAt?: number | null, behind?: number, retryNow: () => void}} Connection */

/** @param {Connection} connection @returns {{short: string, long: string, action: string | null}} */
export function describeConnection(connection) {
  switch (connection.status) {
    case 'live':
      return { short: 'live', long: 'Live', action: null };
    case 'connecting':
      return { short: 'connecting', long: 'Connecting …', action: null };
    case 'catching-up':
      return { short: 'catching up', long: connection.behind ? `Catching up: ${connection.behind} actions` : 'Catching up', action: null };
    case 'waiting': {
      const seconds = Math.max(0, Math.ceil(((connection.retryAt ?? 0) - Date.now()) / 1000));
      return { short: 'reconnecting', long: seconds > 0 ? `Reconnecting in ${seconds} s` : 'Reconnecting …', action: 'Now' };
    }
    case 'offline':
      return { short: 'offline', long: 'Offline. What you see may be old.', action: 'Try now' };
    case 'other-tab':
      return { short: 'other tab', long: 'This page is open in another tab.', action: 'Use here' };
    case 'signed-out':
      return { short: 'signed out', long: 'This device was signed out.', action: 'Pair again' };
    case 'new-version':
      return { short: 'new version', long: 'The host has a new version of this page.', action: 'Reload' };
    default:
      return { short: connection.status, long: connection.status, action: null };
  }
}

/** What the button beside a state does. @param {Connection} connection */
async function act(connection) {
  if (connection.status === 'new-version') (await import('./worker.js')).loadNewVersion();
  else if (connection.status === 'signed-out') (await Promise.all([import('./sign_out.js'), loadStyles()]))[0].signOut();
  else connection.retryNow();
}

/**
 * A small mark for the head of a screen: shape and word.
 * @param {any} store
 * @returns {{element: HTMLElement, release: () => void}}
 */
export function connectionMark(store) {
  const word = h('span');
  const element = h('span.mark', { role: 'img' }, h('span.mark-dot', { 'aria-hidden': 'true' }), word);
  const draw = () => {
    const { short, long } = describeConnection(store.connection);
    setData(element, 'status', store.connection.status);
    setText(word, short);
    element.setAttribute('aria-label', `Connection: ${long}`);
  };
  const release = store.onConnection(draw);
  draw();
  return { element, release };
}

/** The line that shows every state but live. @param {HTMLElement} container @param {any} store */
export function watchConnection(container, store) {
  const text = h('span.grow');
  const button = h('button.button.small', { on: { click: () => act(store.connection) } });
  const line = h('div.banner', null, h('span.mark-dot', { 'aria-hidden': 'true' }), text, button);
  /** @type {ReturnType<typeof setInterval> | undefined} */
  let ticking;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let settling;

  const draw = () => {
    const connection = store.connection;
    const { long, action } = describeConnection(connection);
    setData(line, 'status', connection.status);
    setText(text, long);
    setText(button, action ?? '');
    button.hidden = action === null;
    if (connection.status === 'waiting') ticking ??= setInterval(draw, 500);
    else ticking = void clearInterval(ticking);
    clearTimeout(settling);
    if (connection.status === 'live') fill(container);
    // A connection that is there at once is not worth a line that comes and goes.
    else if (connection.status === 'connecting' || connection.status === 'catching-up') settling = setTimeout(() => fill(container, line), 400);
    else fill(container, line);
  };
  store.onConnection(draw);
  draw();
}
