// The screen of a terminal: what a program printed, with its escape sequences carried out, as lines of styled text.
//
// Promises: whatever is printed, the screen has so many rows and columns, and at most so many lines above it; no sequence reaches
// anything but the screen. Sequences that are cut in two are carried out when the rest comes. Must not know: elements, AHP.

/** @typedef {{ text: string, style: string }} Run a stretch of one style: words as in `bold fg-1 bg-4`, or `fg-#rrggbb` */
/** @typedef {{ text: string, style: string, isTail?: boolean }} Cell `isTail`: the second half of a wide character */
/** @typedef {{ cells: Cell[], version: number }} Line */

const LINES_ABOVE_MAX = 2_000;
const SIZE_MAX = 500;

/** Characters that take two columns: East Asian ones and pictures. */
const WIDE = /[\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]/u;

/** What is added to the character before it. */
const COMBINING = /[\p{Mn}\p{Me}\u200d\ufe0f]/u;

/** Control characters and those that turn text around: they would show what is not there. */
const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]/u;

/** A whole sequence: CSI, or a short one. */
const SEQUENCE = /^\x1b(?:\[([<-?]?)([0-9;:]*)[ -/]*([@-~])|[ -/]+[0-~]|([0-OQ-WYZ\\`-~]))/;
/** What begins a string (OSC, DCS, ..) after ESC. */
const STRINGS = ']PX^_';
/** What ends one; only that of an OSC ends with BEL. */
const OSC_END = /[\x07\x18\x1a\x1b]/g;
const STRING_END = /[\x18\x1a\x1b]/g;
/** How long the beginning of a sequence may wait for its end. */
const SEQUENCE_MAX = 4_096;

const ATTRIBUTES = /** @type {Record<number, string>} */ ({ 1: 'bold', 2: 'dim', 3: 'italic', 4: 'underline', 7: 'inverse', 8: 'hidden', 9: 'strike' });
/** What takes an attribute back: one number may take back two. */
const ENDS = /** @type {Record<number, string[]>} */ ({ 22: ['bold', 'dim'], 23: ['italic'], 24: ['underline'], 27: ['inverse'], 28: ['hidden'], 29: ['strike'] });

export class Screen {
  /** The beginning of a sequence whose end did not come yet. */
  rest = '';
  /** In a string whose end did not come yet: what ends it. @type {RegExp | null} */
  stringEnd = null;
  version = 0;
  /** @type {Set<string>} */
  style = new Set();
  styleText = '';
  column = 0;
  row = 0;
  /** Between these rows it scrolls. */
  top = 0;
  bottom = 0;
  isCursorShown = true;
  saved = { column: 0, row: 0 };
  /** What scrolled out of the screen. @type {Line[]} */
  above = [];
  /** @type {Line[]} */
  lines = [];
  /** The lines of the main screen while another one is shown. @type {Line[] | undefined} */
  main = undefined;

  /** @param {number} columns @param {number} rows */
  constructor(columns, rows) {
    this.columns = bound(columns);
    this.rows = bound(rows);
    this.reset();
  }

  reset() {
    this.style.clear();
    this.styleText = '';
    [this.column, this.row] = [0, 0];
    [this.top, this.bottom] = [0, this.rows - 1];
    this.isCursorShown = true;
    this.saved = { column: 0, row: 0 };
    this.above = [];
    this.lines = Array.from({ length: this.rows }, () => this.blank());
    this.main = undefined;
  }

  /** @returns {Line} */
  blank() {
    this.version += 1;
    return { cells: [], version: this.version };
  }

  /** @param {number} columns @param {number} rows */
  resize(columns, rows) {
    this.columns = bound(columns);
    const wanted = bound(rows);
    while (this.lines.length < wanted) this.lines.push(this.blank());
    while (this.lines.length > wanted) {
      if (this.row < this.lines.length - 1) this.lines.pop();
      else this.scrollOut();
    }
    this.rows = wanted;
    [this.top, this.bottom] = [0, wanted - 1];
    this.row = Math.min(this.row, wanted - 1);
    this.column = Math.min(this.column, this.columns - 1);
  }

  scrollOut() {
    const line = this.lines.shift();
    this.row = Math.max(0, this.row - 1);
    if (line && !this.main) this.keep(line);
  }

  /** @param {Line} line */
  keep(line) {
    this.above.push(line);
    if (this.above.length > LINES_ABOVE_MAX) this.above.shift();
  }

  /** Takes what was printed. @param {string} text */
  write(text) {
    const all = this.rest + text;
    this.rest = '';
    let at = this.skipString(all, 0);
    while (at < all.length) {
      const char = String.fromCodePoint(all.codePointAt(at) ?? 0);
      if (char !== '\x1b') {
        this.put(char);
        at += char.length;
        continue;
      }
      const kind = all[at + 1];
      if (kind !== undefined && STRINGS.includes(kind)) {
        this.stringEnd = kind === ']' ? OSC_END : STRING_END;
        at = this.skipString(all, at + 2);
        continue;
      }
      const found = SEQUENCE.exec(all.slice(at, at + SEQUENCE_MAX));
      if (found) {
        this.carryOut(found);
        at += found[0].length;
      } else if (all.length - at < SEQUENCE_MAX) {
        this.rest = all.slice(at);
        return;
      } else {
        at += 1; // no sequence: what follows is shown as text
      }
    }
  }

  /** Nothing of a string is shown, however long it is. @param {string} all @param {number} from @returns {number} where the text goes on */
  skipString(all, from) {
    if (!this.stringEnd) return from;
    this.stringEnd.lastIndex = from;
    const end = this.stringEnd.exec(all);
    if (!end) return all.length;
    this.stringEnd = null;
    return end[0] === '\x1b' ? end.index : end.index + 1;
  }

  /** @param {string} char @returns {void} */
  put(char) {
    switch (char) {
      case '\n': return this.lineFeed();
      case '\r': this.column = 0; return undefined;
      case '\b': this.column = Math.max(0, this.column - 1); return undefined;
      case '\t': this.column = Math.min(this.columns - 1, (Math.floor(this.column / 8) + 1) * 8); return undefined;
      default:
    }
    if (HIDDEN.test(char)) return undefined;
    const line = this.line();
    if (COMBINING.test(char)) {
      const before = line.cells[Math.min(this.column, line.cells.length) - 1];
      if (before && before.text.length < 32) before.text += char;
      return this.touch(line);
    }
    const width = WIDE.test(char) ? 2 : 1;
    if (this.column + width > this.columns) {
      this.column = 0;
      this.lineFeed();
      return this.put(char);
    }
    while (line.cells.length < this.column) line.cells.push({ text: ' ', style: '' });
    line.cells[this.column] = { text: char, style: this.styleText };
    if (width === 2) line.cells[this.column + 1] = { text: '', style: this.styleText, isTail: true };
    this.column += width;
    return this.touch(line);
  }

  /** @returns {Line} */
  line() {
    return this.lines[this.row] ?? (this.lines[this.row] = this.blank());
  }

  /** @param {Line} line */
  touch(line) {
    this.version += 1;
    line.version = this.version;
  }

  lineFeed() {
    if (this.row === this.bottom) this.scroll(1);
    else if (this.row < this.rows - 1) this.row += 1;
  }

  /** Moves what is between the margins up, or down. @param {number} count */
  scroll(count) {
    for (let left = Math.min(Math.abs(count), this.rows); left > 0; left -= 1) {
      if (count > 0) {
        const [out] = this.lines.splice(this.top, 1);
        this.lines.splice(this.bottom, 0, this.blank());
        if (out && this.top === 0 && !this.main) this.keep(out);
      } else {
        this.lines.splice(this.bottom, 1);
        this.lines.splice(this.top, 0, this.blank());
      }
    }
  }

  /** @param {RegExpExecArray} found */
  carryOut([, mark = '', numbers = '', kind, short]) {
    if (short !== undefined) return this.carryOutShort(short);
    if (kind === undefined) return undefined; // a title, a link, a character set: nothing of the screen
    const given = numbers.split(/[;:]/).map((part) => (part === '' ? undefined : Math.min(Number(part), 9_999)));
    if (mark === '?') return kind === 'h' || kind === 'l' ? this.setMode(given, kind === 'h') : undefined;
    if (mark !== '') return undefined; // a question to the terminal: the host's own one answers
    if (kind === 'm') return this.setStyle(numbers);
    const [first, second] = given;
    return this.move(kind, Math.max(1, first ?? 1), first ?? 0, second ?? 1);
  }

  /** @param {string} kind @param {number} count @param {number} first @param {number} second */
  move(kind, count, first, second) {
    const line = this.line();
    switch (kind) {
      case 'A': this.row = Math.max(0, this.row - count); break;
      case 'B': case 'e': this.row = Math.min(this.rows - 1, this.row + count); break;
      case 'C': case 'a': this.column = Math.min(this.columns - 1, this.column + count); break;
      case 'D': this.column = Math.max(0, this.column - count); break;
      case 'E': this.row = Math.min(this.rows - 1, this.row + count); this.column = 0; break;
      case 'F': this.row = Math.max(0, this.row - count); this.column = 0; break;
      case 'G': case '`': this.column = Math.min(this.columns - 1, count - 1); break;
      case 'd': this.row = Math.min(this.rows - 1, count - 1); break;
      case 'H': case 'f':
        this.row = Math.min(this.rows - 1, count - 1);
        this.column = Math.min(this.columns - 1, Math.max(1, second) - 1);
        break;
      case 'J': this.eraseScreen(first); break;
      case 'K': this.eraseLine(line, first); break;
      case 'L': case 'M': this.shiftLines(kind === 'L' ? -count : count); break;
      case 'P': line.cells.splice(this.column, count); this.touch(line); break;
      case '@': line.cells.splice(this.column, 0, ...this.blanks(count)); line.cells.length = Math.min(line.cells.length, this.columns); this.touch(line); break;
      case 'X': for (let at = this.column; at < Math.min(this.column + count, line.cells.length); at += 1) line.cells[at] = { text: ' ', style: '' }; this.touch(line); break;
      case 'S': this.scroll(count); break;
      case 'T': this.scroll(-count); break;
      case 'r': this.setMargins(count - 1, (second === 1 ? this.rows : second) - 1); break;
      case 's': this.saved = { column: this.column, row: this.row }; break;
      case 'u': ({ column: this.column, row: this.row } = this.saved); break;
      default: // not of the screen, or not known
    }
  }

  /** @param {number} count */
  blanks(count) {
    return Array.from({ length: Math.min(count, this.columns) }, () => ({ text: ' ', style: '' }));
  }

  /** @param {number} top @param {number} bottom */
  setMargins(top, bottom) {
    const isUsable = top < bottom && bottom < this.rows;
    [this.top, this.bottom] = isUsable ? [top, bottom] : [0, this.rows - 1];
    [this.row, this.column] = [0, 0];
  }

  /** @param {number} count below the cursor: up if positive */
  shiftLines(count) {
    if (this.row < this.top || this.row > this.bottom) return; // outside of the margins nothing is shifted
    const { top } = this;
    const main = this.main;
    this.top = this.row;
    this.main ??= []; // what is deleted does not come to the lines above
    this.scroll(count);
    [this.top, this.main] = [top, main];
  }

  /** @param {string} kind */
  carryOutShort(kind) {
    switch (kind) {
      case '7': this.saved = { column: this.column, row: this.row }; break;
      case '8': ({ column: this.column, row: this.row } = this.saved); break;
      case 'D': this.lineFeed(); break;
      case 'E': this.column = 0; this.lineFeed(); break;
      case 'M': if (this.row === this.top) this.scroll(-1); else this.row = Math.max(0, this.row - 1); break;
      case 'c': this.reset(); break;
      default: // keypad modes and the like
    }
  }

  /** @param {(number | undefined)[]} modes @param {boolean} isOn */
  setMode(modes, isOn) {
    for (const mode of modes) {
      if (mode === 25) this.isCursorShown = isOn;
      if (mode === 47 || mode === 1047 || mode === 1049) this.showOther(isOn);
    }
  }

  /** Programs that take the whole screen have one of their own; what was there comes back. @param {boolean} isOn */
  showOther(isOn) {
    if (isOn === (this.main !== undefined)) return; // it is as it should be
    if (isOn) {
      this.main = this.lines;
      this.saved = { column: this.column, row: this.row };
      this.lines = Array.from({ length: this.rows }, () => this.blank());
      return;
    }
    this.lines = this.main ?? [];
    this.main = undefined;
    while (this.lines.length < this.rows) this.lines.push(this.blank());
    this.lines.length = this.rows;
    for (const line of this.lines) this.touch(line);
    ({ column: this.column, row: this.row } = this.saved);
    this.row = Math.min(this.row, this.rows - 1);
  }

  /** @param {number} what 0: from the cursor on, 1: up to it, 2 and 3: all */
  eraseScreen(what) {
    this.eraseLine(this.line(), what);
    this.lines.forEach((_, index) => {
      if (what >= 2 || (what === 0 && index > this.row) || (what === 1 && index < this.row)) this.lines[index] = this.blank();
    });
    if (what === 3) this.above = [];
  }

  /** @param {Line} line @param {number} what */
  eraseLine(line, what) {
    if (what === 0) line.cells.length = Math.min(line.cells.length, this.column);
    else if (what === 1) for (let at = 0; at <= Math.min(this.column, line.cells.length - 1); at += 1) line.cells[at] = { text: ' ', style: '' };
    else line.cells = [];
    this.touch(line);
  }

  /** @param {string} numbers */
  setStyle(numbers) {
    const given = numbers.split(/[;:]/).map(Number);
    for (let at = 0; at < given.length; at += 1) {
      const number = given[at] ?? 0;
      if (number === 0) this.style.clear();
      else if (ATTRIBUTES[number]) this.style.add(ATTRIBUTES[number]);
      else if (ENDS[number]) for (const word of ENDS[number]) this.style.delete(word);
      else if (number === 38 || number === 48) at += this.setColour(number === 38 ? 'fg' : 'bg', given.slice(at + 1));
      else if (number === 39 || number === 49) this.clearColour(number === 39 ? 'fg' : 'bg');
      else if (number >= 30 && number <= 37) this.colour('fg', `${number - 30}`);
      else if (number >= 40 && number <= 47) this.colour('bg', `${number - 40}`);
      else if (number >= 90 && number <= 97) this.colour('fg', `${number - 82}`);
      else if (number >= 100 && number <= 107) this.colour('bg', `${number - 92}`);
    }
    this.styleText = [...this.style].sort().join(' ');
  }

  /** @param {'fg' | 'bg'} side */
  clearColour(side) {
    for (const word of this.style) if (word.startsWith(side)) this.style.delete(word);
  }

  /** @param {'fg' | 'bg'} side @param {string} name */
  colour(side, name) {
    this.clearColour(side);
    this.style.add(`${side}-${name}`);
  }

  /** @param {'fg' | 'bg'} side @param {number[]} given what follows @returns {number} how many numbers it took */
  setColour(side, given) {
    const byte = (/** @type {number | undefined} */ value) => Math.max(0, Math.min(255, Math.round(value ?? 0) || 0));
    if (given[0] === 5) {
      this.colour(side, nameOf256(byte(given[1])));
      return 2;
    }
    if (given[0] !== 2) return 0; // no colour that is known
    this.colour(side, hex([byte(given[1]), byte(given[2]), byte(given[3])]));
    return 4;
  }

  /** The text of a line by styles; the cursor is a style of its own. @param {Line} line @param {number} [cursor] @returns {Run[]} */
  runs(line, cursor = -1) {
    /** @type {Run[]} */
    const runs = [];
    const cells = [...line.cells];
    while (cursor >= cells.length && cursor < this.columns) cells.push({ text: ' ', style: '' });
    cells.forEach(({ text, style, isTail }, index) => {
      if (isTail) return;
      const own = index === cursor ? `${style} cursor`.trim() : style;
      const last = runs.at(-1);
      if (last && last.style === own) last.text += text;
      else runs.push({ text, style: own });
    });
    return runs;
  }

  /** What is on the screen as plain text, without blanks at the ends. */
  text() {
    return this.lines.map((line) => line.cells.map((cell) => cell.text).join('').trimEnd()).join('\n').trimEnd();
  }
}

/** @param {number} size */
const bound = (size) => Math.max(1, Math.min(SIZE_MAX, Math.round(size) || 1));

/** @param {number[]} parts */
const hex = (parts) => `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;

/** One of 256 colours: sixteen of the theme, a cube, greys. @param {number} number */
function nameOf256(number) {
  if (number < 16) return `${number}`;
  if (number >= 232) return hex(Array.from({ length: 3 }, () => 8 + (number - 232) * 10));
  const step = (/** @type {number} */ value) => (value === 0 ? 0 : 55 + value * 40);
  const index = number - 16;
  return hex([step(Math.floor(index / 36)), step(Math.floor(index / 6) % 6), step(index % 6)]);
}
