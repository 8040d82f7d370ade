// Switches to another session by a few letters of its title or folder. Must not know: what is in a session.

import { fill, h, setAttribute } from '../ui/dom.js';
import { age, nameOf } from './format.js';
import { folderOf, groupSessions, modifiedAt, stateInWords, stateOf, titleOf } from './summary.js';

const SHOWN_MAX = 50;

/** @param {{store: any, navigate: (route: any) => void}} given */
export function showSwitcher({ store, navigate }) {
  let chosen = 0;
  /** @type {any[]} */
  let found = [];
  const list = h('ul.switcher-list', { role: 'listbox', id: 'switcher-list', 'aria-label': 'Sessions' });
  const field = h('input.field', {
    type: 'text', role: 'combobox', 'aria-label': 'Switch to a session', 'aria-expanded': 'true', 'aria-controls': 'switcher-list', placeholder: 'Title or folder', autocomplete: 'off', spellcheck: 'false',
    on: { input: () => { chosen = 0; draw(); }, keydown: move },
  });
  const dialog = h('dialog.dialog.switcher', { 'aria-label': 'Switch session', on: { close: () => dialog.remove(), click: (/** @type {Event} */ event) => { if (event.target === dialog) dialog.close(); } } }, field, list);

  function draw() {
    found = groupSessions(store.sessions(), field.value).flatMap((group) => group.sessions).slice(0, SHOWN_MAX);
    fill(list, found.length === 0 && h('li.hint', null, 'No title or folder has these words.'), found.map((summary, index) =>
      h('li.entry.switcher-entry', { role: 'option', id: `switch-${index}`, 'aria-selected': String(index === chosen), data: { state: stateOf(summary) }, on: { click: () => open(summary) } },
        h('span.session-link', null, h('span.shape', { 'aria-hidden': 'true' }),
          h('span.session-text', null, h('span.session-line', null, h('span.session-title.truncate', { dir: 'auto' }, titleOf(summary)), h('span.session-age', null, age(modifiedAt(summary)))),
            h('span.session-line.session-sub', null, h('span.truncate', null, stateInWords(summary)), h('span.entry-folder.truncate', null, nameOf(folderOf(summary)))))))));
    setAttribute(field, 'aria-activedescendant', found.length > 0 && `switch-${chosen}`);
    const entry = list.children[chosen];
    if (entry) list.scrollTop = Math.max(Math.min(list.scrollTop, entry.offsetTop - list.offsetTop), entry.offsetTop - list.offsetTop + entry.offsetHeight - list.clientHeight);
  }

  /** @param {KeyboardEvent} event */
  function move(event) {
    const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (event.isComposing || (by === 0 && event.key !== 'Enter')) return; // text
    event.preventDefault();
    if (by === 0) return void (found[chosen] && open(found[chosen]));
    chosen = Math.max(0, Math.min(found.length - 1, chosen + by));
    draw();
  }

  /** @param {any} summary */
  function open(summary) {
    dialog.close();
    navigate({ screen: 'session', session: summary.resource });
  }

  document.body.append(dialog);
  draw();
  dialog.showModal();
  field.focus();
}
