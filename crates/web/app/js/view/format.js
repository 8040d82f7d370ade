// Numbers, times and names as people read them. Promises: what is not known is an empty text, never "NaN" or "undefined".
// Must not know: where they are shown.

import { writeOutName } from '../ui/visible.js';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** @param {unknown} ms */
export function formatDuration(ms) {
  if (typeof ms !== 'number' || !Number.isFinite(ms) || ms < 0) return '';
  const seconds = ms / 1000;
  if (seconds < 1) return `${Math.round(ms)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long something takes so far: whole seconds, since it is drawn once a second. @param {number} ms */
export function formatPassed(ms) {
  return ms < 10_000 ? `${Math.floor(ms / 1000)} s` : formatDuration(ms);
}

/** @param {unknown} stamp an RFC 3339 time */
export function formatTime(stamp) {
  const time = typeof stamp === 'string' ? new Date(stamp) : undefined;
  if (!time || Number.isNaN(time.getTime())) return '';
  const isToday = time.toDateString() === new Date().toDateString();
  const clock = time.toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' });
  return isToday ? clock : `${time.toLocaleDateString(undefined, { month: 'short', day: 'numeric' })}, ${clock}`;
}

/** @param {unknown} count */
export function formatCount(count) {
  if (typeof count !== 'number' || !Number.isFinite(count)) return '';
  if (count < 1_000) return String(count);
  if (count < 100_000) return `${(count / 1_000).toFixed(1)}k`;
  if (count < 1_000_000) return `${Math.round(count / 1_000)}k`;
  return `${(count / 1_000_000).toFixed(1)}M`;
}

/** @param {unknown} bytes */
export function formatBytes(bytes) {
  if (typeof bytes !== 'number' || !Number.isFinite(bytes)) return '';
  if (bytes < 1_000) return `${bytes} bytes`;
  if (bytes < 1_000_000) return `${(bytes / 1_000).toFixed(bytes < 10_000 ? 1 : 0)} KB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** @param {{ amount: number, currency?: string } | undefined} cost */
export function formatCost(cost) {
  if (!cost || typeof cost.amount !== 'number') return '';
  const digits = cost.amount >= 1 ? 2 : cost.amount >= 0.01 ? 3 : 4;
  const amount = cost.amount.toFixed(digits);
  return !cost.currency || cost.currency === 'USD' ? `$${amount}` : `${amount} ${cost.currency}`;
}

/** @param {number} count @param {string} one @param {string} [many] */
export function plural(count, one, many = `${one}s`) {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`;
}

/** The path of a `file:` URI, else the URI; hidden characters are written out. @param {unknown} uri */
export function pathOf(uri) {
  if (typeof uri !== 'string') return '';
  if (!uri.startsWith('file:')) return writeOutName(uri);
  try {
    return writeOutName(decodeURIComponent(new URL(uri).pathname));
  } catch {
    return writeOutName(uri); // a path whose escapes are no UTF-8 is shown as it is
  }
}

/** The last name of a path or URI. @param {unknown} uri */
export function nameOf(uri) {
  const path = pathOf(uri).replace(/\/+$/, '');
  return path.slice(path.lastIndexOf('/') + 1) || path;
}

/** A path below one of some directories, as it is called there. @param {unknown} uri @param {unknown} directories */
export function shortPath(uri, directories) {
  const path = pathOf(uri);
  for (const directory of Array.isArray(directories) ? directories : []) {
    const root = pathOf(directory).replace(/\/+$/, '');
    if (root && path.startsWith(`${root}/`)) return path.slice(root.length + 1);
  }
  return path;
}

/** The text of what is a string or Markdown. @param {unknown} text */
export function textOf(text) {
  if (typeof text === 'string') return text;
  const markdown = /** @type {any} */ (text)?.markdown;
  return typeof markdown === 'string' ? markdown : '';
}

/** How long ago something was, in as few characters as can be. @param {number} then @param {number} [now] */
export function age(then, now = Date.now()) {
  const passed = now - then;
  if (!Number.isFinite(passed)) return '';
  if (passed < MINUTE) return 'now';
  if (passed < HOUR) return `${Math.floor(passed / MINUTE)}m`;
  if (passed < DAY) return `${Math.floor(passed / HOUR)}h`;
  if (passed < 7 * DAY) return `${Math.floor(passed / DAY)}d`;
  const date = new Date(then);
  const isThisYear = date.getFullYear() === new Date(now).getFullYear();
  return date.toLocaleDateString('en', isThisYear ? { month: 'short', day: 'numeric' } : { year: 'numeric', month: 'short' });
}

/** The same, as a sentence says it. @param {number} then */
export function ageInWords(then) {
  const short = age(then);
  if (short === '' || short === 'now') return short === '' ? 'never' : 'just now';
  return /^\d+[mhd]$/.test(short) ? `${short.replace('m', ' min').replace('h', ' h').replace('d', ' d')} ago` : short;
}

/** @param {number} then */
export function exactTime(then) {
  return Number.isFinite(then) ? new Date(then).toLocaleString('en', { dateStyle: 'medium', timeStyle: 'short' }) : '';
}
