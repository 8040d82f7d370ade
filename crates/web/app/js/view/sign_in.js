// Signing in to MCP servers. Promises: whose page it is stands on the button before it is opened, in a tab of its own; the token goes to
// the host and is kept nowhere here; what went wrong is said. Must not know: how a code becomes a token; the host does that.

import { api } from '../state/api.js';
import { fill, h, keyedList, setText, show } from '../ui/dom.js';
import { askText } from '../ui/menu.js';
import { writeOutName } from '../ui/visible.js';
import { messageOf } from './session_actions.js';

/** The servers of a session that want a token. @param {any} session @returns {{name: string, auth: any}[]} */
export function wantedTokens(session) {
  const listed = Array.isArray(session?.customizations) ? session.customizations : [];
  return listed.flatMap((/** @type {any} */ one) => [one, ...(Array.isArray(one?.children) ? one.children : [])])
    .filter((/** @type {any} */ one) => one?.state?.kind === 'authRequired' && typeof one.state.resource?.resource === 'string')
    .map((/** @type {any} */ one) => ({ name: writeOutName(String(one.name ?? '')), auth: one.state }));
}

/** What wants a token, above the message field. @param {any} store */
export function createSignIns(store) {
  const list = h('div.stack');
  const element = h('section.queue', { 'aria-label': 'Sign-ins', hidden: true }, list);
  const draw = keyedList(list, {
    key: (/** @type {any} */ one) => `${one.name} ${one.auth.resource.resource}`,
    create: (one) => createSignIn(store, one),
    update: () => {},
  });
  return {
    element,
    /** @param {any} session */
    update(session) {
      const wanted = wantedTokens(session);
      show(element, wanted.length > 0);
      draw(wanted);
    },
  };
}

/** A line that leads to the page of one server. @param {any} store @param {{name: string, auth: any}} wanted */
export function createSignIn(store, { name, auth }) {
  const text = h('span.grow', { dir: 'auto', role: 'status' }, `${name} wants you to sign in`);
  const begin = h('button.button.small.primary', { on: { click: () => find() } }, 'Sign in');
  const other = h('button.button.small', { hidden: true, on: { click: () => bring() } }, 'Paste the address');
  const row = h('div.queue-head', null, text, other, begin);

  async function find() {
    begin.disabled = true;
    setText(text, `Asking how to sign in to ${name} …`);
    try {
      const { url, host } = await api.beginSignIn(auth, `${location.origin}/`);
      const page = new URL(url);
      if (page.protocol !== 'https:' && page.protocol !== 'http:') throw new Error('its page has no address of the web');
      setText(text, `Sign in to ${name} at ${writeOutName(host)}`);
      fill(row, text, other, h('a.button.small.primary', { href: page.href, target: '_blank', rel: 'noopener noreferrer', on: { click: () => wait(host) } }, 'Open the page'));
    } catch (error) {
      fail(error);
    }
  }

  /** @param {string} host */
  function wait(host) {
    setText(text, `Waiting for your sign-in at ${writeOutName(host)} …`);
    show(other, true); // a browser that is not paired cannot come back by itself
  }

  async function bring() {
    const address = await askText({ title: `Sign in to ${name}`, label: 'The address that the page ended at', value: '', yes: 'Go on' });
    if (address === null) return; // left
    try {
      await finishSignIn(store, address);
      setText(text, `Signed in to ${name}`);
    } catch (error) {
      fail(error);
    }
  }

  /** @param {unknown} error */
  function fail(error) {
    setText(text, `Not signed in to ${name}: ${messageOf(error)}`);
    begin.disabled = false;
    show(other, false);
    fill(row, text, other, begin);
  }
  return row;
}

/** Gets the token for the address that the browser came back to, and brings it. @param {any} store @param {string} address */
async function finishSignIn(store, address) {
  const { resource, token, expiresIn } = await api.finishSignIn(address);
  await new Promise((/** @type {(value: void) => void} */ done) => {
    const release = store.onConnection(check);
    function check() {
      if (!store.connection.isLive) return;
      queueMicrotask(() => release());
      done();
    }
    check();
  });
  await store.request('authenticate', { channel: 'ahp-root://', resource, token, ...(expiresIn ? { expiresIn } : {}) });
}

/** What a tab shows that comes back from such a page. @param {HTMLElement} container @param {{store: any, address: string}} given `store` is none where this browser is not paired */
export async function mountReturn(container, { store, address }) {
  const title = h('h1', { role: 'status' }, 'Signing in …');
  const text = h('p.wraps');
  fill(container, h('div.scroller', null, h('div.page.stack', { class: 'centred' }, h('span.splash-mark', { 'aria-hidden': 'true' }), title, text,
    h('p', null, h('a.button', { href: '/' }, 'To the sessions')))));
  if (!store) {
    setText(title, 'This browser is not paired');
    return void fill(text, 'Where you began to sign in choose “Paste the address”, and give it this one: ', h('code', null, address));
  }
  try {
    await finishSignIn(store, address);
    setText(title, 'You are signed in');
    setText(text, 'Close this tab. Your session continues where you left it.');
  } catch (error) {
    setText(title, 'You are not signed in');
    setText(text, messageOf(error));
  }
}
