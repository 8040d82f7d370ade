import { equal, settle } from './world.js';
import { Markup } from '../../app/js/view/markup.js';

globalThis.TextEncoder ??= class {
  encode(text) {
    return { length: text.length };
  }
};

export async function what_there_was_no_time_to_colour_is_asked_for_again() {
  const asked = [];
  const answers = [{ tree: [], cut: true }, { tree: [['p', 'a']] }];
  const markup = new Markup(async (items) => {
    asked.push(...items);
    return [answers[asked.length - 1]];
  });
  const item = { markdown: 'a' };
  equal(await markup.render(item), answers[0]);
  equal(markup.recall(item), undefined);
  equal(await markup.render(item), answers[1]);
  await settle();
  equal([await markup.render(item), asked.length], [answers[1], 2], 'and then remembered');
}
