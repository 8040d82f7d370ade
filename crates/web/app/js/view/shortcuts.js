// What the keys of the page do, and the list of them. Promises: in an open sheet only its own keys count; the guard of the sheet holds for
// keys too. Must not know: how keys are listened for.

import { device } from '../state/device.js';
import { h } from '../ui/dom.js';
import { createKeys, isTyping } from '../ui/keys.js';

const MOD = /Mac|iPhone|iPad/.test(navigator.platform) ? 'Cmd' : 'Ctrl';

/** Keys that other screens listen for themselves. */
const ELSEWHERE = [
  { keys: `${MOD}+Enter`, what: 'Send', group: 'In a message' },
  { keys: `${MOD}+Shift+Enter`, what: 'Steer: tell it now, while it works', group: 'In a message' },
  { keys: 'Esc Esc', what: 'Stop', group: 'In a message' },
  { keys: `${MOD}+F`, what: 'Find in this chat', group: 'In a chat' },
];

/** @param {{store: any, shell: any, sheet: any}} given */
export function startShortcuts({ store, shell, sheet }) {
  const keys = createKeys({ isOn: () => device.settings().isKeysOn });
  const add = (/** @type {string} */ name, /** @type {string} */ group, /** @type {string} */ what, /** @type {() => boolean | void} */ run) =>
    keys.add({ keys: name, group, what, run: () => run() });
  const outside = (/** @type {() => boolean | void} */ run) => () => (sheet.isOpen() || document.querySelector('dialog[open]') ? false : run());

  add('j', 'Sessions', 'Next session', outside(() => moveInList(1)));
  add('k', 'Sessions', 'Previous session', outside(() => moveInList(-1)));
  add('i', 'Sessions', 'Inbox', outside(() => shell.navigate({ screen: 'inbox' })));
  add('n', 'Sessions', 'New session', outside(() => shell.navigate({ screen: 'new' })));
  add('/', 'Sessions', 'Search', outside(() => focusOn('.search-field')));
  add('Mod+K', 'Sessions', 'Switch session', outside(() => void openSwitcher(store, shell)));
  add('c', 'In a chat', 'Write a message', outside(() => focusOn('[data-focus="composer"], .composer textarea')));
  add('g c', 'In a chat', 'Changes', outside(() => goBeside('changes')));
  add('g p', 'In a chat', 'Prompt', outside(() => goBeside('prompt')));
  add('a', 'In a sheet', 'Choose the approval; Enter confirms', () => chooseInSheet('approve'));
  add('d', 'In a sheet', 'Choose the denial; Enter confirms', () => chooseInSheet('deny'));
  add('e', 'In a sheet', 'Edit the input', () => chooseInSheet('edit'));
  add('Escape', 'Anywhere', 'Close', () => closeTop());
  add('?', 'Anywhere', 'This list', outside(() => showList(keys)));

  /** @param {'approve' | 'deny' | 'edit'} name */
  function chooseInSheet(name) {
    if (!sheet.isOpen() || !sheet.isArmed()) return false;
    return sheet.view()?.choose(name) ?? false;
  }

  /** @param {'changes' | 'prompt'} screen */
  function goBeside(screen) {
    const { session, chat } = shell.route();
    if (!session) return false;
    shell.navigate({ screen, session, chat });
    return true;
  }

  function closeTop() {
    if (document.querySelector(':popover-open')) return false; // the browser closes it
    if (sheet.isOpen()) return void sheet.leave();
    const { screen } = shell.route();
    if (isTyping(document.activeElement) || screen === 'sessions' || screen === 'session') return false;
    shell.goBack({ screen: 'sessions' });
    return true;
  }
}

/** @param {string} selector */
function focusOn(selector) {
  const shown = [...document.querySelectorAll(selector)].find((element) => element instanceof HTMLElement && element.offsetParent !== null);
  if (!(shown instanceof HTMLElement)) return false;
  shown.focus();
  return true;
}

/** Moves the focus over the entries of the list that is on screen. @param {number} by */
function moveInList(by) {
  const isInbox = document.querySelector('#main [data-list="inbox"]') !== null;
  const links = /** @type {HTMLElement[]} */ ([...document.querySelectorAll(isInbox ? '.request-link' : '.session-link')]);
  if (links.length === 0) return false;
  const at = links.indexOf(/** @type {HTMLElement} */ (document.activeElement));
  const current = links.findIndex((link) => link.hasAttribute('aria-current'));
  const next = at >= 0 ? at + by : current >= 0 ? current + by : 0;
  links[Math.max(0, Math.min(links.length - 1, next))]?.focus();
  return true;
}

/** @param {ReturnType<typeof createKeys>} keys */
function showList(keys) {
  const all = [...keys.list(), ...ELSEWHERE];
  const groups = [...new Set(all.map((one) => one.group))];
  const close = h('button.button', { autofocus: true, on: { click: () => dialog.close() } }, 'Close');
  const dialog = h('dialog.dialog.wide', { 'aria-labelledby': 'keys-title', on: { close: () => dialog.remove() } },
    h('h2', { id: 'keys-title' }, 'Keys'),
    h('div.scroller', null, groups.map((group) => h('section', null, h('h3', null, group),
      h('table.keys-table', null, h('tbody', null, all.filter((one) => one.group === group).map((one) =>
        h('tr', null, h('td', null, one.keys.replace('Mod', MOD).replace('Escape', 'Esc').split(' ').map((key, index) => [index > 0 && ' ', h('kbd', null, key)])), h('td', null, one.what)))))))),
    h('p.hint', null, 'Single letters work outside of fields. Settings turn them off.'),
    h('div.dialog-buttons', null, close));
  document.body.append(dialog);
  dialog.showModal();
}

/** @param {any} store @param {any} shell */
async function openSwitcher(store, shell) {
  const { showSwitcher } = await import('./switcher.js');
  showSwitcher({ store, navigate: shell.navigate });
}
