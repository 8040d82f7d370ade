/** What programs print is on the screen as a terminal shows it, and keys are what programs expect. */

import { equal } from './world.js';
import './page.js';
import { Screen } from '../../app/js/ui/screen.js';
import { expandTemplate } from '../../app/js/view/changeset.js';
import { TerminalReader, bytesOfKey } from '../../app/js/view/terminal.js';

const after = (text, columns = 10, rows = 3) => {
  const screen = new Screen(columns, rows);
  screen.write(text);
  return screen;
};

export function lines_scroll_out_and_are_kept() {
  const screen = after('a\r\nb\r\nc\r\nd');
  equal(screen.text(), 'b\nc\nd');
  equal(screen.above.map((line) => screen.runs(line)), [[{ text: 'a', style: '' }]]);
  const long = after(Array.from({ length: 5_000 }, (_, index) => `${index}\r\n`).join(''));
  equal(long.above.length, 2_000);
}

export function the_cursor_moves_and_erases() {
  equal(after('abcdef\x1b[3D\x1b[K').text(), 'abc');
  equal(after('abc\x1b[2;3Hx\x1b[1;1Hy').text(), 'ybc\n  x');
  equal(after('one\r\ntwo\x1b[2J\x1b[Hnew').text(), 'new');
  equal(after('12345\x1b[3D\x1b[2P').text(), '125');
  equal(after('12345\x1b[3D\x1b[2@').text(), '12  345');
  equal(after('a\r\nb\r\nc\x1b[2;1H\x1b[L').text(), 'a\n\nb');
  equal(after('a\r\nb\r\nc\x1b[1;1H\x1b[M').text(), 'b\nc');
  equal(after('progress 1\rprogress 2').text(), 'progress 2');
  equal(after('\x1b[1;2r1\r\n2\r\n3\x1b[3;1Hlast').text(), '2\n3\nlast');
}

export function lines_wrap_and_wide_characters_take_two_columns() {
  equal(after('0123456789ab').text(), '0123456789\nab');
  equal(after('漢字漢字漢x漢').text(), '漢字漢字漢\nx漢');
  equal(after('e\u0301x').text(), 'e\u0301x');
}

export function styles_are_words() {
  const screen = after('\x1b[1;31mred\x1b[0m \x1b[38;5;196mz\x1b[48;2;1;2;3mq\x1b[39;49m.', 20);
  equal(screen.runs(screen.lines[0]), [
    { text: 'red', style: 'bold fg-1' }, { text: ' ', style: '' }, { text: 'z', style: 'fg-#ff0000' },
    { text: 'q', style: 'bg-#010203 fg-#ff0000' }, { text: '.', style: '' },
  ]);
  equal(screen.runs(screen.lines[1], 1), [{ text: ' ', style: '' }, { text: ' ', style: 'cursor' }]);
}

export function another_screen_comes_and_goes() {
  const screen = after('shell\r\n');
  screen.write('\x1b[?104');
  screen.write('9h\x1b[Heditor');
  equal(screen.text(), 'editor');
  screen.write('\x1b[?1049l$');
  equal(screen.text(), 'shell\n$');
  equal(screen.above.length, 0);
}

export function nothing_but_the_screen_is_reached() {
  equal(after('\x1b]0;title\x07a\x1b]8;;http:\x1b\\b\x1bPdcs\x1b\\c\x1b[?1000h\x1b[>cd').text(), 'abcd');
  equal(after('a\u202eb\u0007c').text(), 'abc');
  equal(after(`\x1b]${'x'.repeat(5_000)}`, 80, 100).text(), ''); // no end of it: strings are never shown
  for (const odd of ['\x1b[9999999999A', '\x1b[;;;;H', '\x1b[0;0r', '\x1b[500;1r', '\x1b[38m', '\x1b[38;5m', '\x1b[99999L']) after(`${odd}x`);
}

export function a_screen_has_the_size_it_is_given() {
  const screen = after('a\r\nb\r\nc');
  screen.resize(5, 2);
  equal(screen.text(), 'b\nc');
  screen.resize(5, 4);
  equal(screen.lines.length, 4);
  screen.write('1234567');
  equal(screen.text(), 'b\nc1234\n567');
}

export function only_what_is_new_is_written() {
  const reader = new TerminalReader();
  const state = (...content) => ({ cols: 10, rows: 3, content });
  const first = { type: 'unclassified', value: 'a' };
  reader.take(state(first));
  reader.take(state({ ...first, value: 'ab' }));
  equal(reader.screen.text(), 'ab');
  const kept = { ...first, value: 'ab\r\n' };
  reader.take(state(kept, { type: 'command', commandId: '1', output: 'x' }));
  reader.take(state(kept, { type: 'command', commandId: '1', output: 'xy', isComplete: true }));
  equal(reader.screen.text(), 'ab\nxy');
  reader.take(state()); // cleared
  equal(reader.screen.text(), '');
  reader.take({ ...state({ type: 'unclassified', value: '1\n2' }), isPty: false });
  equal(reader.screen.text(), '1\n2');
}

export function keys_are_what_programs_expect() {
  const key = (name, held = {}) => bytesOfKey({ key: name, ctrlKey: false, altKey: false, metaKey: false, ...held });
  equal([key('a'), key('Enter'), key('ArrowUp'), key('c', { ctrlKey: true }), key('x', { altKey: true })], ['a', '\r', '\x1b[A', '\x03', '\x1bx']);
  equal([key('Shift'), key('F5'), key('c', { metaKey: true }), key('ä', { ctrlKey: true })], [null, null, null, null]);
}

export function templates_take_a_turn_or_nothing() {
  equal(expandTemplate('ahp-session:/1/changeset/session'), 'ahp-session:/1/changeset/session');
  equal(expandTemplate('ahp-session:/1/changeset/turn/{turnId}', 'a/b'), 'ahp-session:/1/changeset/turn/a%2Fb');
  equal(expandTemplate('ahp-session:/1/changeset/turn/{turnId}'), null);
  equal(expandTemplate('x/{originalTurnId}/{modifiedTurnId}', 't'), null);
}
