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
  equal(await markup.render(item), answers[1]);
  await settle();
  equal([await markup.render(item), asked.length], [answers[1], 2], 'and then remembered');
}

export async function what_is_never_coloured_is_drawn_plain() {
  let asked = 0;
  const cut = { tree: [['p', 'a']], cut: true };
  const markup = new Markup(async (items) => {
    asked += items.length;
    return items.map(() => cut);
  });
  equal(await markup.render({ markdown: 'a', open: true }), cut);
  equal(asked, 1, 'what is being written is not asked for again');
  equal(await markup.render({ markdown: 'a' }), cut);
  equal(asked, 5);
  equal(markup.recall({ markdown: 'a' }), undefined);
}
