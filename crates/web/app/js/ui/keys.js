// Keys of the page. Promises: single letters do nothing while somebody types in a field or an input method composes, and nothing at
// all when they are turned off; `Esc` and keys with Ctrl or Cmd always work. Must not know: what a key does.

/** Whether an element is a field that takes text. @param {Element | null} element */
export function isTyping(element) {
  if (!(element instanceof HTMLElement)) return false;
  if (element.isContentEditable || element instanceof HTMLTextAreaElement || element instanceof HTMLSelectElement) return true;
  return element instanceof HTMLInputElement && !['button', 'checkbox', 'radio', 'submit', 'reset', 'range', 'file', 'color'].includes(element.type);
}

/** @typedef {{keys: string, what: string, group: string, run: (event: KeyboardEvent) => boolean | void}} Shortcut */

/**
 * Listens for keys. A shortcut is named `j`, `g c`, `Mod+K`, `Escape`; one that returns false did not want the key.
 * @param {{isOn: () => boolean}} settings whether single letters are wanted
 */
export function createKeys({ isOn }) {
  /** @type {Shortcut[]} */
  const shortcuts = [];
  let prefix = '';
  let prefixAt = 0;

  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.isComposing || event.keyCode === 229) return; // it belongs to somebody else
    const name = nameOf(event);
    const isLetter = !name.includes('+') && name !== 'Escape';
    if (isLetter && (isTyping(document.activeElement) || !isOn())) return; // it is text
    const isPrefixed = prefix !== '' && Date.now() - prefixAt < 1_500;
    const wanted = isPrefixed && isLetter ? `${prefix} ${name}` : name;
    prefix = '';
    if (shortcuts.some((one) => one.keys.startsWith(`${wanted} `))) {
      prefix = wanted;
      prefixAt = Date.now();
      event.preventDefault();
      return;
    }
    for (const shortcut of shortcuts) {
      if (shortcut.keys === wanted && shortcut.run(event) !== false) {
        event.preventDefault();
        return;
      }
    }
  });

  return {
    /** @param {Shortcut} shortcut the first that wants a key gets it */
    add: (shortcut) => void shortcuts.push(shortcut),
    list: () => [...shortcuts],
  };
}

/** @param {KeyboardEvent} event */
function nameOf(event) {
  const mod = event.ctrlKey || event.metaKey ? 'Mod+' : '';
  const shift = event.shiftKey && (mod !== '' || event.key.length > 1) ? 'Shift+' : '';
  const key = event.key.length === 1 && mod !== '' ? event.key.toUpperCase() : event.key;
  return `${mod}${event.altKey ? 'Alt+' : ''}${shift}${key}`;
}
