import { SluiceError } from '../../src/foundation/sluice-error.ts';

const MAX_DEPTH = 100;
const HIDDEN = '***';
/** A shorter text, or an encoded form of it, may be part of values that have nothing to do with the secret. */
const MIN_CHARACTERS = 8;
/** Of a long secret its beginning is searched, which costs a known time in each text; as much as follows of the rest is hidden with it. */
const ANCHOR_BYTES = 64;
const PERCENT = '%'.charCodeAt(0);
const PADDING = '='.charCodeAt(0);

/**
 * Replaces secrets in all texts of a response, as they are, percent-encoded, and in Base64, alone or as a part of a longer text. It happens before
 * values are selected, cut and quoted, since afterwards a part of a secret could remain that is not found. Throws InvalidInput for a value that is
 * nested too deep.
 */
export function hideSecrets(value: unknown, secrets: readonly string[]): unknown {
  const forms = formsOf(secrets.filter(({ length }) => length >= MIN_CHARACTERS));
  return forms.length === 0 ? value : hideIn(value, forms, 0);
}

function hideIn(value: unknown, forms: readonly Form[], depth: number): unknown {
  if (typeof value === 'string') return withoutForms(value, forms);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === MAX_DEPTH)
    throw new SluiceError(
      'InvalidInput',
      `the response cannot be used: it is nested more than ${MAX_DEPTH} levels deep`,
    );
  if (Array.isArray(value)) return value.map((inner) => hideIn(inner, forms, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [withoutForms(key, forms), hideIn(inner, forms, depth + 1)]),
  );
}

/** The text with each secret replaced. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return withoutForms(text, formsOf(secrets));
}

/** Bytes that a text without percent-encoding contains where the secret is. */
interface Form {
  readonly bytes: Buffer;
  /** Characters of the text that count as others: those of the other alphabet of Base64, or `+` for a space. */
  readonly same: 'none' | 'alphabets' | 'spaces';
}

function formsOf(secrets: readonly string[]): readonly Form[] {
  return secrets
    .filter((secret) => secret !== '')
    .flatMap((secret): Form[] => {
      const bytes = Buffer.from(secret);
      return [
        { bytes, same: 'none' },
        ...(secret.includes(' ') ? [{ bytes, same: 'spaces' } as const] : []),
        ...(secret.length < MIN_CHARACTERS ? [] : base64Forms(bytes)),
      ];
    });
}

/** The secret in Base64, which depends on how many bytes of a longer text are before it: the characters that have no bits of others. */
function base64Forms(bytes: Buffer): readonly Form[] {
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const own = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    return { bytes: Buffer.from(own), same: 'alphabets' };
  });
}

function withoutForms(text: string, forms: readonly Form[]): string {
  const encoded = Buffer.from(text);
  const shortest = Math.min(...forms.map(({ bytes }) => bytes.length), ANCHOR_BYTES);
  if (encoded.length < shortest) return text;
  const { bytes, starts } = percentDecoded(encoded);
  const views = {
    none: bytes,
    alphabets: replaced(bytes, { '-': '+', _: '/' }),
    spaces: forms.some(({ same }) => same === 'spaces') ? percentDecoded(replaced(encoded, { '+': ' ' })).bytes : bytes,
  };
  const isHidden = new Uint8Array(bytes.length);
  let isAny = false;
  for (const { bytes: wanted, same } of forms) {
    const view = views[same];
    const anchor = wanted.subarray(0, ANCHOR_BYTES);
    for (let at = view.indexOf(anchor), end = 0; at !== -1; at = view.indexOf(anchor, end)) {
      end = at + anchor.length;
      while (end - at < wanted.length && view[end] === wanted[end - at]) end += 1;
      const [from, to] = same === 'alphabets' ? withEnds(view, at, end) : [at, end];
      isHidden.fill(1, from, to);
      isAny = true;
    }
  }
  if (!isAny) return text;
  const parts: string[] = [];
  for (let from = 0; from < bytes.length; ) {
    const hidden = isHidden[from];
    const change = isHidden.indexOf(hidden === 1 ? 0 : 1, from);
    const to = change === -1 ? bytes.length : change;
    parts.push(hidden === 1 ? HIDDEN : encoded.toString('utf8', starts(from), starts(to)));
    from = to;
  }
  return parts.join('');
}

/** The bytes that a percent-encoded text means, and where each is in it. */
function percentDecoded(encoded: Buffer): { readonly bytes: Buffer; starts(index: number): number } {
  if (!encoded.includes('%')) return { bytes: encoded, starts: (index) => index };
  const bytes = Buffer.alloc(encoded.length);
  const starts = new Uint32Array(encoded.length + 1);
  let length = 0;
  for (let at = 0; at < encoded.length; length += 1) {
    starts[length] = at;
    const byte = encoded[at] === PERCENT ? Number.parseInt(hexAt(encoded, at + 1), 16) : Number.NaN;
    bytes[length] = Number.isNaN(byte) ? (encoded[at] ?? 0) : byte;
    at += Number.isNaN(byte) ? 1 : 3;
  }
  starts[length] = encoded.length;
  return { bytes: bytes.subarray(0, length), starts: (index) => starts[index] ?? encoded.length };
}

/** Two hexadecimal digits, or an empty text. */
function hexAt(encoded: Buffer, at: number): string {
  const digits = encoded.toString('latin1', at, at + 2);
  return /^[\da-f]{2}$/i.test(digits) ? digits : '';
}

function replaced(bytes: Buffer, characters: Readonly<Record<string, string>>): Buffer {
  const pairs = Object.entries(characters).map(([from, to]) => [from.charCodeAt(0), to.charCodeAt(0)] as const);
  if (!pairs.some(([from]) => bytes.includes(from))) return bytes;
  const copy = Buffer.from(bytes);
  for (const [from, to] of pairs)
    for (let at = copy.indexOf(from); at !== -1; at = copy.indexOf(from, at + 1)) copy[at] = to;
  return copy;
}

/** Includes a character at each end that has bits of the secret and of other bytes, and the padding. */
function withEnds(bytes: Buffer, from: number, to: number): [number, number] {
  const isBase64 = (at: number) => /^[\w+/]$/.test(bytes.toString('latin1', at, at + 1));
  let end = isBase64(to) ? to + 1 : to;
  for (let count = 0; count < 2 && bytes[end] === PADDING; count += 1) end += 1;
  return [from > 0 && isBase64(from - 1) ? from - 1 : from, end];
}
