// Forms from schemas: one control for each setting. Promises: a value that the schema does not permit is not given back; what a form
// cannot show or change is shown as it is, if it is set, and kept. Must not know: what the settings are for.

import { fill, h, setAttribute, setText, show } from './dom.js';

let count = 0;

/** A value as people read it. @param {any} property @param {any} value @returns {string} */
export const tellValue = (property, value) =>
  property?.enumLabels?.[property.enum?.indexOf(value)] ?? (typeof value === 'string' ? value : JSON.stringify(value, null, 2));

/**
 * @param {{onChange: (values: Record<string, any>) => void, leaveOut?: (key: string) => boolean, isEditable?: (property: any) => boolean}} how
 */
export function createSchemaForm({ onChange, leaveOut = () => false, isEditable = () => true }) {
  const element = h('div.stack.schema-form');
  /** @type {Map<string, {read: () => any, problem: () => string | null}>} */
  let controls = new Map();
  /** @type {Record<string, any>} */
  let values = {};
  let drawn = '';

  /** @param {any} schema @param {Record<string, any>} given */
  function update(schema, given) {
    values = { ...given };
    const text = JSON.stringify([schema, given]);
    // A form that somebody is using is not drawn under their fingers.
    if (text === drawn || (drawn !== '' && element.contains(document.activeElement) && JSON.stringify(readAll()) === JSON.stringify(given))) return;
    drawn = text;
    controls = new Map();
    const properties = Object.entries(schema?.properties ?? {}).filter(([key]) => !leaveOut(key));
    fill(element, properties.map(([key, property]) => drawProperty(key, property)));
  }

  /** @param {string} key @param {any} property */
  function drawProperty(key, property) {
    const id = `setting-${(count += 1)}`;
    const current = key in values ? values[key] : property.default;
    const name = typeof property.title === 'string' && property.title !== '' ? property.title : key;
    const control = isEditable(property) && property.readOnly !== true ? makeControl(id, property, current, () => changed(key)) : null;
    const hint = typeof property.description === 'string' ? property.description : '';
    const problem = h('p.problem', { id: `${id}-problem`, role: 'alert', hidden: true });
    if (!control) {
      if (current === undefined || current === null) return null; // nothing is set, and nothing can be
      return h('div.setting', null, h('span.label', { dir: 'auto' }, name), hint && h('p.hint', { dir: 'auto' }, hint),
        h('pre.json', { tabindex: '0', 'aria-label': name }, tellValue(property, current)));
    }
    controls.set(key, {
      read: control.read,
      problem() {
        const wrong = control.problem?.() ?? null;
        setText(problem, wrong ?? '');
        show(problem, wrong !== null);
        setAttribute(control.focusable, 'aria-invalid', wrong !== null && 'true');
        return wrong;
      },
    });
    setAttribute(control.focusable, 'aria-describedby', `${id}-hint ${id}-problem`);
    return h('div.setting', null, h('label.label', { for: id, dir: 'auto' }, name), hint && h('p.hint', { id: `${id}-hint`, dir: 'auto' }, hint), control.element, problem);
  }

  /** @param {string} key */
  function changed(key) {
    if (controls.get(key)?.problem() === null) onChange(readAll());
  }

  function readAll() {
    const all = { ...values };
    for (const [key, control] of controls) {
      const value = control.read();
      if (value === undefined) delete all[key];
      else all[key] = value;
    }
    return all;
  }

  return {
    element,
    update,
    values: readAll,
    /** Whether everything can be sent; what is wrong is shown. */
    isComplete: () => [...controls.values()].map((control) => control.problem()).every((wrong) => wrong === null),
    isEmpty: () => element.childElementCount === 0,
  };
}

/** @param {string} id @param {any} property @param {any} current @param {() => void} onChange @returns {any} null if no control fits */
function makeControl(id, property, current, onChange) {
  if (Array.isArray(property.enum) && property.enum.length > 0) return choiceControl(id, property, current, onChange);
  switch (property.type) {
    case 'boolean': {
      const field = h('input.switch', { id, type: 'checkbox', role: 'switch', checked: current === true, on: { change: onChange } });
      return { element: field, focusable: field, read: () => field.checked };
    }
    case 'integer':
    case 'number':
      return numberControl(id, property, current, onChange);
    case 'string': {
      const field = h('input.field', { id, type: 'text', dir: 'auto', value: typeof current === 'string' ? current : '', on: { change: onChange } });
      return { element: field, focusable: field, read: () => (field.value === '' ? undefined : field.value) };
    }
    default:
      return null;
  }
}

/** @param {string} id @param {any} property @param {any} current @param {() => void} onChange */
function choiceControl(id, property, current, onChange) {
  const labels = property.enumLabels ?? [];
  const descriptions = property.enumDescriptions ?? [];
  const known = property.enum.map((/** @type {any} */ value) => JSON.stringify(value));
  const now = JSON.stringify(current ?? null);
  // A value that is set and not listed any more is shown, not replaced in silence.
  const isUnlisted = current !== undefined && current !== null && !known.includes(now);
  const field = h('select.field', { id, on: { change: () => { describe(); onChange(); } } },
    (current === undefined || current === null) && h('option', { value: '' }, 'Not set'),
    isUnlisted && h('option', { value: now }, `${typeof current === 'string' ? current : now} (not offered)`),
    property.enum.map((/** @type {any} */ value, /** @type {number} */ index) => h('option', { value: known[index] }, labels[index] ?? (typeof value === 'string' ? value : known[index]))));
  field.value = current === undefined || current === null ? '' : now;
  const text = h('p.hint', { dir: 'auto' });
  function describe() {
    setText(text, descriptions[known.indexOf(field.value)] ?? '');
    show(text, text.textContent !== '');
  }
  describe();
  return { element: h('div', null, field, text), focusable: field, read: () => (field.value === '' ? undefined : JSON.parse(field.value)) };
}

/** @param {string} id @param {any} property @param {any} current @param {() => void} onChange */
function numberControl(id, property, current, onChange) {
  const isWhole = property.type === 'integer';
  const { minimum, maximum } = property;
  const field = h('input.field.number', { id, type: 'text', inputmode: isWhole ? 'numeric' : 'decimal', value: typeof current === 'number' ? String(current) : '', on: { change: onChange } });
  const parsed = () => (field.value.trim() === '' ? undefined : Number(field.value));
  return {
    element: field, focusable: field, read: parsed,
    problem() {
      const value = parsed();
      if (value === undefined) return null;
      if (!Number.isFinite(value) || (isWhole && !Number.isInteger(value))) return isWhole ? 'This is not a whole number.' : 'This is not a number.';
      if (typeof minimum === 'number' && value < minimum) return `At least ${minimum}.`;
      if (typeof maximum === 'number' && value > maximum) return `At most ${maximum}.`;
      return null;
    },
  };
}
