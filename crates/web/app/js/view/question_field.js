// One question of an agent as a field. Promises: only an answer that fits its question is given back; what somebody typed is their words,
// never the name of an option; every kind that is not known is answered by text. Must not know: where answers go.

import { h, setAttribute, setText, show } from '../ui/dom.js';
import { writeOut } from '../ui/visible.js';
import { textOf } from './format.js';

/**
 * @typedef {object} QuestionField
 * @property {HTMLElement} element
 * @property {() => any} read the value as it is now; null if nothing was answered
 * @property {(value: any) => void} write
 * @property {() => string | null} problem why it cannot be sent
 * @property {() => void} focus
 * @property {(isLocked: boolean) => void} lock
 */

let count = 0;

/** @param {any} question @param {() => void} onChange @returns {QuestionField} */
export function createQuestionField(question, onChange) {
  const id = `question-${(count += 1)}`;
  const make = /** @type {Record<string, any>} */ ({
    number: numberInput, integer: numberInput, boolean: yesNoInput, 'single-select': choiceInput, 'multi-select': choiceInput,
  })[question.kind] ?? textInput;
  const problemLine = h('p.problem', { id: `${id}-problem`, role: 'alert', hidden: true });
  const input = make(question, id, () => {
    if (!problemLine.hidden) showProblem();
    onChange();
  });
  const title = writeOut(textOf(question.title));
  const message = writeOut(textOf(question.message));
  const name = [h('span', { dir: 'auto' }, message || title || 'Your answer'), question.required === true && h('span.required', null, 'required')];
  const element = h(input.isGroup ? 'fieldset.question' : 'div.question', null,
    h(input.isGroup ? 'legend.label' : 'label.label', input.isGroup ? null : { for: id }, name),
    input.hint && h('p.hint', { id: `${id}-hint` }, input.hint),
    input.element, problemLine);
  setAttribute(input.focusable, 'aria-describedby', input.hint ? `${id}-hint ${id}-problem` : `${id}-problem`);

  function problem() {
    const wrong = input.problem?.() ?? null;
    if (wrong) return wrong;
    return question.required === true && input.read() === null ? 'An answer is required.' : null;
  }
  function showProblem() {
    const wrong = problem();
    setText(problemLine, wrong ?? '');
    show(problemLine, wrong !== null);
    setAttribute(input.focusable, 'aria-invalid', wrong !== null && 'true');
    return wrong;
  }
  return {
    element, read: input.read, write: input.write, problem: showProblem, focus: () => input.focusable.focus(),
    lock(isLocked) {
      for (const control of element.querySelectorAll('input, textarea, select, button')) /** @type {any} */ (control).disabled = isLocked;
    },
  };
}

/** `2 to 80 characters`. @param {any} question @param {string} unit */
function boundsInWords({ min, max }, unit) {
  const end = unit ? ` ${unit}` : '';
  if (typeof min === 'number' && typeof max === 'number') return `${min} to ${max}${end}`;
  if (typeof min === 'number') return `at least ${min}${end}`;
  if (typeof max === 'number') return `at most ${max}${end}`;
  return '';
}

/** @param {any} question @param {number} measure @param {string} unit */
function boundProblem({ min, max }, measure, unit) {
  if (typeof min === 'number' && measure < min) return `At least ${min}${unit ? ` ${unit}` : ''}.`;
  if (typeof max === 'number' && measure > max) return `At most ${max}${unit ? ` ${unit}` : ''}.`;
  return null;
}

/** @param {any} question @param {string} id @param {() => void} onChange */
function textInput(question, id, onChange) {
  const types = /** @type {Record<string, string>} */ ({ email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local' });
  const type = types[question.format];
  const field = type
    ? h('input.field', { id, type, on: { input: onChange } })
    : h('textarea.field', { id, rows: '1', dir: 'auto', class: 'grows', on: { input: onChange } });
  field.value = textOf(question.defaultValue);
  return {
    element: field, focusable: field, hint: boundsInWords(question, 'characters'),
    read: () => (field.value === '' ? null : { kind: 'text', value: field.value }),
    write: (/** @type {any} */ value) => void (field.value = value?.kind === 'text' || typeof value?.value === 'string' ? String(value.value) : ''),
    problem: () => (field.value === '' ? null : boundProblem(question, [...field.value].length, 'characters')),
  };
}

/** @param {any} question @param {string} id @param {() => void} onChange */
function numberInput(question, id, onChange) {
  const isWhole = question.kind === 'integer';
  const field = h('input.field.number', { id, type: 'text', inputmode: isWhole ? 'numeric' : 'decimal', autocomplete: 'off', on: { input: onChange } });
  field.value = typeof question.defaultValue === 'number' ? String(question.defaultValue) : '';
  const step = (/** @type {number} */ by) => {
    const now = Number(field.value || question.min || 0) + by;
    const low = Math.max(question.min ?? -Infinity, now);
    field.value = String(Math.min(question.max ?? Infinity, low));
    onChange();
  };
  const stepper = (/** @type {string} */ sign, /** @type {string} */ name, /** @type {number} */ by) =>
    h('button.button.icon', { 'aria-label': name, on: { click: () => step(by) } }, sign);
  const parsed = () => (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(field.value.trim()) ? Number(field.value) : NaN);
  return {
    element: h('div.row', null, isWhole && stepper('−', 'Less', -1), field, isWhole && stepper('+', 'More', 1)),
    focusable: field, hint: boundsInWords(question, ''),
    read: () => (field.value.trim() === '' || !Number.isFinite(parsed()) ? null : { kind: 'number', value: parsed() }),
    write: (/** @type {any} */ value) => void (field.value = typeof value?.value === 'number' ? String(value.value) : ''),
    problem() {
      if (field.value.trim() === '') return null; // nothing was answered
      if (!Number.isFinite(parsed())) return 'This is not a number.';
      if (isWhole && !Number.isSafeInteger(parsed())) return 'This is not a whole number.';
      return boundProblem(question, parsed(), '');
    },
  };
}

/** @param {any} question @param {string} id @param {() => void} onChange */
function yesNoInput(question, id, onChange) {
  const option = (/** @type {string} */ label, /** @type {string} */ value) => {
    const input = h('input', { type: 'radio', name: id, value, on: { change: onChange } });
    return { input, element: h('label.choice', null, input, h('span', null, label)) };
  };
  const yes = option('Yes', 'yes');
  const no = option('No', 'no');
  const write = (/** @type {any} */ value) => {
    yes.input.checked = value?.value === true;
    no.input.checked = value?.value === false;
  };
  write({ value: question.defaultValue });
  return {
    isGroup: true, element: h('div.choices.inline', null, yes.element, no.element), focusable: yes.input, hint: '', write,
    read: () => (yes.input.checked || no.input.checked ? { kind: 'boolean', value: yes.input.checked } : null),
  };
}

/** One or several of some options, and words of one's own where they are allowed. @param {any} question @param {string} id @param {() => void} onChange */
function choiceInput(question, id, onChange) {
  const isMany = question.kind === 'multi-select';
  const options = (Array.isArray(question.options) ? question.options : []).filter((/** @type {any} */ option) => typeof option?.id === 'string');
  const inputs = options.map((/** @type {any} */ option) =>
    h('input', { type: isMany ? 'checkbox' : 'radio', name: id, checked: option.recommended === true, data: { option: option.id }, on: { change: onChange } }));
  const choices = options.map((/** @type {any} */ option, /** @type {number} */ index) => h('label.choice', null, inputs[index],
    h('span', null, h('span', { dir: 'auto' }, writeOut(textOf(option.label) || option.id)),
      option.recommended === true && h('span.chip', null, 'recommended'),
      option.description && h('small.hint', { dir: 'auto' }, writeOut(textOf(option.description))))));
  const words = question.allowFreeformInput === true
    ? h('input.field', { type: 'text', dir: 'auto', 'aria-label': 'Other, in your own words', placeholder: 'Other, in your own words', on: { input: () => {
        // One answer is wanted: own words stand instead of an option.
        if (!isMany && words.value !== '') for (const input of inputs) input.checked = false;
        onChange();
      } } })
    : null;
  for (const input of inputs) {
    input.addEventListener('change', () => { if (!isMany && words) words.value = ''; });
  }
  const chosen = () => options.filter((/** @type {any} */ _, /** @type {number} */ index) => inputs[index].checked).map((/** @type {any} */ option) => option.id);
  const own = () => (words?.value.trim() ? [words.value.trim()] : []);
  return {
    isGroup: true, element: h('div.choices', null, choices, words), focusable: inputs[0] ?? words ?? h('input'),
    hint: isMany ? boundsInWords(question, 'of them') : '',
    read() {
      const ids = chosen();
      if (ids.length + own().length === 0) return null;
      const more = own().length > 0 ? { freeformValues: own() } : {};
      return isMany ? { kind: 'selected-many', value: ids, ...more } : { kind: 'selected', value: ids[0] ?? '', ...more };
    },
    write(/** @type {any} */ value) {
      const ids = Array.isArray(value?.value) ? value.value : [value?.value];
      options.forEach((/** @type {any} */ option, /** @type {number} */ index) => { inputs[index].checked = ids.includes(option.id); });
      if (words) words.value = value?.freeformValues?.[0] ?? '';
    },
    problem() {
      const number = chosen().length + own().length;
      return isMany && (number > 0 || question.required === true) ? boundProblem(question, number, 'of them') : null;
    },
  };
}
