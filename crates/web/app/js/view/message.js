// What a person said: text with chips where its attachments stand in it, and chips and pictures below it for the others.
//
// Promises: text is text; every attachment is seen, in the text or below it. Must not know: turns.

import { h } from '../ui/dom.js';
import { writeOutName } from '../ui/visible.js';
import { isPicture } from './chat_context.js';
import { drawContent } from './part.js';
import { formatBytes, nameOf } from './format.js';

/** Characters of a message that are shown before the rest is asked for. */
const SHOWN_CHARS = 4_000;

/** The offset of a position in a text; undefined if the text has none such. @param {string} text @param {any} position */
export function offsetOf(text, position) {
  const line = position?.line;
  const character = position?.character;
  if (!Number.isInteger(line) || !Number.isInteger(character) || line < 0 || character < 0) return undefined;
  let start = 0;
  for (let count = 0; count < line; count += 1) {
    const end = text.indexOf('\n', start);
    if (end < 0) return undefined;
    start = end + 1;
  }
  const end = text.indexOf('\n', start);
  return character <= (end < 0 ? text.length : end) - start ? start + character : undefined;
}

/** Two messages as one, the second below the first, with what both carry. @param {any} first @param {any} second */
export function joinMessages(first, second) {
  const [above, below] = [String(first.text ?? ''), String(second.text ?? '')];
  const down = above && below ? above.split('\n').length + 1 : 0;
  const move = (/** @type {any} */ position) => ({ ...position, line: position.line + down });
  const moved = (second.attachments ?? []).map((/** @type {any} */ one) => (one.range ? { ...one, range: { start: move(one.range.start), end: move(one.range.end) } } : one));
  const attachments = [...(first.attachments ?? []), ...moved];
  return { ...first, ...second, text: [above, below].filter(Boolean).join('\n\n'), ...(attachments.length > 0 ? { attachments } : {}) };
}

/** What an attachment is called. @param {any} attachment */
export function labelOf(attachment) {
  const name = writeOutName(String(attachment?.label ?? (nameOf(attachment?.uri) || 'attachment')));
  const range = attachment?.selection?.range;
  const lines = range ? `:${Number(range.start?.line) + 1}-${Number(range.end?.line) + 1}` : '';
  const size = formatBytes(attachment?.sizeHint ?? (attachment?.data ? Math.floor(attachment.data.length * 0.75) : undefined));
  return name + lines + (size ? ` · ${size}` : '');
}

/** @param {import('./chat_context.js').ChatContext} context @param {any} message */
export function drawMessage(context, message) {
  const text = String(message?.text ?? '');
  const attachments = Array.isArray(message?.attachments) ? message.attachments : [];
  /** @type {{ start: number, end: number, attachment: any }[]} */
  const inText = [];
  const below = [];
  for (const attachment of attachments) {
    const start = offsetOf(text, attachment?.range?.start);
    const end = offsetOf(text, attachment?.range?.end);
    const isFree = start !== undefined && end !== undefined && start < end && inText.every((other) => end <= other.start || other.end <= start);
    if (isFree && start !== undefined && end !== undefined) inText.push({ start, end, attachment });
    if (!isFree || isPicture(attachment?.contentType)) below.push(attachment);
  }
  inText.sort((a, b) => a.start - b.start);
  const body = h('div.message-text', { dir: 'auto' });
  drawPieces(body, text, inText, SHOWN_CHARS);
  if (text.length > SHOWN_CHARS) {
    const more = h('button.output-more', null, 'Show the whole message');
    more.addEventListener('click', () => { body.replaceChildren(); drawPieces(body, text, inText, Infinity); more.remove(); });
    return [body, more, drawAttachments(context, below)];
  }
  return [body, drawAttachments(context, below)];
}

/** @param {HTMLElement} body @param {string} text @param {{ start: number, end: number, attachment: any }[]} inText @param {number} max */
function drawPieces(body, text, inText, max) {
  let at = 0;
  for (const { start, end, attachment } of inText) {
    if (start >= max) break;
    body.append(text.slice(at, start), h('span.chip.chip-inline', { title: labelOf(attachment) }, writeOutName(text.slice(start, end))));
    at = end;
  }
  if (at < max) body.append(text.slice(at, Number.isFinite(max) ? max : undefined));
  if (text.length > max) body.append(' …');
}

/** @param {import('./chat_context.js').ChatContext} context @param {any[]} attachments */
function drawAttachments(context, attachments) {
  if (attachments.length === 0) return null;
  return h('div.message-chips', null, attachments.map((attachment) =>
    isPicture(attachment?.contentType) ? drawContent(context, attachment) : h('span.chip', null, labelOf(attachment))));
}
