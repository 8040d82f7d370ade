// Files and pictures that go along with a message: picked, pasted or dropped, uploaded first.
//
// Promises: a draft and a message hold references, never bytes; an upload that failed says so and can be tried again or left out.
// Must not know: how a message is sent.

import { fill, h, iconButton, show } from '../ui/dom.js';
import { writeOutName } from '../ui/visible.js';
import { api } from '../state/api.js';
import { isPicture } from './chat_context.js';
import { formatBytes } from './format.js';
import { labelOf } from './message.js';

/** More than this is not sent along; the host has a bound of its own. */
const BYTES_MAX = 64 << 20;

/** @typedef {{ name: string, type: string, size: number, file?: File, attachment?: any, problem?: string, url?: string }} Entry */

/** @param {{ onChange: () => void }} hooks */
export function createAttachments({ onChange }) {
  const element = h('div.composer-chips', { hidden: true });
  /** @type {Entry[]} */
  let entries = [];

  function draw() {
    show(element, entries.length > 0);
    fill(element, entries.map(drawEntry));
  }

  /** @param {Entry} entry */
  function drawEntry(entry) {
    const state = entry.problem ? entry.problem : entry.attachment ? '' : 'uploading …';
    const remove = iconButton('close', `Remove ${entry.name}`, () => {
      if (entry.url) URL.revokeObjectURL(entry.url);
      entries = entries.filter((other) => other !== entry);
      draw();
      onChange();
    }, 'chip-remove');
    return h('span.chip.chip-file', { class: entry.problem ? 'is-problem' : '' },
      entry.url && h('img.chip-thumb', { src: entry.url, alt: '' }),
      h('span.truncate', { title: entry.name }, entry.name), h('span.chip-size', null, state || formatBytes(entry.size)),
      entry.problem && entry.file && h('button.chip-retry', { on: { click: () => upload(entry) } }, 'Try again'), remove);
  }

  /** @param {Entry} entry */
  async function upload(entry) {
    if (!entry.file) return; // it came with a draft, and is there already
    entry.problem = undefined;
    draw();
    if (entry.size > BYTES_MAX) {
      entry.problem = `larger than ${formatBytes(BYTES_MAX)}`;
      return draw();
    }
    try {
      const { uri } = await api.putContent(entry.file);
      entry.attachment = {
        type: 'resource', label: entry.name, uri, contentType: entry.type, sizeHint: entry.size,
        displayKind: isPicture(entry.type) ? 'image' : 'document',
      };
    } catch (error) {
      entry.problem = error instanceof Error ? error.message : 'not uploaded';
    }
    draw();
    return onChange();
  }

  return {
    element,
    /** @param {Iterable<File>} files */
    addFiles(files) {
      for (const file of files) {
        const type = file.type || 'application/octet-stream';
        const entry = { name: writeOutName(file.name || 'pasted'), type, size: file.size, file, url: isPicture(type) ? URL.createObjectURL(file) : undefined };
        entries.push(entry);
        upload(entry);
      }
      draw();
    },
    /** Takes over attachments of a draft or a message; what is not uploaded yet stays. @param {any[]} attachments */
    replace(attachments) {
      const [there, others] = [entries.filter((entry) => entry.attachment), entries.filter((entry) => !entry.attachment)];
      for (const { url } of there) if (url) URL.revokeObjectURL(url);
      entries = [...attachments.map((attachment) => ({ name: labelOf(attachment), type: attachment.contentType ?? '', size: NaN, attachment })), ...others];
      draw();
    },
    list: () => entries.flatMap((entry) => (entry.attachment ? [entry.attachment] : [])),
    isUploading: () => entries.some((entry) => !entry.attachment && !entry.problem),
    hasProblem: () => entries.some((entry) => entry.problem !== undefined),
  };
}
