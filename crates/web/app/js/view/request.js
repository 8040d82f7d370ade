// A request of an agent as the inbox and the sheets show it. Promises: what is read here is what the host said, nothing is guessed
// but the words. Must not know: elements.

import { writeOut, writeOutName } from '../ui/visible.js';
import { plural, textOf } from './format.js';

/** What a session waits for, in one line. @param {any[]} entries of the inbox, at least one */
export function inboxWords(entries) {
  const [first, ...others] = entries;
  const rest = others.length > 0 ? ` and ${others.length} more` : '';
  const detail = entryDetail(first);
  return `${entryTitle(first)}${detail && others.length === 0 ? `: ${detail}` : ''}${rest}`;
}

/** @param {any} entry of the inbox */
export function entryTitle(entry) {
  const title = writeOutName(textOf(entry.title).trim());
  if (title) return title;
  return entry.kind === 'question' ? 'Questions for you' : entry.kind === 'result' ? 'A result to review' : 'A tool call';
}

/** What an entry is about, in one line; empty if its title says it all. @param {any} entry */
export function entryDetail(entry) {
  if (entry.kind === 'question') return questionCount(entry.request);
  const fields = typeof entry.toolCall?.toolInput === 'string' ? inputFields(entry.toolCall.toolInput) : [];
  const input = fields[0]?.text ?? '';
  const message = textOf(entry.toolCall?.invocationMessage);
  // A command or a path says more than the name of the tool, the name of the tool more than some field of it.
  const texts = FIRST_FIELDS.includes(fields[0]?.name ?? '') ? [input, message] : [message, input];
  const detail = texts.find((text) => text.trim() !== '' && text !== '{}' && !textOf(entry.title).includes(text.trim())) ?? '';
  return writeOutName(detail.trim().split('\n')[0]?.slice(0, 200) ?? '');
}

/** What the button of an entry says. @param {any} entry */
export const entryVerb = (entry) => (entry.kind === 'question' ? 'Answer' : 'Review');

/** Where a chat stands: `main`, `worker: tests`. @param {any} session @param {string} chatUri */
export function chatName(session, chatUri) {
  const chat = (session?.chats ?? []).find((/** @type {any} */ one) => one.resource === chatUri);
  if (!chat) return '';
  const title = writeOutName(textOf(chat.title));
  if (chat.origin?.kind === 'tool') return title ? `worker: ${title}` : 'worker';
  return session.chats.length > 1 ? title || 'chat' : '';
}

/**
 * The decision that a tool call waits for.
 * @typedef {object} Decision
 * @property {'call' | 'result' | 'sign-in'} subject
 * @property {{id: string | null, kind: 'approve' | 'deny', label: string, group: number}[]} options
 * @property {string | null} editableInput
 *
 * @param {any} call @returns {Decision | null}
 */
export function readDecision(call) {
  const subject = /** @type {const} */ ({ 'pending-confirmation': 'call', 'pending-result-confirmation': 'result', 'auth-required': 'sign-in' });
  const about = subject[/** @type {keyof typeof subject} */ (call?.status)];
  if (!about) return null;
  const plain = { approve: about === 'result' ? 'Show it to the agent' : 'Approve', deny: about === 'result' ? 'Withhold it' : 'Deny' };
  /** @type {Decision['options']} */
  let options = [];
  if (about === 'call' && Array.isArray(call.options) && call.options.length > 0) {
    // Whatever another kind may mean, it cannot be chosen for what it says.
    options = call.options
      .filter((/** @type {any} */ option) => (option?.kind === 'approve' || option?.kind === 'deny') && typeof option.id === 'string')
      .map((/** @type {any} */ option) => ({
        id: option.id, kind: option.kind, label: writeOutName(textOf(option.label)) || (option.kind === 'approve' ? plain.approve : plain.deny), group: Number(option.group ?? 0),
      }));
  } else {
    if (about !== 'sign-in') options.push({ id: null, kind: 'approve', label: plain.approve, group: 0 });
    options.push({ id: null, kind: 'deny', label: plain.deny, group: 0 });
  }
  const editableInput = about === 'call' && call.editable === true && typeof call.toolInput === 'string' ? call.toolInput : null;
  return { subject: about, options, editableInput };
}

/**
 * The action that tells the host what was decided.
 * @param {{turnId: string, toolCallId: string, subject: Decision['subject'], option: {id: string | null, kind: 'approve' | 'deny'}, editedInput?: string | null, suggestion?: string}} decided
 */
export function decisionAction({ turnId, toolCallId, subject, option, editedInput, suggestion }) {
  const isApproved = option.kind === 'approve';
  /** @type {any} */
  const action = { turnId, toolCallId };
  if (subject === 'sign-in') {
    action.type = 'chat/toolCallComplete';
    action.result = { success: false, pastTenseMessage: 'The user did not sign in', error: { message: 'the user did not sign in' } };
    return action;
  }
  action.type = subject === 'result' ? 'chat/toolCallResultConfirmed' : 'chat/toolCallConfirmed';
  action.approved = isApproved;
  if (subject === 'result') return action;
  if (isApproved) action.confirmed = 'user-action';
  else action.reason = 'denied';
  if (option.id !== null) action.selectedOptionId = option.id;
  // An edited input belongs to an approval, words to a denial.
  if (isApproved && typeof editedInput === 'string') action.editedToolInput = editedInput;
  if (!isApproved && suggestion) action.userSuggestion = { text: suggestion, origin: { kind: 'user' } };
  return action;
}

/** Everything of a call that a decision is about: if it changes, another thing is decided. @param {any} call */
export function aboutOf(call) {
  const fields = ['status', 'toolInput', 'invocationMessage', 'confirmationTitle', 'edits', 'pastTenseMessage', 'content', 'error', 'options', 'editable'];
  return JSON.stringify(fields.map((field) => call?.[field] ?? null));
}

/** Fields that say the most about a call come first. */
const FIRST_FIELDS = ['command', 'path', 'file_path', 'url', 'pattern'];

/**
 * The input of a call as it is read: the fields of a JSON object, or the whole text. Nothing is left out.
 * @param {string} input
 * @returns {{name: string | null, text: string}[]}
 */
export function inputFields(input) {
  let object;
  try {
    object = JSON.parse(input);
  } catch {
    return [{ name: null, text: writeOut(input) }]; // not JSON: shown as it is
  }
  const isPlain = object !== null && typeof object === 'object' && !Array.isArray(object);
  // What is shown must be all of it.
  if (!isPlain || hasLostText(input, object)) return [{ name: null, text: writeOut(input) }];
  const names = Object.keys(object);
  const rank = (/** @type {string} */ name) => (FIRST_FIELDS.includes(name) ? FIRST_FIELDS.indexOf(name) : FIRST_FIELDS.length);
  names.sort((a, b) => rank(a) - rank(b));
  return names.map((name) => {
    const value = object[name];
    return { name: writeOutName(name), text: writeOut(typeof value === 'string' ? value : JSON.stringify(value, null, 2)) };
  });
}

/** Whether a text of JSON says something that its value does not: a key twice, a number with more digits than fit. @param {string} input @param {any} object */
function hasLostText(input, object) {
  const squeezed = input.replace(/("(?:[^"\\]|\\.)*")|\s+/g, '$1');
  return squeezed !== JSON.stringify(object);
}

/** The edits a call would make. @param {any} call @returns {any[]} */
export function editsOf(call) {
  const edits = call?.edits;
  return Array.isArray(edits) ? edits : Array.isArray(edits?.items) ? edits.items : [];
}

/** What a risk assessment says, in words; null without one. @param {any} call */
export function riskInWords(call) {
  const risk = call?.riskAssessment;
  if (!risk) return null;
  if (typeof risk.safety !== 'number') return { level: 'unknown', text: 'The risk is being assessed …' };
  const level = risk.safety < 0.34 ? 'high' : risk.safety < 0.67 ? 'medium' : 'low';
  const reason = writeOut(textOf(risk.reason));
  return { level, text: `${level[0]?.toUpperCase()}${level.slice(1)} risk${reason ? `: ${reason}` : ''}` };
}

/** @param {any} request @returns {string} how many questions there are, in words */
export function questionCount(request) {
  const count = (request?.questions ?? []).length;
  return count > 1 ? plural(count, 'question') : '';
}
