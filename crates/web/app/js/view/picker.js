// Which model the next message is for, and what the agent may do without asking: forms from the schemas.
//
// Promises: a chat stays with the model that its last message was for until somebody chooses another; a model that is gone is said to be
// gone, never replaced in silence; a setting counts as changed when the host has confirmed it. Must not know: what a setting means.

import { fill, h, setAttribute, setText } from '../ui/dom.js';
import { createSchemaForm, tellValue } from '../ui/form.js';
import { reportProblem } from '../ui/menu.js';
import { writeOutName } from '../ui/visible.js';
import { formatCount } from './format.js';

/** @typedef {{ id: string, config?: Record<string, any> }} ModelSelection */

/** The setting whose value is named beside the model. */
const APPROVALS = 'approvals';

/** The model of the last message that named one. @param {any} chat @returns {ModelSelection | undefined} */
export function lastModel(chat) {
  if (chat?.activeTurn?.message?.model) return chat.activeTurn.message.model;
  const turns = chat?.turns ?? [];
  for (let index = turns.length - 1; index >= 0; index -= 1) {
    if (turns[index].message?.model) return turns[index].message.model;
  }
  return undefined;
}

const POLICIES = /** @type {Record<string, string>} */ ({ unconfigured: ' (not set up)', disabled: ' (not available)' });

/** The models of an agent to choose from; those that cannot be used say so. @param {any[]} models */
export const listModels = (models) => models.map((model) =>
  h('option', { value: model.id, disabled: Object.hasOwn(POLICIES, model.policyState) }, writeOutName(model.name || model.id) + (POLICIES[model.policyState] ?? '')));

/** @param {import('./chat_context.js').ChatContext} context @param {() => void} onChange */
export function createPickers(context, onChange) {
  /** @type {ModelSelection | undefined} */
  let chosen;
  /** @type {any} */
  let chat;
  const label = h('span.truncate');
  const button = h('button.button.quiet.small.picker', { 'aria-haspopup': 'dialog', on: { click: () => open() } }, label);
  const modelField = h('select.field', { id: 'picker-model', on: { change: () => choose({ id: modelField.value }) } });
  const modelHint = h('p.hint');
  const modelForm = createSchemaForm({ onChange: (values) => choose({ id: wanted()?.id ?? modelField.value, config: values }) });
  const sessionForm = createSchemaForm({ onChange: (values) => setConfig(values), isEditable: (property) => property.sessionMutable === true });
  const panel = h('div.picker-panel', { popover: 'auto', role: 'dialog', 'aria-label': 'Model and permissions' },
    h('section.stack', null, h('label.label', { for: 'picker-model' }, 'Model'), modelField, modelHint, modelForm.element),
    h('section.stack', null, sessionForm.element));

  const agent = () => context.store.root()?.agents?.find((/** @type {any} */ one) => one.provider === context.sessionState()?.provider);
  const models = () => agent()?.models ?? [];
  /** @returns {ModelSelection | undefined} */
  const wanted = () => chosen ?? lastModel(chat);
  const offered = () => models().find((/** @type {any} */ model) => model.id === (wanted()?.id ?? models()[0]?.id));

  /** @param {ModelSelection} next */
  function choose(next) {
    chosen = next;
    draw();
    onChange();
  }

  /** @param {Record<string, any>} values */
  async function setConfig(values) {
    const before = context.sessionState()?.config?.values ?? {};
    const config = Object.fromEntries(Object.entries(values).filter(([key, value]) => JSON.stringify(value) !== JSON.stringify(before[key])));
    if (Object.keys(config).length === 0) return; // nothing differs
    const sent = context.store.dispatch(context.session, { type: 'session/configChanged', config });
    draw();
    await reportProblem(sent, 'The setting was not changed');
    draw();
  }

  function open() {
    document.body.append(panel);
    drawPanel();
    panel.showPopover();
    const at = button.getBoundingClientRect();
    panel.style.left = `${Math.max(8, Math.min(at.left, innerWidth - panel.offsetWidth - 8))}px`;
    panel.style.bottom = `${Math.max(8, innerHeight - at.top + 6)}px`;
    setAttribute(button, 'aria-expanded', 'true');
  }
  panel.addEventListener('toggle', (/** @type {any} */ event) => {
    if (event.newState !== 'closed') return; // it opened
    setAttribute(button, 'aria-expanded', 'false');
    panel.remove();
  });

  function drawPanel() {
    const current = wanted()?.id ?? models()[0]?.id;
    const isGone = current !== undefined && !offered();
    fill(modelField, isGone && h('option', { value: current }, `${writeOutName(String(current))} (no longer offered)`),
      listModels(models()));
    modelField.value = current ?? '';
    const window = offered()?.maxContextWindow;
    setText(modelHint, isGone ? 'The model that this chat used is gone. Choose another.' : window ? `Context window: ${formatCount(window)} tokens` : '');
    modelForm.update(offered()?.configSchema ?? {}, wanted()?.config ?? {});
    const config = context.sessionState()?.config;
    sessionForm.update(config?.schema ?? {}, config?.values ?? {});
  }

  function draw() {
    const model = wanted()?.id ?? models()[0]?.id;
    // What is named here counts: a setting that is on its way does not yet.
    const config = context.store.confirmed(context.session)?.config;
    const property = config?.schema?.properties?.[APPROVALS];
    const mode = config?.values?.[APPROVALS] ?? property?.default;
    const modeLabel = mode && tellValue(property, mode);
    const name = offered()?.name || model || 'no model';
    setText(label, `${writeOutName(String(name))}${modeLabel ? ` · ${writeOutName(String(modeLabel))}` : ''} ▾`);
    setAttribute(button, 'aria-label', `Model ${name}${modeLabel ? `, approvals ${modeLabel}` : ''}`);
    if (panel.matches(':popover-open')) drawPanel();
  }

  return {
    element: button,
    /** @param {any} state the chat */
    update(state) {
      chat = state;
      draw();
    },
    /** Takes the model of a message that is typed on. @param {ModelSelection | undefined} model */
    take(model) {
      if (model) chosen = model;
      draw();
    },
    /** The model a message names. One that is gone is not named: the host says so then, and asks nobody else in its place. @returns {ModelSelection | undefined} */
    model() {
      const model = wanted();
      return model && (chosen || offered()) ? model : undefined;
    },
  };
}
