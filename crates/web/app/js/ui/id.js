// Names that nobody else gives. Promises: 128 random bits, also on pages without https, where browsers have no `randomUUID`.

export function makeId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
