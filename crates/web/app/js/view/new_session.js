// A new session: agent, folder, model, approvals, first message. Promises: nothing is made before it is asked for, and one session
// however often it is asked for; if the session is made and the message is not taken, the message is kept as the session's draft, or
// said to be lost with the session. Must not know: how settings are checked; the host does that.

import { randomId } from '../state/device.js';
import { fill, h, iconButton, setAttribute, setText, show } from '../ui/dom.js';
import { createSchemaForm } from '../ui/form.js';
import { describeProblem, showNote } from '../ui/menu.js';
import { connectionMark } from './connection.js';
import { followCreation } from './creation.js';
import { nameOf, pathOf, textOf } from './format.js';
import { listModels } from './picker.js';
import { messageOf } from './session_actions.js';
import { folderOf, isEmpty } from './summary.js';

const FOLDERS_MAX = 6;
/** The host has a session of this name. */
const EXISTS = -32003;

/** @type {import('./shell.js').Mount} */
export function mountNewSession(container, context) {
  const { store, navigate } = context;
  const mark = connectionMark(store);
  const agent = h('select.field', { id: 'new-agent', on: { change: () => { drawModels(); resolve(); } } });
  const agentHint = h('p.hint', { dir: 'auto' });
  const folder = h('input.field.mono', { id: 'new-folder', type: 'text', dir: 'ltr', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', placeholder: 'The host’s default folder', on: { input: drawFolders } });
  const folders = h('div.suggestions', { role: 'group', 'aria-label': 'Folders used before' });
  const model = h('select.field', { id: 'new-model', on: { change: drawModelSettings } });
  const modelSetting = h('div.setting', null, h('label.label', { for: 'new-model' }, 'Model'), model);
  const modelForm = createSchemaForm({ onChange: () => {} });
  const form = createSchemaForm({ onChange: (values) => resolve(values) });
  const message = h('textarea.field.grows', { id: 'new-message', rows: '4', dir: 'auto', placeholder: 'What should the agent do?' });
  const problem = h('p.problem', { role: 'alert', hidden: true });
  const start = h('button.button.primary', { type: 'submit' }, 'Start');
  const page = h('form.filled', { novalidate: true, on: { submit: (/** @type {Event} */ event) => { event.preventDefault(); create(); } } },
    h('div.scroller', null, h('div.page.stack', null,
      h('div.setting', null, h('label.label', { for: 'new-message' }, 'First message'), message),
      h('div.setting', null, h('label.label', { for: 'new-agent' }, 'Agent'), agent, agentHint),
      h('div.setting', null, h('label.label', { for: 'new-folder' }, 'Folder'), folder, folders),
      modelSetting, modelForm.element, form.element)),
    // It stays where it is while the settings of an agent come.
    h('div.page-foot', null, h('div.page-foot-inner', null, problem, start)));
  fill(container,
    h('header.head', null, iconButton('back', 'Back', () => /** @type {any} */ (context).goBack({ screen: 'sessions' }), 'narrow-only'), h('h1.head-title', null, 'New session'), mark.element),
    page);
  message.addEventListener('keydown', (/** @type {KeyboardEvent} */ event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey) && !event.isComposing) page.requestSubmit();
  });

  const agents = () => store.root()?.agents ?? [];
  const chosenAgent = () => agents().find((/** @type {any} */ one) => one.provider === agent.value);
  const chosenModel = () => (chosenAgent()?.models ?? []).find((/** @type {any} */ one) => one.id === model.value);
  let drawnAgents = '';
  let resolving = 0;
  let isCreating = false;
  let isMounted = true;
  /** One of which it is not known whether the host made it: the same is asked for again. @type {{session: string, params: string} | undefined} */
  let unknown;

  function drawAgents() {
    const names = JSON.stringify(agents().map((/** @type {any} */ one) => [one.provider, one.displayName, (one.models ?? []).map((/** @type {any} */ of) => of.id)]));
    if (names === drawnAgents) return; // a choice stays as it is
    drawnAgents = names;
    const before = agent.value;
    fill(agent, agents().map((/** @type {any} */ one) => h('option', { value: one.provider }, textOf(one.displayName) || one.provider)));
    if (agents().some((/** @type {any} */ one) => one.provider === before)) agent.value = before;
    drawModels();
    resolve();
  }

  function drawModels() {
    const models = chosenAgent()?.models ?? [];
    setText(agentHint, textOf(chosenAgent()?.description));
    const before = model.value;
    fill(model, h('option', { value: '' }, 'The agent’s default'), listModels(models));
    model.value = models.some((/** @type {any} */ one) => one.id === before) ? before : '';
    show(modelSetting, models.length > 0);
    drawModelSettings();
  }

  function drawModelSettings() {
    modelForm.update(chosenModel()?.configSchema ?? {}, {});
  }

  function drawFolders() {
    const used = store.sessions().filter((/** @type {any} */ one) => !isEmpty(one)).map(folderOf).filter((/** @type {string} */ path) => path.startsWith('/'));
    const root = pathOf(store.defaultDirectory);
    const paths = [...new Set(root ? [root, ...used] : used)].slice(0, FOLDERS_MAX);
    fill(folders, paths.map((path) => h('button.button', {
      title: path, 'aria-pressed': String(folder.value === path || (folder.value === '' && path === root)), on: { click: () => { folder.value = folder.value === path ? '' : path; drawFolders(); } },
    }, h('span.truncate', { dir: 'auto' }, nameOf(path)))));
    show(folders, paths.length > 0);
  }

  /** Asks the host which settings there are for what was chosen. @param {Record<string, any>} [values] */
  async function resolve(values = {}) {
    if (!agent.value || !store.connection.isLive) return; // asked again when both are there
    const ours = (resolving += 1);
    try {
      const answer = await store.request('resolveSessionConfig', { channel: 'ahp-root://', provider: agent.value, config: values, ...resolved() });
      if (ours === resolving) form.update(answer.schema ?? {}, answer.values ?? {});
    } catch (error) {
      if (ours === resolving) setProblem(`The settings of this agent cannot be read: ${messageOf(error)}`);
    }
  }

  function directories() {
    const path = folder.value.trim();
    return path === '' ? {} : { workingDirectories: [fileUri(path)] };
  }

  /** One folder, by the name that this request has for it. */
  function resolved() {
    const [uri] = directories().workingDirectories ?? [];
    return uri === undefined ? {} : { workingDirectory: uri };
  }

  /** @param {string} text */
  function setProblem(text) {
    setText(problem, text);
    show(problem, text !== '');
  }

  async function create() {
    const path = folder.value.trim();
    if (path !== '' && !path.startsWith('/')) {
      setProblem('The folder is a whole path on the host, such as /home/me/project.');
      setAttribute(folder, 'aria-invalid', 'true');
      return void folder.focus();
    }
    setAttribute(folder, 'aria-invalid', null);
    if (!form.isComplete() || !modelForm.isComplete()) return; // the fields say what is wrong
    if (isCreating) return; // a key can ask again while the button cannot
    setProblem('');
    isCreating = start.disabled = true;
    const wanted = { provider: agent.value, config: form.values(), ...directories() };
    const params = JSON.stringify(wanted);
    const isRepeated = unknown?.params === params;
    const session = isRepeated && unknown ? unknown.session : `${agent.value}:/${randomId()}`;
    const creation = followCreation(store, session);
    const { isLive } = store.connection;
    try {
      await store.request('createSession', { channel: session, progressToken: session, ...wanted });
    } catch (error) {
      const { code } = /** @type {any} */ (error);
      if (!isRepeated || code !== EXISTS) {
        creation.end();
        isCreating = start.disabled = false;
        // Only the host's own word says that there is none, if it was asked.
        if (isLive) unknown = code === undefined ? { session, params } : undefined;
        return void setProblem(`${isLive && unknown ? 'The session may not have been created. Press Start to try the same again' : 'The session was not created'}: ${messageOf(error)}`);
      }
    }
    creation.isThere();
    const text = message.value.trim();
    if (text !== '') sendFirst(session, text);
    // Whoever went elsewhere meanwhile stays there.
    if (isMounted) navigate({ screen: 'session', session }, { replace: true });
  }

  /** @param {string} session @param {string} text */
  function sendFirst(session, text) {
    /** @type {any} */
    const first = { text, origin: { kind: 'user' } };
    const settings = modelForm.values();
    if (model.value !== '') first.model = Object.keys(settings).length > 0 ? { id: model.value, config: settings } : { id: model.value };
    let isSent = false;
    const release = store.watch(session, (/** @type {any} */ state) => {
      const chat = state?.defaultChat ?? state?.chats?.[0]?.resource;
      if (isSent) return;
      if (state?.lifecycle === 'failed' || (!state && store.errorOf(session))) {
        isSent = true;
        // There is no chat that could hold it. A watch may tell before it can be left.
        queueMicrotask(() => release());
        return void showNote(`The first message was not sent: ${text}`, { isProblem: true });
      }
      if (!chat) return; // the session is on its way
      isSent = true;
      sendTo(chat, first, release);
    });
  }

  /** The chat is watched before it is written to, so that its answer is heard. @param {string} chat @param {any} first @param {() => void} release */
  function sendTo(chat, first, release) {
    let isWaiting = true;
    const leave = store.watch(chat, (/** @type {any} */ state) => {
      const gone = state ? undefined : store.errorOf(chat);
      if (!isWaiting || (!state && !gone)) return; // it was sent, or the chat is on its way
      isWaiting = false;
      const over = (/** @type {string} */ why) => {
        if (why) {
          store.drafts.set(chat, first);
          showNote(`The first message is in the message field. ${why}`, { isProblem: true });
        }
        queueMicrotask(() => { leave(); release(); });
      };
      if (gone) return over(`Not sent: ${gone.message}`);
      const sent = store.dispatch(chat, { type: 'chat/turnStarted', turnId: `turn-${randomId()}`, startedAt: new Date().toISOString(), message: first });
      describeProblem(sent, 'Not sent').then(over);
    }, { view: { turns: 1 } });
  }

  const releases = [store.onRoot(drawAgents), store.onSessions(drawFolders), store.onConnection(() => { drawAgents(); drawFolders(); if (form.isEmpty()) resolve(); }), mark.release];
  drawAgents();
  drawFolders();
  return { update() {}, unmount: () => { isMounted = false; for (const release of releases) release(); } };
}

/** @param {string} path */
function fileUri(path) {
  return `file://${path.split('/').map(encodeURIComponent).join('/')}`;
}
