// Settings of this device, and the devices of the host. Promises: a change counts at once; signing out is asked first and leaves nothing on
// this device. Must not know: where settings are kept.

import { api } from '../state/api.js';
import { device } from '../state/device.js';
import { fill, h, iconButton, keyedList, setText, show } from '../ui/dom.js';
import { askYesNo, showNote } from '../ui/menu.js';
import { allowNotifications, notificationState } from '../ui/notify.js';
import { writeOutName } from '../ui/visible.js';
import { ageInWords, exactTime } from './format.js';
import { connectionMark } from './connection.js';
import { messageOf } from './session_actions.js';
import { signOut } from './sign_out.js';

/** @type {import('./shell.js').Mount} */
export function mountSettings(container, context) {
  const { store } = context;
  const mark = connectionMark(store);
  fill(container,
    h('header.head', null, iconButton('back', 'Back', () => /** @type {any} */ (context).goBack({ screen: 'sessions' }), 'narrow-only'), h('h1.head-title', null, 'Settings'), mark.element),
    h('div.scroller', null, h('div.page', null, appearance(), typing(), notifications(), devices(), hosts(), versions())));
  return { update() {}, unmount: mark.release };
}

/** @param {string} title @param {...any} children */
const section = (title, ...children) => h('section.section.stack', null, h('h2', null, title), children);

/** @param {string} label @param {string} key @param {[any, string][]} options @param {string} [hint] */
function choice(label, key, options, hint) {
  const id = `setting-${key}`;
  const now = /** @type {any} */ (device.settings())[key];
  const field = h('select.field', { id, on: { change: () => device.change({ [key]: options[field.selectedIndex]?.[0] }) } },
    options.map(([value, text]) => h('option', { selected: value === now }, text)));
  return h('div.setting.across', null, h('div', null, h('label.label', { for: id }, label), hint && h('p.hint', null, hint)), field);
}

/** @param {string} label @param {string} key @param {string} [hint] */
function onOff(label, key, hint) {
  const id = `setting-${key}`;
  const field = h('input.switch', { id, type: 'checkbox', role: 'switch', 'aria-label': label, checked: /** @type {any} */ (device.settings())[key] === true, on: { change: () => device.change({ [key]: field.checked }) } });
  // All of it is hit by a finger that means the switch.
  return h('div.setting.across', null, h('label.grow', { for: id }, h('span.label', null, label), hint && h('span.hint', null, hint)), field);
}

const appearance = () => section('Appearance',
  choice('Theme', 'theme', [['system', 'As the device'], ['light', 'Light'], ['dark', 'Dark']]),
  choice('Text size', 'textSize', [[90, 'Small'], [100, 'Normal'], [112, 'Large'], [130, 'Larger']]));

const typing = () => section('Typing',
  choice('Enter key', 'enter', [['auto', 'Sends, on touch a new line'], ['send', 'Always sends'], ['newline', 'Always a new line']], 'Ctrl or Cmd and Enter always send.'),
  onOff('Single letters are commands', 'isKeysOn', 'Press ? outside of a field for the list.'));

function notifications() {
  const text = h('p.hint');
  const button = h('button.button', { on: { click: toggle } });
  async function toggle() {
    if (device.settings().isNotifying) device.change({ isNotifying: false });
    else device.change({ isNotifying: await allowNotifications() });
    draw();
  }
  function draw() {
    const state = notificationState();
    const isOn = device.settings().isNotifying && state === 'granted';
    const words = {
      insecure: 'Notifications and installing need https or localhost. Everything else works without.',
      missing: 'This browser has no notifications for pages. On an iPhone or iPad, add the page to the home screen first.',
      denied: 'The browser does not let this page show notifications. Its own settings can change that.',
      default: 'When something needs you, when work of more than a minute ends, when it fails. Only while you do not look at the page.',
      granted: 'When something needs you, when work of more than a minute ends, when it fails. Only while you do not look at the page.',
    };
    setText(text, words[state]);
    setText(button, isOn ? 'Turn off' : 'Turn on');
    show(button, state === 'default' || state === 'granted');
  }
  draw();
  return section('Notifications', text, h('div.row', null, button));
}

function devices() {
  const own = h('p');
  const list = h('ul');
  const problem = h('p.problem', { hidden: true });
  const out = h('button.button.danger', { on: { click: leave } }, 'Sign out this device');
  const drawList = keyedList(list, { key: (/** @type {any} */ one) => one.id, create: createDevice, update: (element, one) => element.update(one) });

  /** @param {any} first */
  function createDevice(first) {
    let current = first;
    const name = h('span.label', { dir: 'auto' });
    const used = h('span.hint');
    const button = h('button.button.small', { on: { click: () => revoke(current) } }, 'Sign out');
    const element = h('li.device', null, h('span.grow', null, name, used), button);
    element.update = (/** @type {any} */ next) => {
      current = next;
      setText(name, writeOutName(next.name ?? ''));
      const last = Date.parse(next.lastUsedAt ?? '');
      const where = next.address ? ` from ${writeOutName(String(next.address))}` : '';
      setText(used, next.connections > 0 ? `Connected now${where}` : `Last used ${ageInWords(last)}${where}`);
      used.title = exactTime(last);
      button.setAttribute('aria-label', `Sign out ${next.name}`);
    };
    return element;
  }

  async function load() {
    try {
      const [me, answer] = await Promise.all([api.me(), api.devices()]);
      setText(own, me.device ? `This device is called ${writeOutName(me.device.name)}.` : 'This page uses the host’s own token.');
      drawList(answer.devices.filter((/** @type {any} */ one) => one.id !== me.device?.id));
      show(list, list.childElementCount > 0);
      show(problem, false);
    } catch (error) {
      setText(problem, `The devices cannot be listed: ${messageOf(error)}`);
      show(problem, true);
    }
  }

  /** @param {any} one */
  async function revoke(one) {
    const text = `${writeOutName(one.name ?? '')} loses access at once. It can be paired again with a new code.`;
    if (!(await askYesNo({ title: 'Sign out this device?', text, yes: 'Sign out', danger: true }))) return; // it stays
    try {
      await api.revoke(one.id);
    } catch (error) {
      showNote(`Not signed out: ${messageOf(error)}`, { isProblem: true });
    }
    load();
  }

  async function leave() {
    const text = 'The token, settings and drafts on this device are removed. Sessions continue.';
    if (await askYesNo({ title: 'Sign out this device?', text, yes: 'Sign out', danger: true })) signOut();
  }

  load();
  return section('Devices', own, list, problem, h('div.row', null, out));
}

function hosts() {
  const list = h('ul');
  const name = h('input.field', { type: 'text', 'aria-label': 'Name of another host', placeholder: 'Name', maxlength: '64' });
  const url = h('input.field', { type: 'url', 'aria-label': 'Address of another host', placeholder: 'Address', autocomplete: 'off' });
  const problem = h('p.problem', { role: 'alert', hidden: true });
  const all = () => device.settings().hosts.filter((one) => isAddress(one?.url));
  const draw = () => fill(list, all().map((one, index) => h('li.device', null,
    h('a.grow', { href: one.url, rel: 'noreferrer', dir: 'auto' }, writeOutName(one.name || one.url)),
    iconButton('close', `Remove ${one.name}`, () => { device.change({ hosts: all().filter((_, at) => at !== index) }); draw(); }))));
  const add = (/** @type {Event} */ event) => {
    event.preventDefault();
    const isWrong = !isAddress(url.value.trim());
    setText(problem, 'The address begins with https and two slashes.');
    show(problem, isWrong);
    if (isWrong) return void url.focus();
    device.change({ hosts: [...all(), { name: name.value.trim() || new URL(url.value.trim()).host, url: new URL(url.value.trim()).origin }] });
    name.value = '';
    url.value = '';
    draw();
  };
  draw();
  return section('Other hosts', h('p.hint', null, 'A page speaks to the host that served it and to no other. These are links.'), list,
    h('details', null, h('summary', null, 'Add one'), h('form.stack', { novalidate: true, on: { submit: add } }, name, url, problem, h('div.row', null, h('button.button', { type: 'submit' }, 'Add')))));
}

/** @param {unknown} text */
function isAddress(text) {
  try {
    return ['http', 'https'].includes(new URL(String(text)).protocol.slice(0, -1));
  } catch {
    return false; // not an address
  }
}

function versions() {
  const page = /\/app\/([0-9a-f]+)\//.exec(import.meta.url)?.[1] ?? 'from files';
  const host = h('dd.mono', null, '…');
  api.me().then((me) => setText(host, me.version), () => setText(host, 'not known now'));
  return section('Versions', h('dl.details-list', null, h('dt', null, 'Page'), h('dd.mono', null, page), h('dt', null, 'Host'), host));
}
