// Characters that cannot be seen where they stand, written out: `\x1b`, `\u{202e}`. For commands, paths and names.
//
// Promises: nothing is left out, and the same characters are written out as `crates/markup/src/visible.rs` writes out.
// Must not know: where the text comes from or is shown.

/** Controls, characters that reorder or break text by themselves, and those that are not seen at all. */
const HIDDEN =
  /[\p{Cc}\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]/gu;

/** Joiners and variation selectors behind a plain letter change nothing that could be seen. */
const LOST_MODIFIER = /(?<=[\u0000-\u007f])[\u200c\u200d\ufe00-\ufe0e\u{e0100}-\u{e01ef}]|(?<=[^\P{ASCII}0-9#*])\ufe0f/gu;

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

/**
 * A text of several lines: its newlines and tabs stay.
 * @param {string} text
 */
export function writeOut(text) {
  const seen = text.replace(HIDDEN, (char) => (char === '\n' || char === '\t' ? char : writeOutChar(char)));
  return seen.replace(LOST_MODIFIER, writeOutChar);
}

/**
 * A name or a path: every hidden character is written out.
 * @param {string} name
 */
export function writeOutName(name) {
  return name.replace(HIDDEN, writeOutChar).replace(LOST_MODIFIER, writeOutChar);
}
