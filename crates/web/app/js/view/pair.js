// Pairing this device, and what is shown to a device that is not paired. Promises: the code is used only when somebody says so; the token
// goes into the storage of this origin and nowhere else. Must not know: sessions.

import { api } from '../state/api.js';
import { device } from '../state/device.js';
import { fill, h, setText, show } from '../ui/dom.js';
import { showCount, withdrawNotifications } from '../ui/notify.js';

/**
 * @param {HTMLElement} container
 * @param {{code: string | null, wasSignedOut?: boolean, onPaired: () => void}} given
 */
export function mountPair(container, { code, wasSignedOut = false, onPaired }) {
  // Of what waited for a device that was signed out nothing is shown any more, outside of the page neither.
  showCount(0);
  withdrawNotifications(() => true).catch(reportError);
  fill(container, h('div.scroller', null, code === null ? explain(wasSignedOut) : askToPair(code, onPaired)));
}

/** @param {boolean} wasSignedOut */
function explain(wasSignedOut) {
  return h('div.page.stack', { class: 'centred' },
    h('span.splash-mark', { 'aria-hidden': 'true' }),
    h('h1', null, wasSignedOut ? 'This device was signed out' : 'This device is not paired'),
    h('p', null, 'On the machine that runs greenroom, in a terminal:'),
    h('ul.stack', null,
      h('li', null, h('code', null, 'greenroom open'), ' opens this page in the browser there.'),
      h('li', null, h('code', null, 'greenroom pair'), ' shows a QR code for a phone or another computer.')),
    h('p.hint', null, 'Whoever has such a code can use the agents of that machine. It works once, for a few minutes.'));
}

/** @param {string} code @param {() => void} onPaired */
function askToPair(code, onPaired) {
  const name = h('input.field', { id: 'device-name', type: 'text', maxlength: '64', value: device.settings().name || guessName(), autocomplete: 'off', dir: 'auto' });
  const problem = h('p.problem', { role: 'alert', hidden: true });
  const button = h('button.button.primary', { type: 'submit' }, 'Pair');
  const form = h('form.page.stack', {
    class: 'centred', novalidate: true,
    on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); pair(); } },
  },
    h('span.splash-mark', { 'aria-hidden': 'true' }),
    h('h1', null, 'Pair this device?'),
    h('p', null, 'It can then read every session on ', h('strong.mono', null, location.host), ', answer for you and start work there.'),
    h('div.setting', null, h('label.label', { for: 'device-name' }, 'Name of this device'), name, h('p.hint', null, 'The list of devices shows this name, for signing it out later.')),
    problem,
    h('div.row', null, button, h('button.button', { on: { click: () => location.reload() } }, 'Cancel')));

  async function pair() {
    button.disabled = true;
    show(problem, false);
    try {
      const answer = await api.pair(code, name.value.trim() || guessName());
      device.change({ name: answer.device.name });
      device.setToken(answer.token);
      onPaired();
    } catch (error) {
      button.disabled = false;
      setText(problem, describe(error));
      show(problem, true);
    }
  }
  return form;
}

/** @param {any} error */
function describe(error) {
  if (error.status === 0) return 'The host cannot be reached. Try again.';
  if (error.status === 429) return 'Too many attempts. Wait a minute and try again.';
  return error.status === 403 ? `${sentence(error.message)} Get a new one with greenroom open or greenroom pair.` : sentence(error.message);
}

/** What kind of device this is, as far as the browser says. */
function guessName() {
  const agent = navigator.userAgent;
  const kinds = /** @type {[RegExp, string][]} */ ([[/iPhone/, 'iPhone'], [/iPad/, 'iPad'], [/Android/, 'Android'], [/Mac OS X/, 'Mac'], [/Windows/, 'Windows'], [/CrOS/, 'Chromebook'], [/Linux/, 'Linux']]);
  const browsers = /** @type {[RegExp, string][]} */ ([[/Firefox\//, 'Firefox'], [/Edg\//, 'Edge'], [/Chrome\/|CriOS\//, 'Chrome'], [/Safari\//, 'Safari']]);
  const find = (/** @type {[RegExp, string][]} */ list) => list.find(([pattern]) => pattern.test(agent))?.[1];
  return [find(kinds), find(browsers)].filter(Boolean).join(', ') || 'Browser';
}

/** @param {string} text */
function sentence(text) {
  const trimmed = text.trim();
  return `${trimmed.charAt(0).toUpperCase()}${trimmed.slice(1)}${/[.!?]$/.test(trimmed) ? '' : '.'}`;
}
