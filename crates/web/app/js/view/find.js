// Words in the part of a chat that is loaded. The browser's own search sees only what is on the page, which is not all of it.
//
// Promises: turns that are loaded and not on the page are found, too, and brought onto it; the reading position changes only by going to a
// match. Must not know: how turns are drawn.

import { h, iconButton, setText, show } from '../ui/dom.js';
import { canColourRanges, markRanges } from '../ui/highlight.js';
import { plural, textOf } from './format.js';

const MATCHES_MAX = 999;

/** What a turn says, as far as it is searched. @param {any} turn */
function textOfTurn(turn) {
  const texts = [String(turn.message?.text ?? '')];
  for (const part of turn.responseParts ?? []) {
    if (part.kind === 'markdown') texts.push(String(part.content ?? ''));
    else if (part.kind === 'systemNotification') texts.push(textOf(part.content));
    else if (part.kind === 'toolCall') texts.push(textOf(part.toolCall?.pastTenseMessage) || textOf(part.toolCall?.invocationMessage));
  }
  return texts.join('\n').toLowerCase();
}

/** @param {import('./transcript.js').Transcript} transcript */
export function createFind(transcript) {
  const field = h('input.field.find-field', { type: 'search', 'aria-label': 'Find in this chat', placeholder: 'Find in this chat', enterkeyhint: 'search' });
  const count = h('span.find-count', { role: 'status' });
  const element = h('search.find', { hidden: true }, field, count,
    iconButton('up', 'Previous turn with a match', () => step(-1)), iconButton('down', 'Next turn with a match', () => step(1)), iconButton('close', 'Close', () => close()));
  /** @type {string[]} turns with a match, the oldest first */
  let found = [];
  let at = -1;

  function search() {
    const word = field.value.trim().toLowerCase();
    found = word === '' ? [] : transcript.turns.filter((turn) => textOfTurn(turn).includes(word)).map((turn) => turn.id);
    at = found.length - 1;
    go();
  }

  /** @param {number} by */
  function step(by) {
    if (found.length === 0) return; // nothing to go to
    at = (at + by + found.length) % found.length;
    go();
  }

  function go() {
    const id = found[at];
    const older = transcript.state?.turnsNextCursor === undefined ? '' : ' in the loaded part';
    setText(count, field.value.trim() === '' ? '' : found.length === 0 ? `Nothing found${older}` : `${at + 1} of ${plural(found.length, 'turn')}${older}`);
    if (id !== undefined) transcript.goTo(id);
    mark(id);
  }

  /** @param {string | undefined} id the turn whose matches are the current ones */
  function mark(id) {
    const word = field.value.trim().toLowerCase();
    /** @type {Range[]} */
    const all = [];
    /** @type {Range[]} */
    const current = [];
    if (word !== '') {
      for (const [turnId, view] of transcript.views) findRanges(view.element, word, turnId === id ? current : all);
    }
    markRanges('find', all);
    markRanges('find-current', current);
    const first = current[0];
    if (!first) return; // the match is in what is folded: the turn itself is marked
    if (!canColourRanges) getSelection()?.setBaseAndExtent(first.startContainer, first.startOffset, first.endContainer, first.endOffset);
    const rect = first.getBoundingClientRect();
    const view = transcript.element.getBoundingClientRect();
    if (rect.top < view.top || rect.bottom > view.bottom) {
      transcript.keeper.scrollTo(transcript.element.scrollTop + rect.top - view.top - view.height / 3);
      transcript.keeper.noteAnchor();
    }
  }

  function open() {
    show(element, true);
    field.focus();
    field.select();
    if (field.value) search();
  }

  function close() {
    show(element, false);
    markRanges('find', []);
    markRanges('find-current', []);
    transcript.element.focus({ preventScroll: true });
  }

  field.addEventListener('input', search);
  field.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter' && !event.isComposing) step(event.shiftKey ? 1 : -1);
    else if (event.key === 'Escape') close();
    else return; // it is text
    event.preventDefault();
    event.stopPropagation();
  });
  return { element, open, close };
}

/** @param {Element} element @param {string} word @param {Range[]} ranges */
function findRanges(element, word, ranges) {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node && ranges.length < MATCHES_MAX; node = walker.nextNode()) {
    const text = (node.nodeValue ?? '').toLowerCase();
    for (let start = text.indexOf(word); start >= 0 && ranges.length < MATCHES_MAX; start = text.indexOf(word, start + word.length)) {
      // Lower case may be longer than what it stands for.
      if (start + word.length > (node.nodeValue ?? '').length) break;
      const range = document.createRange();
      range.setStart(node, start);
      range.setEnd(node, start + word.length);
      ranges.push(range);
    }
  }
}
