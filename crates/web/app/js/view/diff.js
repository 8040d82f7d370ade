// A diff as the host makes it: rows with their numbers, folded context, what changed within a line.
//
// Promises: added and removed lines differ by a sign, not by colour alone; a long diff is built in pieces, as they are asked for; hidden
// characters are written out by the host. Lines wrap where there is no room. Must not know: AHP, where the contents are.

import { h } from '../ui/dom.js';
import { plural } from './format.js';

/** @typedef {[string, number | null, number | null, string | number, string?]} Row `[" ", 1, 1, "text"]`, `["fold", 4, 4, 20]` */
/** @typedef {{ side: 'old' | 'new', line: number, text: string }} DiffLine */
/**
 * @typedef {object} DiffOptions
 * @property {boolean} [isWide] both sides beside each other
 * @property {(line: DiffLine, row: HTMLElement) => void} [onLine] a line's number was chosen
 * @property {() => Promise<string[] | null>} [loadLines] the lines of the new content, to unfold what is between changes
 */

/** Rows that are built at first, and each time more are asked for. */
const ROWS_FIRST = 400;
const ROWS_MORE = 2_000;

/** Lines longer than this are not compared word by word. */
const COMPARED_CHARS_MAX = 600;

const SIGNS = /** @type {Record<string, string>} */ ({ '+': '+', '-': '−', ' ': '' });

/**
 * @param {{ rows?: unknown[], binary?: boolean, added?: number, removed?: number }} diff
 * @param {DiffOptions} [options]
 */
export function drawDiff(diff, options = {}) {
  const body = h('div.diff', { class: options.isWide ? 'diff-wide' : '' });
  if (diff.binary) {
    body.append(h('p.diff-note', null, 'Not text: its content is not shown.'));
    return body;
  }
  const rows = /** @type {Row[]} */ ((diff.rows ?? []).filter(Array.isArray));
  if (rows.length === 0) body.append(h('p.diff-note', null, 'No line differs.'));
  const changes = findChanges(rows);
  let at = 0;
  const addRows = (/** @type {number} */ count) => {
    const piece = document.createDocumentFragment();
    const end = Math.min(rows.length, endOfChange(rows, at + count));
    const part = rows.slice(at, end);
    const offset = at;
    if (options.isWide) drawPairs(piece, part, (row) => changes.get(row), options);
    else part.forEach((row) => piece.append(drawRow(row, changes.get(row), options)));
    at = offset + part.length;
    body.append(piece);
    if (at < rows.length) {
      const more = h('button.diff-more', { on: { click: () => { more.remove(); addRows(ROWS_MORE); } } },
        `Show ${plural(Math.min(ROWS_MORE, rows.length - at), 'more row')} of ${plural(rows.length - at, 'row')} left`);
      body.append(more);
    }
  };
  addRows(ROWS_FIRST);
  return body;
}

/** A piece never ends between the removed and the added lines of one change. @param {Row[]} rows @param {number} at */
function endOfChange(rows, at) {
  let end = at;
  while (end < rows.length && (rows[end]?.[0] === '-' || rows[end]?.[0] === '+') && end - at < ROWS_MORE) end += 1;
  return end;
}

/**
 * Which part of a line changed, for lines that were replaced one by one.
 * @param {Row[]} rows
 * @returns {Map<Row, [number, number]>} start and end of what differs
 */
function findChanges(rows) {
  /** @type {Map<Row, [number, number]>} */
  const changes = new Map();
  let index = 0;
  while (index < rows.length) {
    const removed = takeWhile(rows, index, '-');
    const added = takeWhile(rows, index + removed.length, '+');
    if (removed.length > 0 && removed.length === added.length) {
      removed.forEach((old, position) => {
        const next = added[position];
        if (next) compareLines(old, next, changes);
      });
    }
    index += Math.max(1, removed.length + added.length);
  }
  return changes;
}

/** @param {Row[]} rows @param {number} from @param {string} sign */
function takeWhile(rows, from, sign) {
  let end = from;
  while (end < rows.length && rows[end]?.[0] === sign) end += 1;
  return rows.slice(from, end);
}

/** @param {Row} old @param {Row} next @param {Map<Row, [number, number]>} changes */
function compareLines(old, next, changes) {
  const [a, b] = [String(old[3]), String(next[3])];
  if (a.length > COMPARED_CHARS_MAX || b.length > COMPARED_CHARS_MAX) return; // too long to be worth it
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  // Where little is the same, all of it is another line.
  if ((start + end) * 3 < Math.max(a.trim().length, b.trim().length)) return;
  changes.set(old, [start, a.length - end]);
  changes.set(next, [start, b.length - end]);
}

/** @param {Row} row @param {[number, number] | undefined} change @param {DiffOptions} options */
function drawRow(row, change, options) {
  const [sign, old, next] = row;
  if (sign === 'fold') return drawFold(row, options);
  if (sign === 'left out') return h('p.diff-note', null, `${plural(Number(row[1]), 'more row')} not shown.`);
  const kind = sign === '+' ? 'add' : sign === '-' ? 'del' : 'same';
  const line = h(`div.diff-row.diff-${kind}`);
  line.append(
    drawNumber(old, 'old', row, line, options),
    drawNumber(next, 'new', row, line, options),
    h('span.diff-sign', null, SIGNS[sign] ?? ''),
    drawText(row, change),
  );
  return line;
}

/** Where a row stands: a removed one in the file as it was, any other in the file as it is. @param {Row} row @returns {DiffLine} */
function lineOf([sign, old, next, text]) {
  return { side: sign === '-' ? 'old' : 'new', line: Number(sign === '-' ? old : next), text: String(text) };
}

/** @param {number | null} number @param {'old' | 'new'} side @param {Row} row @param {HTMLElement} line @param {DiffOptions} options */
function drawNumber(number, side, row, line, options) {
  const text = number === null ? '' : String(number);
  if (!options.onLine || number === null) return h(`span.diff-number.diff-${side}`, { data: { number: text } });
  return h(`button.diff-number.diff-${side}`, {
    data: { number: text }, 'aria-label': `Note on line ${lineOf(row).line}`, title: 'Write a note',
    on: { click: () => options.onLine?.(lineOf(row), line) },
  });
}

/** @param {Row} row @param {[number, number] | undefined} change */
function drawText(row, change) {
  const text = String(row[3]);
  // A long word behind an indentation would leave the first row empty.
  const element = h('span.diff-text', { class: /^\s+\S{20}/.test(text) ? 'diff-long' : '' });
  if (change && change[0] < change[1]) {
    element.append(text.slice(0, change[0]), h('mark', null, text.slice(change[0], change[1])), text.slice(change[1]));
  } else {
    element.textContent = text;
  }
  if (row[4] === 'crlf') element.append(h('span.diff-end', { title: 'ends in CR LF' }, '␍␊'));
  if (row[4] === 'none') element.append(h('span.diff-end', null, 'no newline at the end'));
  return element;
}

/** @param {Row} row @param {DiffOptions} options */
function drawFold(row, options) {
  const [, old, next, count] = row;
  const label = `⋯ ${plural(Number(count), 'line')} unchanged`;
  if (!options.loadLines) return h('div.diff-fold', null, label);
  const button = h('button.diff-fold', null, label);
  button.addEventListener('click', async () => {
    button.disabled = true;
    const lines = await options.loadLines?.();
    button.disabled = false;
    if (!lines) return void (button.textContent = `${label} (cannot be read now)`);
    const first = Number(next);
    const rows = Array.from({ length: Number(count) }, (_, index) =>
      drawRow([' ', Number(old) + index, first + index, lines[first - 1 + index] ?? ''], undefined, options));
    button.replaceWith(...rows);
  });
  return button;
}

/**
 * Both sides beside each other: what was removed is on the left of what came instead.
 * @param {DocumentFragment} piece
 * @param {Row[]} rows
 * @param {(row: Row) => [number, number] | undefined} changeOf
 * @param {DiffOptions} options
 */
function drawPairs(piece, rows, changeOf, options) {
  let index = 0;
  while (index < rows.length) {
    const removed = takeWhile(rows, index, '-');
    const added = takeWhile(rows, index + removed.length, '+');
    const count = Math.max(removed.length, added.length);
    for (let line = 0; line < count; line += 1) piece.append(drawPair(removed[line], added[line], changeOf, options));
    index += removed.length + added.length;
    const row = rows[index];
    if (count > 0 || !row) continue;
    if (row[0] === ' ') piece.append(drawPair(row, row, changeOf, options));
    else piece.append(drawRow(row, undefined, options));
    index += 1;
  }
}

/** @param {Row | undefined} left @param {Row | undefined} right @param {(row: Row) => [number, number] | undefined} changeOf @param {DiffOptions} options */
function drawPair(left, right, changeOf, options) {
  const pair = h('div.diff-pair');
  for (const [row, side] of /** @type {[Row | undefined, 'old' | 'new'][]} */ ([[left, 'old'], [right, 'new']])) {
    const sign = row?.[0] ?? '';
    const kind = !row ? 'none' : sign === '+' ? 'add' : sign === '-' ? 'del' : 'same';
    const half = h(`div.diff-half.diff-${kind}`);
    const number = row ? (side === 'old' ? row[1] : row[2]) : null;
    if (row) half.append(drawNumber(number, side, row, pair, options), h('span.diff-sign', null, SIGNS[sign] ?? ''), drawText(row, changeOf(row)));
    pair.append(half);
  }
  return pair;
}

/** The counts of a diff, in words for those who hear them. @param {number | undefined} added @param {number | undefined} removed */
export function drawCounts(added, removed) {
  if (added === undefined && removed === undefined) return h('span');
  return h('span.counts', { role: 'img', 'aria-label': `${added ?? 0} added, ${removed ?? 0} removed` },
    h('span.count-add', null, `+${added ?? 0}`), ' ', h('span.count-del', null, `−${removed ?? 0}`));
}

/** The counts of some edits together; how many they are where not all were counted. @param {any[]} edits @returns {Node | string} */
export function drawTotal(edits) {
  if (edits.length === 0) return '';
  const sum = (/** @type {'added' | 'removed'} */ field) => edits.reduce((total, edit) => total + (edit.diff?.[field] ?? 0), 0);
  return edits.every((edit) => edit.diff) ? drawCounts(sum('added'), sum('removed')) : plural(edits.length, 'file');
}
