import { CHAT, Host, equal, pass, settle, storage, waitingChat } from './world.js';
import { findButton } from './page.js';
import { createStore } from '../../app/js/state/store.js';
import { createAnnotations } from '../../app/js/view/annotations.js';
import { createChangeset } from '../../app/js/view/changeset.js';

const SESSION = 'ahp-session:/1';
const NOTES = `${SESSION}/annotations`;
const CHANGESET = `${SESSION}/changeset/uncommitted`;
const EDIT = { before: { uri: 'x:/a.txt' }, after: { uri: 'x:/a.txt' } };

const note = (id, more = {}) => ({ id, origin: { session: SESSION }, resource: 'x:/a.txt', resolved: false, entries: [{ id: `${id}e`, text: `text of ${id}` }], ...more });

/** A page that shows notes and changed files of a host that a test plays. */
class Scene {
  host = new Host();

  static async open(annotations = [], files = []) {
    const scene = new Scene();
    const { host } = scene;
    document.visibilityState = 'hidden'; // it draws by the clock of the test
    host.states[CHAT] = waitingChat();
    host.states[CHAT].activeTurn.message.model = { id: 'm1' };
    host.states[NOTES] = { annotations };
    host.states[CHANGESET] = { status: 'ready', files, operations: [
      { id: 'commit', label: 'Commit', scopes: ['changeset'] }, { id: 'discard', label: 'Discard', scopes: ['changeset'], confirmation: 'Take it back?' },
    ] };
    const store = createStore({ url: 'ws:/host/ahp', token: 't', clientId: 'me', storage: storage(), checkToken: async () => 'unreachable', isPageCurrent: async () => true });
    await settle();
    store.watch(CHAT, () => {});
    await settle();
    const context = {
      store, session: SESSION, chat: CHAT, directories: () => [], chatState: () => store.state(CHAT), sessionState: () => ({}),
      dispatch: (action) => store.dispatch(CHAT, action), markup: { render: async () => null },
    };
    scene.notes = createAnnotations(context, { onSent: () => {} });
    const { element } = createChangeset(context, CHANGESET, { annotations: scene.notes, isReviewable: true, onCounts: () => {} });
    document.body.append(element, scene.notes.bar);
    await pass(600);
    return scene;
  }

  /** The host takes what was sent last. */
  async take() {
    const { channel, clientSeq, action } = this.host.dispatched().at(-1);
    this.host.act(channel, action, { origin: { clientId: 'me', clientSeq } });
    await pass(300);
  }

  async refuse(why) {
    const { channel, clientSeq, action } = this.host.dispatched().at(-1);
    this.host.refuse(channel, action, 'me', clientSeq, why);
    await pass(300);
  }

  async press(label) {
    findButton(label).click();
    await pass(300);
  }

  /** Writes a note on the first file. */
  async write(text, line) {
    this.notes.open(EDIT, document.body.querySelector('summary'), line);
    document.body.querySelector('textarea').value = text;
    document.body.querySelector('form').requestSubmit();
    await pass(300);
  }

  shows(text) {
    return document.body.textContent.includes(text);
  }
}

export async function a_note_is_shown_when_the_host_has_it() {
  const scene = await Scene.open([], [{ id: 'a', edit: EDIT }]);
  await scene.write('Why?');
  equal([scene.shows('Note on the file'), findButton('Sending …') !== null], [false, true], 'on its way');
  await scene.take();
  equal([scene.shows('Note on the file'), scene.shows('Why?'), document.body.querySelector('textarea')], [true, true, null], 'confirmed');
  equal([scene.shows('1 note'), scene.shows('1 open note')], [true, true], 'counted');
}

export async function a_note_that_was_refused_is_still_in_its_field_with_the_words_of_the_host() {
  const scene = await Scene.open([], [{ id: 'a', edit: EDIT }]);
  await scene.write('Why?');
  await scene.refuse('a session has at most 2 annotations');
  equal([scene.shows('Not saved: a session has at most 2 annotations'), document.body.querySelector('textarea').value, scene.shows('Note on the file')], [true, 'Why?', false]);
  document.body.querySelector('form').requestSubmit();
  await pass(300);
  const ids = scene.host.dispatched().map(({ action }) => action.annotation.id);
  equal([ids.length, new Set(ids).size], [2, 1], 'sent again, it is the same note');
  await scene.take();
  equal(document.body.querySelector('textarea'), null, 'the field');
}

export async function of_a_note_that_a_lost_connection_took_along_nothing_is_known() {
  const scene = await Scene.open([], [{ id: 'a', edit: EDIT }]);
  await scene.write('Why?');
  scene.host.answers.reconnect = ({ subscriptions }) => ({ type: 'snapshot', snapshots: subscriptions.map((channel) => scene.host.snapshot(channel)) });
  scene.host.drop();
  await pass(5_000);
  equal([scene.shows('It may not have arrived.'), scene.shows('Not saved'), document.body.querySelector('textarea').value], [true, false, 'Why?']);
}

export async function a_note_is_resolved_when_the_host_says_so_and_stays_open_if_it_refuses() {
  const scene = await Scene.open([note('n1')], [{ id: 'a', edit: EDIT }]);
  await scene.press('Resolve');
  equal([scene.shows('sending …'), scene.shows('resolved')], [true, false], 'on its way');
  await scene.refuse('not now');
  equal([scene.shows('sending …'), scene.shows('resolved'), scene.shows('Not saved: not now')], [false, false, true], 'refused');
  await scene.press('Resolve');
  await scene.take();
  equal([scene.shows('Note on the file, resolved'), scene.notes.bar.hidden], [true, true], 'confirmed');
}

export async function a_note_is_changed_in_its_place() {
  const scene = await Scene.open([note('n1')], [{ id: 'a', edit: EDIT }]);
  await scene.press('Edit');
  const field = document.body.querySelector('textarea');
  equal(field.value, 'text of n1', 'what it said');
  field.value = 'another text';
  // What others do meanwhile does not take away what is written.
  scene.host.act(NOTES, { type: 'annotations/entrySet', annotationId: 'n1', entry: { id: 'e2', text: 'a reply' } });
  await pass(300);
  equal([scene.shows('a reply'), document.body.querySelector('textarea') === field], [true, true]);
  document.body.querySelector('form').requestSubmit();
  await scene.take();
  equal([scene.shows('another text'), scene.shows('text of n1')], [true, false], 'confirmed');
}

export async function a_note_on_a_removed_line_names_it() {
  const scene = await Scene.open([], [{ id: 'a', edit: EDIT }]);
  await scene.write('Keep it.', { side: 'old', line: 3, text: '  let a;' });
  const { annotation } = scene.host.dispatched().at(-1).action;
  equal([annotation.range, annotation.entries[0].text], [undefined, 'On removed line 3, "let a;":\nKeep it.']);
  await scene.take();
  await scene.write('Why?', { side: 'new', line: 3, text: 'let b;' });
  equal(scene.host.dispatched().at(-1).action.annotation.range, { start: { line: 2, character: 0 }, end: { line: 2, character: 6 } });
}

export async function open_notes_go_as_one_message_for_the_model_of_the_chat() {
  const scene = await Scene.open([note('n1'), note('n2', { resolved: true }), note('n3', { resource: 'x:/elsewhere' })]);
  equal([scene.shows('2 open notes'), scene.shows('x:/elsewhere: Note on the file')], [true, true], 'all are shown');
  await scene.press('Send as one message');
  const { channel, action } = scene.host.dispatched().at(-1);
  equal([channel, action.type, action.kind, action.message.model], [CHAT, 'chat/pendingMessageSet', 'queued', { id: 'm1' }]);
  equal(action.message.attachments, [{ type: 'annotations', label: '2 notes', resource: NOTES, annotationIds: ['n1', 'n3'] }]);
  equal([scene.shows('2 open notes, sent'), findButton('Send as one message').disabled], [false, true], 'on its way');
  await scene.take();
  equal([scene.shows('2 open notes, sent'), scene.shows('Note on the file, sent'), findButton('Send again') !== null], [true, true, true], 'taken');
}

export async function a_review_counts_when_the_host_has_confirmed_it() {
  const scene = await Scene.open([], [{ id: 'a', edit: EDIT }, { id: 'b', edit: { after: { uri: 'x:/b.txt' } }, reviewed: true }]);
  const [box] = document.body.querySelectorAll('input');
  const check = async () => {
    box.checked = true;
    box.dispatch(new Event('change'));
    await pass(300);
  };
  equal([box.checked, scene.shows('1 of 2 reviewed')], [false, true], 'before');
  await check();
  equal([box.checked, box.indeterminate, scene.shows('Sending …'), scene.shows('1 of 2 reviewed')], [false, true, true, true], 'on its way');
  await scene.refuse('the files of this changeset are not reviewed');
  equal([box.checked, box.indeterminate, scene.shows('Not saved: the files of this changeset are not reviewed')], [false, false, true], 'refused');
  await check();
  await scene.take();
  equal([box.checked, box.indeterminate, scene.shows('2 of 2 reviewed')], [true, false, true], 'confirmed');
}

export async function a_file_is_not_drawn_anew_while_a_note_is_written_in_it() {
  const scene = await Scene.open([], [{ id: 'a', edit: EDIT }]);
  scene.notes.open(EDIT, document.body.querySelector('summary'));
  const field = document.body.querySelector('textarea');
  field.value = 'half a';
  const file = document.body.querySelector('details');
  const changed = { id: 'a', edit: { ...EDIT, diff: { added: 5, removed: 0 } } };
  scene.host.act(CHANGESET, { type: 'changeset/fileSet', file: changed });
  await pass(300);
  equal([document.body.querySelector('details') === file, field.isConnected, scene.shows('+5')], [true, true, false], 'while it is written');
  await scene.press('Cancel');
  equal([document.body.querySelector('details') === file, scene.shows('+5')], [false, true], 'afterwards');
}

export async function what_the_host_offers_is_offered_when_nothing_is_changed_unless_it_takes_something_back() {
  const scene = await Scene.open();
  const offered = () => ['Commit', 'Discard'].filter((name) => findButton(name) !== null);
  equal([scene.shows('Nothing is changed.'), offered(), scene.shows('reviewed')], [true, ['Commit'], false]);
  scene.host.act(CHANGESET, { type: 'changeset/fileSet', file: { id: 'a', edit: EDIT } });
  await pass(300);
  equal(offered(), ['Commit', 'Discard']);
}
