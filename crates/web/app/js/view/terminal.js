// A terminal of the host: its screen, what scrolled out of it, and a way to type.
//
// Promises: what was printed before is drawn once; keys go to the program only from who holds the terminal; what is typed is shown when the
// program answers it, never before. Must not know: how escape sequences are carried out.

import { cancelFrame, fill, h, iconButton, onFrame, setData, setText, show } from '../ui/dom.js';
import { randomId } from '../state/device.js';
import { askYesNo, reportProblem, showNote } from '../ui/menu.js';
import { Screen } from '../ui/screen.js';
import { writeOutName } from '../ui/visible.js';
import { connectionMark } from './connection.js';
import { pathOf } from './format.js';
import { reportFailure } from './session_actions.js';

const DEFAULT_SIZE = { cols: 80, rows: 24 };
/** A smaller one is of no use: it is scrolled instead. */
const SMALLEST = { cols: 20, rows: 5 };
/** The largest that a host has. */
const LARGEST = { cols: 500, rows: 200 };
/** How long a size must have stayed before the program hears of it: each one makes it draw anew. */
const SIZE_WAIT_MS = 150;

/** What keys without a character send. */
const KEYS = /** @type {Record<string, string>} */ ({
  Enter: '\r', Backspace: '\x7f', Tab: '\t', Escape: '\x1b', ArrowUp: '\x1b[A', ArrowDown: '\x1b[B', ArrowRight: '\x1b[C', ArrowLeft: '\x1b[D',
  Home: '\x1b[H', End: '\x1b[F', Delete: '\x1b[3~', Insert: '\x1b[2~', PageUp: '\x1b[5~', PageDown: '\x1b[6~',
});

/** The sixteen colours of text, and those behind it: readable on the dark ground. */
const COLOURS = /** @type {Record<string, string[]>} */ ({
  fg: '8a918c ff8a80 7ddc9a e6c35c 82b1ff e0a3ff 6fd8d8 e6e8e6 a9b0ab ffb3ab a8ecbd f3dc94 b3d0ff efc8ff a5ecec ffffff'.split(' '),
  bg: '000000 7a211a 14522f 6b4a00 1d3f73 5a2a73 135a5a 5a605b 3a403c a8261d 1c6848 8a6300 245a8d 7a3f99 1a7474 777d78'.split(' '),
});

/** Keys that a phone has not. @type {[string, string][]} */
const BUTTONS = [['Esc', '\x1b'], ['Tab', '\t'], ['Ctrl C', '\x03'], ['Ctrl D', '\x04'], ['↑', '\x1b[A'], ['↓', '\x1b[B'], ['←', '\x1b[D'], ['→', '\x1b[C']];

/** What a key sends; null for one that is not for the program. @param {{ key: string, ctrlKey: boolean, altKey: boolean, metaKey: boolean }} event */
export function bytesOfKey({ key, ctrlKey, altKey, metaKey }) {
  if (metaKey) return null;
  const known = KEYS[key];
  if (known !== undefined) return altKey ? `\x1b${known}` : known;
  if ([...key].length !== 1) return null;
  if (!ctrlKey) return altKey ? `\x1b${key}` : key;
  const code = key.toUpperCase().charCodeAt(0);
  if (key === ' ') return '\0';
  return code >= 64 && code <= 95 ? String.fromCharCode(code - 64) : null;
}

/** Writes what is new in a terminal's content to a screen. */
export class TerminalReader {
  constructor() {
    this.screen = new Screen(DEFAULT_SIZE.cols, DEFAULT_SIZE.rows);
    /** @type {any[]} the parts as they were written */
    this.written = [];
  }

  /** @param {any} state */
  take(state) {
    const [cols, rows] = [state.cols ?? DEFAULT_SIZE.cols, state.rows ?? DEFAULT_SIZE.rows];
    const content = state.content ?? [];
    if (!this.continues(content)) {
      this.screen = new Screen(cols, rows);
      this.written = [];
    } else if (cols !== this.screen.columns || rows !== this.screen.rows) {
      this.screen.resize(cols, rows);
    }
    content.forEach((/** @type {any} */ part, /** @type {number} */ index) => {
      if (this.written[index] === part) return; // all of it was written
      const text = textOf(part).slice(textOf(this.written[index]).length);
      // Without a program that moves the cursor, lines end by themselves.
      this.screen.write(state.isPty === false ? text.replaceAll(/\r?\n/g, '\r\n') : text);
    });
    this.written = content;
  }

  /** Whether everything that was written is still the beginning: else it was cleared, cut or begun anew. @param {any[]} content */
  continues(content) {
    return this.written.length <= content.length && this.written.every((part, index) =>
      part === content[index] || (index === this.written.length - 1 && isSamePart(part, content[index])));
  }
}

/** @param {any} part */
const textOf = (part) => String((part?.type === 'command' ? part.output : part?.value) ?? '');

/** @param {any} before @param {any} after */
function isSamePart(before, after) {
  const [old, now] = [textOf(before), textOf(after)];
  return before.type === after.type && before.commandId === after.commandId && now.length >= old.length && now.startsWith(old);
}

/** Starts a terminal in a folder. @param {any} store @param {string | undefined} cwd @returns {Promise<string>} */
export async function createTerminal(store, cwd) {
  const channel = `ahp-terminal:/${randomId()}`;
  await store.request('createTerminal', { channel, claim: { kind: 'client', clientId: store.clientId }, ...(cwd ? { cwd } : {}), ...DEFAULT_SIZE });
  return channel;
}

/** @type {import('./shell.js').Mount} */
export function mountTerminal(container, context) {
  const { store, navigate, goBack } = /** @type {any} */ (context);
  const { route } = context;
  const uri = String(route.terminal);
  const reader = new TerminalReader();
  /** @type {any} */
  let state;
  /** Lines on the page, with the version that is drawn. @type {{ element: HTMLElement, line: any, version: number, cursor: number }[]} */
  let drawn = [];

  const title = h('h1.head-title.truncate', { dir: 'auto' });
  const about = h('p.terminal-about.truncate');
  const probe = h('span.terminal-probe', { 'aria-hidden': 'true' }, '0'.repeat(20));
  const lines = h('div.terminal-lines', { role: 'log', 'aria-live': 'off' });
  const view = h('div.terminal-screen', { tabindex: '0', role: 'group', 'aria-label': 'Screen of the terminal', on: { keydown: takeKey, paste: takePaste } }, probe, lines);
  const notice = h('p.terminal-notice', { hidden: true });
  const claim = h('button.button.small', { hidden: true, on: { click: takeOver } }, 'Take over');
  const field = h('input.field.mono', { type: 'text', 'aria-label': 'Line to send', placeholder: 'Type a line', autocapitalize: 'off', autocomplete: 'off', spellcheck: false, enterkeyhint: 'send' });
  const form = h('form.terminal-form', { on: { submit: sendLine } }, field, h('button.button', { type: 'submit' }, 'Send'));
  const buttons = h('div.terminal-keys', null, BUTTONS.map(([label, bytes]) => h('button.button.small', { on: { click: () => send(bytes) } }, label)));
  const mark = connectionMark(store);
  const element = h('div.screen.terminal', null,
    h('header.head.session-head', null, iconButton('back', 'Back', () => goBack({ screen: 'session', session: route.session, chat: route.chat })),
      h('div.session-names', null, title, about), mark.element, iconButton('close', 'End this terminal', end)),
    view, h('div.terminal-foot', null, h('div.row', null, notice, claim), form, buttons));
  container.append(element);

  const release = store.watch(uri, () => onFrame(draw));
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let sizing;
  const sizes = new ResizeObserver(() => {
    clearTimeout(sizing);
    sizing = setTimeout(fit, SIZE_WAIT_MS);
  });
  sizes.observe(view);
  let wasOurs = false;
  const isOurs = () => state?.claim?.kind === 'client' && state.claim.clientId === store.clientId;
  const isRunning = () => state?.lifecycle?.status === 'running';

  function draw() {
    state = store.confirmed(uri); // who holds it, the host says
    if (!state) {
      setText(title, store.errorOf(uri) ? 'This terminal is not there' : 'Terminal');
      return;
    }
    const isAtEnd = view.scrollHeight - view.clientHeight - view.scrollTop < 24;
    reader.take(state);
    drawLines();
    if (isAtEnd) view.scrollTop = view.scrollHeight;
    setText(title, writeOutName(state.title) || 'Terminal');
    setText(about, state.cwd ? pathOf(state.cwd) : '');
    const code = state.lifecycle?.exitCode;
    const words = !isRunning() ? `Ended${code === undefined ? '' : ` with ${code}`}.` : isOurs() ? '' : state.claim?.kind === 'session' ? 'The agent uses this terminal.' : 'Another client types here.';
    setText(notice, words);
    show(notice, words !== '');
    show(claim, isRunning() && !isOurs());
    show(form, isRunning() && isOurs());
    show(buttons, isRunning() && isOurs());
    setData(element, 'state', isRunning() ? 'running' : 'ended');
    if (isOurs() && !wasOurs) fit();
    wasOurs = isOurs();
  }

  /** The program gets the size that can be seen here, if we hold the terminal. */
  function fit() {
    const cell = probe.getBoundingClientRect();
    if (!isOurs() || !isRunning() || cell.width === 0 || view.clientWidth === 0) return; // nobody sees it, or another has it
    const style = getComputedStyle(view);
    const inside = (/** @type {number} */ all, /** @type {string} */ one, /** @type {string} */ other) => all - parseFloat(one) - parseFloat(other);
    const width = inside(view.clientWidth, style.paddingLeft, style.paddingRight);
    const height = inside(view.clientHeight, style.paddingTop, style.paddingBottom);
    const cols = Math.max(SMALLEST.cols, Math.min(LARGEST.cols, Math.floor(width / (cell.width / 20))));
    const rows = Math.max(SMALLEST.rows, Math.min(LARGEST.rows, Math.floor(height / parseFloat(style.lineHeight))));
    if (cols === state.cols && rows === state.rows) return; // it has that size
    store.dispatch(uri, { type: 'terminal/resized', cols, rows }).done.then(() => onFrame(draw));
  }

  function drawLines() {
    const { screen } = reader;
    const all = [...screen.above, ...screen.lines];
    const cursorAt = isRunning() && screen.isCursorShown ? screen.above.length + screen.row : -1;
    while (drawn.length > all.length) drawn.pop()?.element.remove();
    // What left at the top leaves the page at the top.
    let dropped = 0;
    while (drawn[dropped] && all[0] && drawn[dropped]?.line !== all[0] && drawn.some((one) => one.line === all[0]) && dropped < drawn.length) dropped += 1;
    for (const one of drawn.splice(0, dropped)) one.element.remove();
    all.forEach((line, index) => {
      let one = drawn[index];
      const cursor = index === cursorAt ? screen.column : -1;
      if (!one) {
        one = { element: h('div.terminal-line'), line: null, version: -1, cursor: -1 };
        drawn.push(one);
        lines.append(one.element);
      }
      if (one.line === line && one.version === line.version && one.cursor === cursor) return; // as it is
      Object.assign(one, { line, version: line.version, cursor });
      fill(one.element, screen.runs(line, cursor).map(drawRun));
    });
  }

  /** @param {string} data */
  function send(data) {
    if (!isOurs() || !isRunning()) return void showNote('Take the terminal over first.');
    return void reportProblem(store.dispatch(uri, { type: 'terminal/input', data }), 'Not typed');
  }

  /** @param {Event} event */
  function sendLine(event) {
    event.preventDefault();
    send(`${field.value}\r`);
    field.value = '';
  }

  /** @param {KeyboardEvent} event */
  function takeKey(event) {
    const isCopy = event.ctrlKey && event.key.toLowerCase() === 'c' && String(getSelection()) !== '';
    const bytes = event.isComposing || isCopy ? null : bytesOfKey(event);
    if (bytes === null || !isOurs() || !isRunning()) return; // the browser's own
    event.preventDefault();
    event.stopPropagation();
    send(bytes);
  }

  /** @param {ClipboardEvent} event */
  function takePaste(event) {
    const text = event.clipboardData?.getData('text/plain');
    if (!text || !isOurs()) return; // nothing to type, or nobody to type it
    event.preventDefault();
    send(text.replaceAll(/\r?\n/g, '\r'));
  }

  async function takeOver() {
    const sent = store.dispatch(uri, { type: 'terminal/claimed', claim: { kind: 'client', clientId: store.clientId } });
    if (!(await reportProblem(sent, 'Not taken over'))) return; // it was said
    draw();
    view.focus();
  }

  async function end() {
    if (isRunning() && !(await askYesNo({ title: 'End this terminal?', text: 'Programs running in it are stopped.', yes: 'End it', danger: true }))) return; // it stays
    try {
      await store.request('disposeTerminal', { channel: uri });
      navigate({ screen: 'session', session: route.session, chat: route.chat }, { replace: true });
    } catch (error) {
      reportFailure(error, 'Not ended');
    }
  }

  onFrame(draw);
  return {
    update() {},
    unmount() {
      release();
      mark.release();
      cancelFrame(draw);
      sizes.disconnect();
      clearTimeout(sizing);
      element.remove();
    },
  };
}

/** @param {import('../ui/screen.js').Run} run */
function drawRun({ text, style }) {
  if (style === '') return text;
  const span = h('span', null, text);
  for (const word of style.split(' ')) {
    const [side, colour] = word.split('-');
    if (colour) span.style[side === 'fg' ? 'color' : 'backgroundColor'] = colour.startsWith('#') ? colour : `#${COLOURS[String(side)]?.[Number(colour)]}`;
    else span.classList.add(`t-${word}`);
  }
  return span;
}
