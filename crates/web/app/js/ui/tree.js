// Nodes from the trees that the host makes of Markdown: `["p", "see ", ["code", "x"]]`.
//
// Promises: every element comes from the list below, with no attribute but those set here; what is not in the list is text. A link leads
// to http, https or mailto and to a page of its own, and shows its host where its text looks like another. Nothing is fetched: a picture
// from elsewhere is a chip that opens it. Must not know: who wrote the text.

import { colourCode } from './highlight.js';
import { writeOut, writeOutName } from './visible.js';

/** @typedef {string | MarkupNode} MarkupChild */
/** @typedef {[string, ...(MarkupChild | Record<string, unknown>)[]]} MarkupNode */

/** The host nests no deeper than 32; what would be deeper is text. */
const DEPTH_MAX = 64;

/** Elements without attributes, by tag. */
const PLAIN = /** @type {Record<string, string>} */ ({
  p: 'p', quote: 'blockquote', code: 'code', em: 'em', strong: 'strong', del: 'del', tr: 'tr', hr: 'hr', br: 'br',
});

const SCHEMES = new Set(['http', 'https', 'mailto'].map((name) => `${name}:`));

/**
 * Builds what stands for a list of blocks.
 * @param {unknown} tree
 * @returns {DocumentFragment}
 */
export function buildTree(tree) {
  const fragment = document.createDocumentFragment();
  if (Array.isArray(tree)) appendChildren(fragment, tree, 0);
  return fragment;
}

/**
 * @param {Node} parent
 * @param {unknown[]} children
 * @param {number} depth
 */
function appendChildren(parent, children, depth) {
  for (const child of children) {
    if (typeof child === 'string') parent.appendChild(document.createTextNode(child));
    else if (Array.isArray(child)) parent.appendChild(buildNode(child, depth));
  }
}

/**
 * @param {unknown[]} node
 * @param {number} depth
 * @returns {Node}
 */
function buildNode(node, depth) {
  const [tag, ...rest] = node;
  const first = rest[0];
  const hasAttributes = typeof first === 'object' && first !== null && !Array.isArray(first);
  const attributes = hasAttributes ? /** @type {Record<string, unknown>} */ (first) : {};
  const children = hasAttributes ? rest.slice(1) : rest;
  if (depth >= DEPTH_MAX || typeof tag !== 'string') return document.createTextNode(readText(children));
  switch (tag) {
    case 'h1': case 'h2': case 'h3': case 'h4': case 'h5': case 'h6':
      return buildHeading(Number(tag[1]), children, depth);
    case 'ul': case 'ol':
      return buildList(tag, attributes, children, depth);
    case 'li':
      return buildItem(attributes, children, depth);
    case 'pre':
      return buildCode(attributes, readText(children));
    case 'table':
      return buildTable(attributes, children, depth);
    case 'a':
      return buildLink(attributes, children, depth);
    case 'image':
      return buildPicture(attributes, readText(children));
    default:
      break;
  }
  if (!Object.hasOwn(PLAIN, tag)) return document.createTextNode(readText(children));
  const element = document.createElement(PLAIN[tag] ?? 'span');
  if (tag === 'p' || tag === 'quote') element.dir = 'auto';
  if (tag === 'code') {
    element.textContent = writeOutName(readText(children));
    return element;
  }
  appendChildren(element, children, depth + 1);
  return element;
}

/**
 * The text of nodes, without recursion: what is too deep must not be too deep here.
 * @param {unknown[]} nodes
 */
export function readText(nodes) {
  let text = '';
  const open = [...nodes].reverse();
  while (open.length > 0) {
    const node = open.pop();
    if (typeof node === 'string') text += node;
    else if (Array.isArray(node)) open.push(...node.slice(1).reverse());
  }
  return text;
}

/**
 * A heading of a text stands below that of its turn.
 * @param {number} level
 * @param {unknown[]} children
 * @param {number} depth
 */
function buildHeading(level, children, depth) {
  const heading = document.createElement(level <= 2 ? 'h4' : level === 3 ? 'h5' : 'h6');
  heading.className = `md-h${level}`;
  heading.dir = 'auto';
  appendChildren(heading, children, depth + 1);
  return heading;
}

/**
 * @param {'ul' | 'ol'} tag
 * @param {Record<string, unknown>} attributes
 * @param {unknown[]} children
 * @param {number} depth
 */
function buildList(tag, attributes, children, depth) {
  const list = document.createElement(tag);
  if (attributes.tight === true) list.className = 'md-tight';
  if (list instanceof HTMLOListElement && typeof attributes.start === 'number') list.start = Math.min(attributes.start, 2 ** 31 - 1);
  list.dir = 'auto';
  appendChildren(list, children, depth + 1);
  return list;
}

/**
 * @param {Record<string, unknown>} attributes
 * @param {unknown[]} children
 * @param {number} depth
 */
function buildItem(attributes, children, depth) {
  const item = document.createElement('li');
  if (typeof attributes.checked === 'boolean') {
    item.className = 'md-task';
    const box = document.createElement('span');
    box.className = 'md-box';
    box.setAttribute('role', 'img');
    box.setAttribute('aria-label', attributes.checked ? 'done' : 'open');
    box.textContent = attributes.checked ? '☑' : '☐';
    item.append(box);
  }
  appendChildren(item, children, depth + 1);
  return item;
}

/**
 * A block of code with its language and a button that copies it.
 * @param {Record<string, unknown>} attributes
 * @param {string} text
 */
export function buildCode(attributes, text) {
  const block = document.createElement('figure');
  block.className = 'code';
  const head = document.createElement('figcaption');
  head.className = 'code-head';
  const language = document.createElement('span');
  language.textContent = typeof attributes.language === 'string' ? writeOutName(attributes.language) : 'text';
  const copy = document.createElement('button');
  copy.type = 'button';
  copy.className = 'code-copy';
  copy.dataset.copy = 'code';
  copy.textContent = 'Copy';
  head.append(language, copy);
  const pre = document.createElement('pre');
  pre.tabIndex = 0;
  const code = document.createElement('code');
  const seen = writeOut(text);
  code.textContent = seen;
  pre.append(code);
  block.append(head, pre);
  // Runs count characters of the text as it came.
  if (Array.isArray(attributes.runs) && seen === text) colourCode(code, attributes.runs);
  return block;
}

/**
 * @param {Record<string, unknown>} attributes
 * @param {unknown[]} rows
 * @param {number} depth
 */
function buildTable(attributes, rows, depth) {
  const align = Array.isArray(attributes.align) ? attributes.align : [];
  const frame = document.createElement('div');
  frame.className = 'md-table';
  frame.tabIndex = 0;
  const table = document.createElement('table');
  const head = table.createTHead();
  const body = table.createTBody();
  for (const row of rows) {
    if (!Array.isArray(row)) continue; // a table holds rows; the host sends nothing else
    const isHead = row.some((cell) => Array.isArray(cell) && cell[0] === 'th');
    const line = (isHead ? head : body).insertRow();
    for (const [index, cell] of row.slice(1).entries()) {
      if (!Array.isArray(cell)) continue; // a row holds cells; the host sends nothing else
      const element = document.createElement(cell[0] === 'th' ? 'th' : 'td');
      const side = align[index];
      if (side === 'center' || side === 'right') element.className = `md-${side}`;
      element.dir = 'auto';
      appendChildren(element, cell.slice(1), depth + 2);
      line.append(element);
    }
  }
  frame.append(table);
  return frame;
}

/**
 * The address of a link that may be followed.
 * @param {unknown} to
 * @returns {URL | undefined}
 */
export function readAddress(to) {
  if (typeof to !== 'string' || !URL.canParse(to)) return undefined;
  const address = new URL(to);
  return SCHEMES.has(address.protocol) ? address : undefined;
}

/**
 * Sets where a link leads, and that whoever is there learns nothing about this page.
 * @param {HTMLAnchorElement} link
 * @param {URL} address
 */
function setTarget(link, address) {
  link.href = address.href;
  link.target = '_blank';
  link.rel = 'noopener noreferrer';
  link.referrerPolicy = 'no-referrer';
}

/**
 * @param {Record<string, unknown>} attributes
 * @param {unknown[]} children
 * @param {number} depth
 */
function buildLink(attributes, children, depth) {
  const address = readAddress(attributes.to);
  if (!address) return document.createTextNode(readText(children));
  const link = document.createElement('a');
  setTarget(link, address);
  link.title = writeOutName(address.href);
  appendChildren(link, children, depth + 1);
  const text = readText(children);
  // Of a text with characters that are not seen nobody knows what it looks like.
  const claimed = findOtherHost(text, address) || writeOut(text) !== text;
  if (!claimed && typeof attributes.host !== 'string') return link;
  const pair = document.createElement('span');
  const host = document.createElement('span');
  host.className = 'md-host';
  host.textContent = ` (${writeOutName(address.host || address.pathname)})`;
  pair.append(link, host);
  return pair;
}

/**
 * Whether a text looks like the address of another host than the link leads to. The host says so, too; this is a second look.
 * @param {string} text
 * @param {URL} address
 */
function findOtherHost(text, address) {
  const named = /^\s*(?:[a-z][a-z0-9+.-]*:\/\/)?((?:[\p{L}\p{N}_-]+\.)+[\p{L}]{2,})(?=[/:?#\s]|$)/iu.exec(text)?.[1];
  if (!named) return false;
  const plain = (/** @type {string} */ host) => host.toLowerCase().replace(/^www\./, '');
  return plain(named) !== plain(address.hostname);
}

/**
 * @param {Record<string, unknown>} attributes
 * @param {string} alt
 */
function buildPicture(attributes, alt) {
  const address = readAddress(attributes.to);
  if (!address || !address.host) return document.createTextNode(alt);
  const chip = document.createElement('a');
  chip.className = 'chip chip-picture';
  setTarget(chip, address);
  chip.title = writeOutName(address.href);
  const label = alt.trim() ? `${alt.trim()}: picture on ` : 'picture on ';
  chip.textContent = label + writeOutName(address.host);
  return chip;
}
