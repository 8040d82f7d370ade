import { equal, pass, settle } from './world.js';
import { findButton } from './page.js';
import { startSheet } from '../../app/js/view/sheet.js';
import { askKey } from '../../app/js/view/route.js';

const CHAT = 'ahp-chat:/1';

/** A call that waits, as the inbox has it. */
const call = (id, toolInput, more = {}) => ({
  sessionUri: 'ahp-session:/1', chatUri: CHAT, turnId: 't1', toolCallId: id, kind: 'confirm', since: Number(id.slice(1)),
  toolCall: { toolCallId: id, toolName: 'run', status: 'pending-confirmation', toolInput, ...more },
});
const question = (message) => ({
  sessionUri: 'ahp-session:/1', chatUri: CHAT, requestId: 'q1', kind: 'question', since: 1,
  request: { id: 'q1', message, questions: [{ id: 'name', kind: 'text', message: 'Who?' }] },
});

/** A sheet over a store and a page that a test plays. */
class Scene {
  sent = [];
  reads = [];
  #listeners = [];
  #route = { screen: 'inbox' };

  constructor(...entries) {
    this.entries = entries;
    const store = {
      connection: { status: 'live', isLive: true },
      inbox: () => this.entries,
      sessions: () => [],
      state: () => ({ title: '', chats: [] }),
      watch: () => () => {},
      onInbox: (listener) => this.#listeners.push(listener),
      onConnection: () => () => {},
      request: (_, { uri }) => new Promise((resolve, reject) => {
        this.reads.push({ uri, give: (data) => resolve({ encoding: 'utf-8', data }), fail: () => reject(new Error('no')) });
      }),
      dispatch: (_, action) => {
        const sent = { action };
        sent.done = new Promise((resolve) => {
          sent.end = (status) => resolve({ status });
        });
        this.sent.push(sent);
        return sent;
      },
    };
    let follow = () => {};
    const navigate = (route) => {
      this.#route = route;
      follow(route);
    };
    const shell = {
      route: () => this.#route, onRoute: (listener) => { follow = listener; }, navigate, goBack: navigate,
    };
    this.sheet = startSheet({ store, shell });
    this.dialog = document.body.querySelector('.sheet');
    this.navigate = navigate;
  }

  async open(entry) {
    this.navigate({ screen: 'inbox', ask: askKey(entry) });
    await pass(400);
  }

  /** The host says what waits now. */
  async list(...entries) {
    this.entries = entries;
    for (const listener of this.#listeners) listener();
    await settle();
  }

  button(text) {
    return findButton(text, this.dialog);
  }

  get isLocked() {
    return this.dialog.querySelector('.sheet-foot').querySelectorAll('button').every(({ disabled }) => disabled);
  }

  decisions() {
    return this.sent.filter(({ action }) => action.type !== 'chat/inputAnswerChanged').map(({ action }) => [action.toolCallId ?? action.requestId, action.approved ?? action.response]);
  }
}

const LATER = { uri: 'ahp-content:/1' };

export async function an_input_that_is_read_too_late_brings_no_buttons_to_another_call() {
  const [first, second] = [call('c1', LATER), call('c2', '{"command":"ls"}')];
  const scene = new Scene(first, second);
  await scene.open(first);
  await scene.open(second);
  const before = scene.button('Approve');
  scene.reads[0].give('{"command":"rm"}');
  await pass(400);
  equal([scene.button('Approve') === before, before.disabled], [true, false]);
  scene.button('Approve').click();
  equal(scene.decisions(), [['c2', true]]);
}

export async function an_approval_waits_until_its_input_was_seen() {
  const entry = call('c1', LATER, { options: [
    { id: 'once', kind: 'approve', label: 'Once' }, { id: 'always', kind: 'approve', label: 'Always' }, { id: 'no', kind: 'deny', label: 'No' },
  ] });
  const scene = new Scene(entry);
  await scene.open(entry);
  equal([scene.button('Once').disabled, scene.button('No').disabled], [true, false], 'while it is read');
  scene.button('More choices').click();
  equal(['Always', 'Deny and say what to do instead'].map((text) => scene.button(text) !== null), [false, true]);
  scene.reads[0].fail();
  await settle();
  equal(scene.button('Once').disabled, true, 'when it cannot be read');
  scene.button('Read it again').click();
  scene.reads[1].give('{"command":"ls"}');
  await settle();
  equal(scene.button('Once').disabled, false, 'when it is there');
  scene.button('Once').click();
  equal(scene.decisions(), [['c1', true]]);
}

export async function an_input_that_is_read_after_the_answer_leaves_the_buttons_locked() {
  const entry = call('c1', LATER);
  const scene = new Scene(entry);
  await scene.open(entry);
  scene.button('Deny').click();
  scene.reads[0].give('{"command":"ls"}');
  await pass(400);
  equal([scene.isLocked, scene.decisions()], [true, [['c1', false]]]);
  scene.sent[0].end('refused');
  await pass(400);
  equal([scene.button('Approve').disabled, scene.dialog.dataset.outcome], [false, 'refused']);
}

export async function words_for_a_denial_are_not_sent_after_an_approval() {
  const entry = call('c1', '{"command":"ls"}');
  const scene = new Scene(entry);
  await scene.open(entry);
  scene.button('More choices').click();
  scene.button('Deny and say what to do instead').click();
  scene.button('Approve').click();
  const field = scene.dialog.querySelectorAll('textarea').at(-1);
  field.value = 'no, a copy';
  field.dispatch(new KeyboardEvent('keydown', { key: 'Enter', ctrlKey: true }));
  equal(scene.decisions(), [['c1', true]]);
}

export async function a_menu_of_what_was_asked_before_chooses_nothing() {
  const options = [
    { id: 'once', kind: 'approve', label: 'Once' }, { id: 'always', kind: 'approve', label: 'Always' }, { id: 'no', kind: 'deny', label: 'No' },
  ];
  const scene = new Scene(call('c1', '{"command":"ls"}', { options }));
  await scene.open(scene.entries[0]);
  scene.button('More choices').click();
  const always = scene.button('Always');
  await scene.list(call('c1', '{"command":"rm"}', { options }));
  equal(scene.button('Always') === null, true, 'the menu is closed');
  always.click();
  await pass(400);
  always.click();
  equal(scene.decisions(), []);
  scene.button('Once').click();
  equal(scene.decisions(), [['c1', true]]);
}

export async function what_changes_while_an_answer_is_on_its_way_cannot_be_answered_again() {
  const scene = new Scene(call('c1', '{"command":"ls"}'));
  await scene.open(scene.entries[0]);
  scene.button('Approve').click();
  await scene.list(call('c1', '{"command":"rm"}'));
  await pass(400);
  equal([scene.isLocked, scene.dialog.dataset.outcome], [true, 'sent']);
  for (const text of ['Approve', 'Deny']) scene.button(text).dispatch(new Event('click'));
  equal(scene.decisions(), [['c1', true]]);
}

export async function nothing_is_sent_in_the_moment_in_which_what_is_asked_changes() {
  const scene = new Scene(call('c1', '{"command":"ls"}'));
  await scene.open(scene.entries[0]);
  scene.button('More choices').click();
  scene.button('Deny and say what to do instead').click();
  await scene.list(call('c1', '{"command":"rm"}'));
  scene.button('Deny and send').parent.parent.requestSubmit();
  equal([scene.decisions(), scene.dialog.dataset.outcome], [[], 'changed']);
  await pass(400);
  scene.button('Deny and send').parent.parent.requestSubmit();
  equal(scene.decisions(), [['c1', false]]);
}

export async function an_answer_on_its_way_is_told_when_the_sheet_is_opened_again() {
  const scene = new Scene(call('c1', '{"command":"ls"}'));
  await scene.open(scene.entries[0]);
  scene.button('Approve').click();
  scene.sheet.leave();
  await settle();
  equal(scene.sheet.isOpen(), false);
  await scene.open(scene.entries[0]);
  equal([scene.isLocked, scene.dialog.dataset.outcome], [true, 'sent']);
  scene.sent[0].end('unknown');
  await pass(400);
  equal([scene.isLocked, scene.dialog.dataset.outcome], [false, 'unknown']);
  scene.button('Approve').click();
  equal(scene.decisions().length, 2);
}

export async function questions_that_change_while_the_answers_are_on_their_way_stay_locked() {
  const scene = new Scene(question('Before we begin'));
  await scene.open(scene.entries[0]);
  scene.button('Send').click();
  await scene.list(question('Before we go on'));
  await pass(400);
  equal([scene.isLocked, scene.dialog.querySelectorAll('input, textarea').every(({ disabled }) => disabled)], [true, true]);
  scene.dialog.querySelector('.questions').requestSubmit();
  scene.button('Decline').dispatch(new Event('click'));
  equal(scene.decisions(), [['q1', 'accept']]);
}
