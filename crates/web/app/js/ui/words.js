// Times in words. Must not know: what they are about.

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

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
