import { SluiceError } from '../../src/foundation/sluice-error.ts';

const MAX_DEPTH = 100;
const HIDDEN = '***';
/** A shorter text, or an encoded form of it, may be part of values that have nothing to do with the secret. */
const MIN_CHARACTERS = 8;

/**
 * Replaces secrets in all texts of a response, as they are, percent-encoded, and in Base64, alone or as a part of a longer text. It happens before
 * values are selected, cut and quoted, since afterwards a part of a secret could remain that is not found. Throws InvalidInput for a value that is
 * nested too deep.
 */
export function hideSecrets(value: unknown, secrets: readonly string[]): unknown {
  const patterns = patternsOf(secrets.filter(({ length }) => length >= MIN_CHARACTERS));
  return patterns.length === 0 ? value : hideIn(value, patterns, 0);
}

function hideIn(value: unknown, patterns: readonly RegExp[], depth: number): unknown {
  if (typeof value === 'string') return withoutPatterns(value, patterns);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === MAX_DEPTH)
    throw new SluiceError(
      'InvalidInput',
      `the response cannot be used: it is nested more than ${MAX_DEPTH} levels deep`,
    );
  if (Array.isArray(value)) return value.map((inner) => hideIn(inner, patterns, depth + 1));
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [withoutPatterns(key, patterns), hideIn(inner, patterns, depth + 1)]),
  );
}

/** The text with each secret replaced. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  return withoutPatterns(text, patternsOf(secrets));
}

function withoutPatterns(text: string, patterns: readonly RegExp[]): string {
  return patterns.reduce((hidden, pattern) => hidden.replaceAll(pattern, HIDDEN), text);
}

function patternsOf(secrets: readonly string[]): readonly RegExp[] {
  return secrets
    .filter((secret) => secret !== '')
    .flatMap((secret) => {
      const sources = [...secret].map(characterPattern).join('');
      const encoded = secret.length < MIN_CHARACTERS ? [] : base64Patterns(secret);
      return [sources, ...encoded].map((source) => new RegExp(source, 'gu'));
    });
}

/** A character as it is or percent-encoded, with hexadecimal digits of any case. */
function characterPattern(character: string): string {
  const bytes = [...Buffer.from(character)].map((byte) => byte.toString(16).padStart(2, '0'));
  const percent = bytes.map((hex) => `%${[...hex].map((digit) => `[${digit}${digit.toUpperCase()}]`).join('')}`);
  return `(?:\\u{${character.codePointAt(0)?.toString(16)}}|${percent.join('')}${character === ' ' ? '|\\+' : ''})`;
}

/**
 * The secret in Base64, of both alphabets, which depends on how many bytes of a longer text are before it. Characters at its ends that have bits of
 * other bytes too are any.
 */
function base64Patterns(secret: string): readonly string[] {
  const bytes = Buffer.from(secret);
  const any = '[\\w+\\/\\-]?';
  return [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64');
    const own = text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
    const pattern = [...own].map((one) => {
      if (one === '+') return '(?:[+\\-]|%2[bB])';
      return one === '/' ? '(?:[\\/_]|%2[fF])' : one;
    });
    return `${before === 0 ? '' : any}${pattern.join('')}${any}(?:=|%3[dD]){0,2}`;
  });
}
