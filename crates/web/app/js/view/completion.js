// The menu of what a half typed word may become, as the host suggests it, and what of that was accepted.
//
// Promises: an item that is still in the text when it is sent goes along as the host made it, with its position; what people typed over is
// forgotten. An answer to an older text is not shown. Must not know: how a message is sent.

import { fill, h, setAttribute, show } from '../ui/dom.js';
import { writeOutName } from '../ui/visible.js';
import { offsetOf } from './message.js';

const ITEMS_MAX = 50;

/** What ends a sentence, not a name. */
const PUNCTUATION = /^[.,;:!?)\]}]*/;

/** Whether the word at the cursor is one that hosts complete. @param {string} text @param {number} cursor */
export function isCompletable(text, cursor) {
  const before = text.slice(0, cursor);
  if (before.startsWith('/') && !/\s/.test(before)) return true;
  const line = before.slice(before.lastIndexOf('\n') + 1);
  const word = /\S*$/.exec(before)?.[0] ?? '';
  return /[@#]/.test(word) || /[@#](?:file:|skill:)?"[^"]*$/.test(line);
}

/** @param {string} text @param {number} offset */
function positionAt(text, offset) {
  const before = text.slice(0, offset);
  return { line: before.split('\n').length - 1, character: offset - (before.lastIndexOf('\n') + 1) };
}

/** What was accepted since the last message. */
export class Accepted {
  constructor() {
    /** @type {{ words: string, attachment: any }[]} */
    this.items = [];
  }

  /** @param {any} item */
  add(item) {
    const words = String(item.insertText ?? '').trimEnd();
    if (words && item.attachment) this.items.push({ words, attachment: item.attachment });
  }

  /** Takes over what a message carries that is typed on. Returns what does not stand in its text. @param {any} message @returns {any[]} */
  addAllOf(message) {
    const text = String(message?.text ?? '');
    const rest = [];
    for (const attachment of message?.attachments ?? []) {
      const start = offsetOf(text, attachment.range?.start);
      const end = offsetOf(text, attachment.range?.end);
      if (start !== undefined && end !== undefined && start < end) this.items.push({ words: text.slice(start, end), attachment });
      else rest.push(attachment);
    }
    return rest;
  }

  clear() {
    this.items = [];
  }

  /** The attachments of what is still in a text, in its order, each with its range. @param {string} text @returns {any[]} */
  attachmentsIn(text) {
    /** @type {{ start: number, end: number, attachment: any }[]} */
    const found = [];
    for (const { words, attachment } of this.items) {
      for (let start = text.indexOf(words); start >= 0; start = text.indexOf(words, start + 1)) {
        const end = start + words.length;
        if (!isWhole(text, start, end) || found.some((other) => start < other.end && other.start < end)) continue;
        found.push({ start, end, attachment });
        break;
      }
    }
    found.sort((a, b) => a.start - b.start);
    return found.map(({ start, end, attachment }) => ({ ...attachment, range: { start: positionAt(text, start), end: positionAt(text, end) } }));
  }
}

/** Whether nothing was typed on to a word, and a command still comes first. @param {string} text @param {number} start @param {number} end */
function isWhole(text, start, end) {
  const after = text.slice(end).replace(PUNCTUATION, '');
  return (after === '' || /^\s/.test(after)) && (text[start] !== '/' || start === 0);
}

/**
 * @param {HTMLTextAreaElement} field
 * @param {{ ask: (text: string, offset: number) => Promise<any>, accept: (item: any) => void }} hooks
 */
export function createCompletions(field, { ask, accept }) {
  const list = h('div.completions', { role: 'listbox', id: 'completions', 'aria-label': 'Suggestions', hidden: true });
  /** @type {any[]} */
  let items = [];
  let chosen = 0;
  let asked = 0;

  function close() {
    asked += 1;
    items = [];
    show(list, false);
    setAttribute(field, 'aria-expanded', 'false');
    setAttribute(field, 'aria-activedescendant', null);
  }

  async function update() {
    const text = field.value;
    const offset = field.selectionStart;
    if (offset !== field.selectionEnd || !isCompletable(text, offset)) return close();
    const own = (asked += 1);
    try {
      const answer = await ask(text, offset);
      if (own !== asked || field.value !== text) return; // typed on meanwhile
      items = (answer.items ?? []).slice(0, ITEMS_MAX);
    } catch {
      if (own === asked) close(); // without a connection there is nothing to suggest
      return;
    }
    chosen = 0;
    draw();
  }

  function draw() {
    show(list, items.length > 0);
    setAttribute(field, 'aria-expanded', String(items.length > 0));
    fill(list, items.map((item, index) => drawItem(item, index)));
    setAttribute(field, 'aria-activedescendant', items.length > 0 && `completion-${chosen}`);
    const current = list.children[chosen];
    if (current instanceof HTMLElement) {
      const bottom = current.offsetTop + current.offsetHeight;
      if (current.offsetTop < list.scrollTop) list.scrollTop = current.offsetTop;
      else if (bottom > list.scrollTop + list.clientHeight) list.scrollTop = bottom - list.clientHeight;
    }
  }

  /** @param {any} item @param {number} index */
  function drawItem(item, index) {
    const about = item._meta?.['compositor/about'] ?? item.attachment?._meta ?? {};
    const hint = [about.argumentHint, about.description].filter((text) => typeof text === 'string' && text !== '').join(' — ');
    return h('div.completion', {
      role: 'option', id: `completion-${index}`, 'aria-selected': String(index === chosen),
      on: { pointerdown: (/** @type {Event} */ event) => { event.preventDefault(); take(index); } },
    }, h('span.completion-name', null, writeOutName(String(item.insertText ?? '').trim())), hint && h('span.completion-hint', { dir: 'auto' }, writeOutName(hint)));
  }

  /** @param {number} index */
  function take(index) {
    const item = items[index];
    if (!item) return; // the list closed meanwhile
    const start = item.rangeStart ?? field.selectionStart;
    const end = item.rangeEnd ?? field.selectionEnd;
    field.setRangeText(String(item.insertText ?? ''), start, end, 'end');
    close();
    accept(item);
    field.dispatchEvent(new Event('input', { bubbles: true }));
  }

  /** @param {KeyboardEvent} event @returns {boolean} whether the key was for the menu */
  function takeKey(event) {
    if (items.length === 0 || event.ctrlKey || event.metaKey || event.altKey) return false;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) {
      chosen = (chosen + step + items.length) % items.length;
      draw();
    } else if (event.key === 'Tab' || (event.key === 'Enter' && !event.shiftKey)) {
      take(chosen);
    } else if (event.key === 'Escape') {
      close();
    } else {
      return false;
    }
    event.preventDefault();
    return true;
  }

  setAttribute(field, 'role', 'combobox');
  setAttribute(field, 'aria-autocomplete', 'list');
  setAttribute(field, 'aria-controls', 'completions');
  return { element: list, update, close, takeKey };
}
