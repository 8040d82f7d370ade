// Characters that cannot be seen where they stand, written out: `\x1b`, `\u{202e}`. For commands, paths and names.
//
// Promises: nothing is left out, and the same is written out as by `crates/markup/src/visible.rs`, to which this is held by a test.
// Must not know: where the text comes from or is shown.

/** Controls, characters that reorder or break text by themselves, and those that are not seen at all. */
const HIDDEN =
  /^[\p{Cc}\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]$/u;

/** Joiners and variation selectors: they change the character before them, and are not seen by themselves. */
const MODIFIER = /^[\u200c\u200d\ufe00-\ufe0f\u{e0100}-\u{e01ef}]$/u;

/** What takes no room of its own. */
const MARK = /^[\p{Mn}\p{Me}\u200c\u200d\ufe00-\ufe0f\u{e0100}-\u{e01ef}]$/u;

/** Whether a text may hold anything of all that; most do not. */
const SUSPICIOUS = /[\p{C}\p{M}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0]/u;

/** Marks that one character may have. Scripts need a few; a tower of them covers the lines around it. */
const MARKS_MAX = 8;

/** @param {string} char */
function writeOutChar(char) {
  const code = char.codePointAt(0) ?? 0;
  switch (char) {
    case '\n':
      return '\\n';
    case '\t':
      return '\\t';
    case '\r':
      return '\\r';
    default:
      return code < 0x80 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u{${code.toString(16)}}`;
  }
}

/** Whether a selector or joiner changes what it stands behind. @param {string} last @param {string} char */
function isModified(last, char) {
  if (last === '') return false;
  return last > '\u007f' || (char === '\ufe0f' && /[0-9#*]/.test(last));
}

/** @param {string} text @param {string} kept hidden characters that stay */
function writeOutAllBut(text, kept) {
  if (!SUSPICIOUS.test(text)) return text;
  let seen = '';
  let last = '';
  let marks = 0;
  for (const char of text) {
    const isMark = MARK.test(char);
    const isLost = (MODIFIER.test(char) && !isModified(last, char)) || (isMark && marks >= MARKS_MAX);
    if ((HIDDEN.test(char) && !kept.includes(char)) || isLost) {
      seen += writeOutChar(char);
      last = '}';
      marks = 0;
    } else {
      seen += char;
      last = char;
      marks = isMark ? marks + 1 : 0;
    }
  }
  return seen;
}

/**
 * A text of several lines: its newlines and tabs stay.
 * @param {string} text
 */
export function writeOut(text) {
  return writeOutAllBut(text, '\n\t');
}

/**
 * A name or a path: every hidden character is written out.
 * @param {string} name
 */
export function writeOutName(name) {
  return writeOutAllBut(name, '');
}
