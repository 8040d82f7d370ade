// Colours over text that is on the page: code by its runs, and what was searched for.
//
// Promises: the text stays one node where the browser can colour ranges (CSS Custom Highlight); elsewhere runs become spans. What
// leaves the page is forgotten. Must not know: where runs come from, what a class looks like.

/** @typedef {[string, number, number]} Run class, start, length; counted in UTF-16 code units */

/** The classes that may be named; anything else has the colour of text. */
const CLASSES = new Set([
  'attribute', 'comment', 'constant', 'function', 'keyword', 'number', 'property', 'string', 'tag', 'type',
]);

/** How many coloured elements may come before those that left the page are looked for. */
const SWEEP_EVERY = 64;

export const canColourRanges = typeof Highlight === 'function' && typeof CSS !== 'undefined' && 'highlights' in CSS;

/** @type {Map<Element, [Highlight, AbstractRange][]>} */
const coloured = new Map();
let sinceSweep = 0;

/** @param {string} name */
function findHighlight(name) {
  let highlight = CSS.highlights.get(name);
  if (!highlight) {
    highlight = new Highlight();
    CSS.highlights.set(name, highlight);
  }
  return highlight;
}

/**
 * Colours the text of an element, which must hold nothing but text.
 * @param {Element} element
 * @param {Run[]} runs
 */
export function colourCode(element, runs) {
  const text = element.textContent ?? '';
  const valid = runs.filter(
    ([name, start, length]) =>
      CLASSES.has(name) && Number.isInteger(start) && Number.isInteger(length) && start >= 0 && length > 0 && start + length <= text.length,
  );
  if (valid.length === 0) return;
  if (canColourRanges) colourRanges(element, text, valid);
  else colourBySpans(element, text, valid);
}

/**
 * @param {Element} element
 * @param {string} text
 * @param {Run[]} runs
 */
function colourRanges(element, text, runs) {
  forgetColours(element);
  const node = document.createTextNode(text);
  element.replaceChildren(node);
  /** @type {[Highlight, AbstractRange][]} */
  const ranges = [];
  for (const [name, start, length] of runs) {
    const range = new StaticRange({ startContainer: node, startOffset: start, endContainer: node, endOffset: start + length });
    const highlight = findHighlight(`code-${name}`);
    highlight.add(range);
    ranges.push([highlight, range]);
  }
  coloured.set(element, ranges);
  sinceSweep += 1;
  if (sinceSweep >= SWEEP_EVERY) sweepColours();
}

/**
 * @param {Element} element
 * @param {string} text
 * @param {Run[]} runs
 */
function colourBySpans(element, text, runs) {
  const pieces = document.createDocumentFragment();
  let at = 0;
  for (const [name, start, length] of runs) {
    if (start < at) continue; // runs are in order and do not overlap; one that does is not drawn
    pieces.append(text.slice(at, start));
    const span = document.createElement('span');
    span.className = `code-${name}`;
    span.textContent = text.slice(start, start + length);
    pieces.append(span);
    at = start + length;
  }
  pieces.append(text.slice(at));
  element.replaceChildren(pieces);
}

/** @param {Element} element */
export function forgetColours(element) {
  for (const [highlight, range] of coloured.get(element) ?? []) highlight.delete(range);
  coloured.delete(element);
}

/** Forgets the colours of what is not on the page any more. */
export function sweepColours() {
  sinceSweep = 0;
  for (const element of coloured.keys()) {
    if (!element.isConnected) forgetColours(element);
  }
}

/**
 * Marks ranges under a name, in the place of those that had it before.
 * @param {string} name
 * @param {AbstractRange[]} ranges
 */
export function markRanges(name, ranges) {
  if (!canColourRanges) return; // whoever searches selects the current range, which is seen everywhere
  if (ranges.length === 0) CSS.highlights.delete(name);
  else CSS.highlights.set(name, new Highlight(...ranges));
}
