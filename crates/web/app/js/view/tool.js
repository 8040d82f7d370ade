// A tool call: one line with its state in words and a shape, and when it is opened its input, output, diff, pictures and error.
//
// Promises: the body is built when it is opened and follows the call from then on; of a long output the last 200 lines are shown, the rest
// on demand; hidden characters of commands and paths are written out. Must not know: how a call is decided on.

import { h, fill, setData, setText, show } from '../ui/dom.js';
import { colourCode } from '../ui/highlight.js';
import { writeOut, writeOutName } from '../ui/visible.js';
import { drawTotal } from './diff.js';
import { drawFileEdit } from './file_edit.js';
import { drawContent } from './part.js';
import { plural, shortPath, textOf } from './format.js';
import { editsOf as plannedEdits } from './request.js';
import { askKey } from './route.js';

/** @typedef {import('./chat_context.js').ChatContext} ChatContext */

const LINES_SHOWN = 200;

/** Characters of an input that are shown before more is asked for. */
const INPUT_CHARS = 8_000;

/** Shape and word of a state. @param {any} call @returns {[string, string, string]} name for styles, shape, words */
export function describeCall(call) {
  switch (call.status) {
    case 'streaming':
      return ['writing', '◌', 'writing input'];
    case 'pending-confirmation':
      return ['waiting', '◆', 'waits for you'];
    case 'running':
      return ['running', '◐', 'running'];
    case 'auth-required':
      return ['waiting', '◆', 'needs a sign-in'];
    case 'pending-result-confirmation':
      return ['waiting', '◆', 'result waits for you'];
    case 'completed':
      return call.success === false ? ['failed', '✕', 'failed'] : ['done', '✓', 'done'];
    case 'cancelled':
      if (call.reason === 'denied') return ['denied', '⊘', 'denied'];
      if (call.reason === 'result-denied') return ['denied', '⊘', 'result withheld'];
      return ['cancelled', '–', 'cancelled'];
    default:
      return ['running', '◐', writeOutName(String(call.status ?? ''))];
  }
}

/** Texts of hosts mark code by backticks; the rest is text. @param {string} text */
export function drawInline(text) {
  const pieces = writeOut(text).split(/`([^`\n]+)`/);
  return pieces.map((piece, index) => (index % 2 === 1 ? h('code', null, piece) : piece));
}

/** @param {any} call */
function lineOf(call) {
  const done = call.status === 'completed' || call.status === 'pending-result-confirmation';
  const text = (done && textOf(call.pastTenseMessage)) || textOf(call.invocationMessage) || call.displayName || call.toolName || 'Tool';
  return String(text).split('\n', 1)[0] ?? '';
}

/** The edits of a call: what it did, or means to do. @param {any} call @returns {any[]} */
function editsOf(call) {
  const done = (call.content ?? []).filter((/** @type {any} */ block) => block?.type === 'fileEdit');
  return done.length > 0 ? done : plannedEdits(call);
}

/** The state with what is known beside it: an answer that is not confirmed, a worker that waits. @param {ChatContext} context @param {any} call @returns {[string, string, string]} */
function describeNow(context, call) {
  const isDecided = context.store.isPending(context.chat, (/** @type {any} */ action) => action.toolCallId === call.toolCallId);
  if (isDecided) return ['sent', '◇', 'answer sent, not confirmed yet'];
  return findWorkerNeed(context, call) ? ['waiting', '◆', 'worker waits for you'] : describeCall(call);
}

/** What the worker of a call that runs waits for, if it does. @param {ChatContext} context @param {any} call @returns {any} */
function findWorkerNeed(context, call) {
  if (call.status !== 'running') return undefined;
  const workers = (call.content ?? []).filter((/** @type {any} */ block) => block?.type === 'subagent').map((/** @type {any} */ block) => block.resource);
  const needed = context.sessionState()?.inputNeeded ?? [];
  return needed.find((/** @type {any} */ one) => workers.includes(one.chat) && one.kind !== 'toolClientExecution');
}

/**
 * @param {ChatContext} context
 * @param {any} part
 * @param {import('./part.js').PartPlace} place
 * @returns {import('./part.js').PartView}
 */
export function createToolPart(context, part, place) {
  const mark = h('span.tool-mark', { 'aria-hidden': 'true' });
  const line = h('span.tool-line', { dir: 'auto' });
  const word = h('span.tool-word');
  const counts = h('span.tool-counts');
  const review = h('button.button.primary.small', null, 'Review');
  const body = h('div.tool-body');
  const details = h('details.tool', null, h('summary.tool-head', null, mark, line, counts, word), body);
  const element = h('div.part-tool', null, details, review);
  let call = part.toolCall ?? {};
  /** @type {ReturnType<typeof createBody> | undefined} */
  let opened;
  review.addEventListener('click', () => {
    const needed = findWorkerNeed(context, call);
    const ask = needed ? { chatUri: needed.chat, toolCallId: needed.toolCall?.toolCallId, requestId: needed.request?.id } : { chatUri: context.chat, toolCallId: call.toolCallId };
    context.navigate({ screen: 'session', session: context.session, chat: context.chat, ask: askKey(ask) });
  });
  details.addEventListener('toggle', () => {
    if (!details.open) return; // what was built stays until the turn leaves the page
    opened ??= createBody(context, body);
    opened(call);
  });
  let lastLine = '';
  const update = (/** @type {any} */ next, /** @type {import('./part.js').PartPlace} */ at) => {
    call = next.toolCall ?? {};
    const [state, shape, words] = describeNow(context, call);
    setData(element, 'state', state);
    setText(mark, shape);
    setText(word, words);
    const text = lineOf(call);
    if (text !== lastLine) fill(line, drawInline((lastLine = text)));
    fill(counts, drawTotal(editsOf(call)));
    show(review, state === 'waiting' && at.isActive && call.status !== 'auth-required');
    if (details.open) opened?.(call);
  };
  update(part, place);
  return { element, update };
}

/** @param {ChatContext} context @param {HTMLElement} body */
function createBody(context, body) {
  const about = h('p.tool-about', { dir: 'auto' });
  const input = h('div.tool-input');
  const output = h('div.tool-output');
  const end = h('div.tool-end');
  body.append(about, input, output, end);
  const drawInput = createInput(context, input);
  const drawOutput = createOutput(context, output);
  return (/** @type {any} */ call) => {
    const from = call.contributor?.kind === 'mcp' ? ` · from an MCP server` : call.contributor?.kind === 'client' ? ' · runs in a client' : '';
    setText(about, [call.intention, `${call.displayName ?? call.toolName ?? ''}${from}`].filter(Boolean).join('\n'));
    drawInput(call);
    drawOutput(call);
    fill(end, drawEnd(call));
  };
}

/** What is said at the end of a call that did not succeed. @param {any} call */
function drawEnd(call) {
  const lines = [];
  const error = call.error;
  if (error !== undefined) lines.push(h('p.tool-error', { dir: 'auto' }, writeOut(typeof error === 'string' ? error : String(error?.message ?? JSON.stringify(error)))));
  if (call.selectedOption?.label) lines.push(h('p.muted', { dir: 'auto' }, `Chosen: ${writeOutName(call.selectedOption.label)}`));
  if (call.reasonMessage) lines.push(h('p.muted', { dir: 'auto' }, textOf(call.reasonMessage)));
  if (call.userSuggestion?.text) lines.push(h('p.muted', { dir: 'auto' }, `Instead: ${call.userSuggestion.text}`));
  return lines;
}

/** @param {ChatContext} context @param {HTMLElement} place */
function createInput(context, place) {
  let shown = '';
  return (/** @type {any} */ call) => {
    const raw = typeof call.toolInput === 'string' ? call.toolInput : call.toolInput?.uri ? '' : call.partialInput ?? '';
    if (call.toolInput?.uri && shown !== call.toolInput.uri) {
      shown = call.toolInput.uri;
      return fill(place, h('h4.tool-title', null, 'Input'), drawContent(context, call.toolInput));
    }
    if (!raw || raw === shown) return undefined; // nothing new
    shown = raw;
    return fill(place, h('h4.tool-title', null, 'Input'), ...drawInput(context, call, raw));
  };
}

/** @param {ChatContext} context @param {any} call @param {string} raw */
function drawInput(context, call, raw) {
  /** @type {any} */
  let value;
  try {
    value = JSON.parse(raw);
  } catch {
    return [drawLong(raw)]; // text, or JSON that is still being written
  }
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return [drawLong(JSON.stringify(value, null, 2))];
  const rows = [];
  for (const [key, field] of Object.entries(value)) {
    const isCommand = key === 'command' && typeof field === 'string';
    const text = typeof field === 'string' ? field : JSON.stringify(field, null, 2) ?? '';
    const isLong = text.length > 80 || text.includes('\n') || isCommand;
    const shown = !isLong && /path|uri|file/i.test(key) ? shortPath(text, context.directories()) : text;
    rows.push(h('dt', null, writeOutName(key)), h('dd', null, isLong ? drawLong(shown, isCommand ? 'bash' : undefined, context) : h('code', null, writeOutName(shown))));
  }
  return rows.length > 0 ? [h('dl.fields', null, rows)] : [h('p.muted', null, 'Nothing.')];
}

/** @param {string} text @param {string} [language] @param {ChatContext} [context] */
function drawLong(text, language, context) {
  const seen = writeOut(text);
  const code = h('code', null, seen.slice(0, INPUT_CHARS));
  const block = h('pre.output', { tabIndex: 0 }, code);
  if (language && context && seen.length <= INPUT_CHARS) {
    context.markup.render({ code: seen, lang: language }).then((answer) => answer?.runs && code.isConnected && colourCode(code, answer.runs));
  }
  if (seen.length <= INPUT_CHARS) return block;
  const more = h('button.output-more', { on: { click: () => { setText(code, seen); more.remove(); } } }, `Show all ${plural(seen.length, 'character')}`);
  return h('div', null, block, more);
}

/** Escape sequences of terminals colour and move; here they would only be noise. */
const SEQUENCES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\-_])/g;

/** Output of a command as text. @param {string} text */
export function cleanOutput(text) {
  const lines = text.replace(SEQUENCES, '').replaceAll('\r\n', '\n').split('\n');
  // A line that was written over shows what was written last.
  return writeOut(lines.map((line) => line.slice(line.replace(/\r+$/, '').lastIndexOf('\r') + 1).replace(/\r+$/, '')).join('\n'));
}

/** @param {ChatContext} context @param {HTMLElement} place */
function createOutput(context, place) {
  let shown = '';
  let showsAll = false;
  /** @type {any[]} */
  let drawnBlocks = [];
  const draw = (/** @type {any} */ call) => {
    const blocks = Array.isArray(call.content) && call.content.length > 0 ? call.content : plannedEdits(call).map((edit) => ({ type: 'fileEdit', ...edit }));
    const json = `${JSON.stringify(blocks).length} ${blocks === drawnBlocks} ${call.status}`;
    if (blocks === drawnBlocks && json === shown) return; // the same content, as it came
    drawnBlocks = blocks;
    shown = json;
    const old = place.querySelector('pre.output');
    const wasAtEnd = old ? old.scrollHeight - old.scrollTop - old.clientHeight < 8 : true;
    // What was printed in a terminal is there as text too.
    const hasText = blocks.some((/** @type {any} */ block) => block?.type === 'text');
    const own = blocks.filter((/** @type {any} */ block) => !(hasText && block?.type === 'terminal'));
    const drawn = own.map((/** @type {any} */ block) => drawBlock(context, block, showsAll, () => { showsAll = true; shown = ''; draw(call); }));
    if (drawn.length === 0 && call.structuredContent) drawn.push(drawLong(JSON.stringify(call.structuredContent, null, 2)));
    const title = call.status === 'running' ? 'Output so far' : call.status === 'pending-confirmation' ? 'What it would change' : 'Output';
    fill(place, drawn.length > 0 ? [h('h4.tool-title', null, title), ...drawn] : call.status === 'completed' ? [h('p.muted', null, 'No output.')] : []);
    const now = place.querySelector('pre.output');
    if (now && wasAtEnd) now.scrollTop = now.scrollHeight;
  };
  return draw;
}

/** @param {ChatContext} context @param {any} block @param {boolean} showsAll @param {() => void} showAll */
function drawBlock(context, block, showsAll, showAll) {
  switch (block?.type) {
    case 'text':
      return drawLines(String(block.text ?? ''), showsAll, showAll);
    case 'fileEdit':
      return drawFileEdit(context, block, { isOpen: true });
    case 'embeddedResource': case 'resource':
      return drawContent(context, block);
    case 'terminal':
      return h('div', null, drawLines(String(block.result?.preview ?? block.title ?? ''), showsAll, showAll),
        block.result?.exitCode !== undefined && h('p.muted', null, `Exit code ${Number(block.result.exitCode)}`),
        block.resource && h('button.button.small', {
          on: { click: () => context.navigate({ screen: 'terminal', session: context.session, chat: context.chat, terminal: String(block.resource) }) },
        }, 'Open the terminal'));
    case 'subagent':
      return h('button.button.small', {
        on: { click: () => context.navigate({ screen: 'session', session: context.session, chat: block.resource }) },
      }, `Open worker: ${writeOutName(String(block.title ?? 'untitled'))}`);
    default:
      return h('p.muted', null, `Content of the kind “${writeOutName(String(block?.type))}” is not shown.`);
  }
}

/** @param {string} text @param {boolean} showsAll @param {() => void} showAll */
function drawLines(text, showsAll, showAll) {
  const lines = cleanOutput(text.replace(/\n$/, '')).split('\n');
  const hidden = showsAll ? 0 : Math.max(0, lines.length - LINES_SHOWN);
  const block = h('pre.output', { tabIndex: 0 }, lines.slice(hidden).join('\n'));
  if (hidden === 0) return block;
  return h('div', null, h('button.output-more', { on: { click: showAll } }, `Show ${plural(hidden, 'earlier line')}`), block);
}
