import { isScalar, isSequence, type Mapping, type Scalar, type Value } from './yaml-value.ts';

/** Words that some YAML reader does not parse as a string. */
const RESERVED = /^(?:y|n|yes|no|on|off|true|false|null)$/i;
/** Strings that every reader parses as the same string without quotes. */
const SAFE = /^(?:[A-Za-z_][\w./@+-]*|\/[\w./@+-]+)(?:[: ,][\w./@+-]+)*$/;
/** Characters that a literal block may contain: no control characters, and no line break but the line feed. */
const LITERAL =
  /^(?:[\t\n\u0020-\u007e\u00a0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd]|[\u{10000}-\u{10ffff}])+$/u;
/** A plain scalar keeps its text only if it is printable ASCII; other text is a string to every reader. */
const ASCII = /^[\u0020-\u007e]+$/;

/** The deepest indentation: aliases inside aliases can nest deeper than any text. */
const MAX_INDENT = 800;
/** YAML readers search for the colon of a key only within this many characters. */
const MAX_KEY_CHARACTERS = 1000;

/** Thrown for values that cannot be written: too large or too deep, as by aliases of aliases, or not Unicode. */
export class Unwritable extends Error {}

/**
 * Writes documents in block style: keys in their order, two spaces a level, sequences indented like their key. Equal values
 * give equal bytes. Throws Unwritable for values that cannot be written and for more than `limit` characters.
 */
export function writeYaml(documents: readonly Value[], limit: number): string {
  const writer = new Writer(limit);
  documents.forEach((value, place) => {
    if (place > 0) writer.line('---');
    writer.node(value, 0, '');
  });
  return writer.text();
}

class Writer {
  readonly #lines: string[] = [];
  readonly #limit: number;
  #size = 0;

  constructor(limit: number) {
    this.#limit = limit;
  }

  text(): string {
    return this.#lines.length === 0 ? '' : `${this.#lines.join('\n')}\n`;
  }

  line(text: string): void {
    this.#size += text.length + 1;
    if (this.#size > this.#limit) throw new Unwritable(`more than ${this.#limit} characters`);
    this.#lines.push(text);
  }

  /** Writes a value whose first line begins with `lead` (its key or dash, already indented). */
  node(value: Value, indent: number, lead: string): void {
    if (indent > MAX_INDENT) throw new Unwritable('nested too deeply');
    if (isScalar(value)) this.#scalar(value, indent, lead);
    else if (isSequence(value)) this.#sequence(value, indent, lead);
    else this.#mapping(value, indent, lead);
  }

  #mapping(value: Mapping, indent: number, lead: string): void {
    if (value.entries.size === 0) {
      this.line(`${lead}{}`);
      return;
    }
    // After a dash the first key is on the line of the dash, after a key on the next line.
    let first = lead.endsWith('- ') ? lead : '';
    if (first === '' && lead !== '') this.line(lead.trimEnd());
    for (const { key, value: inner } of value.entries.values()) {
      const start = first === '' ? ' '.repeat(indent) : first;
      first = '';
      const below = isSequence(inner) ? indent : indent + 2;
      this.node(inner, below, `${start}${keyText(key)}: `);
    }
  }

  #sequence(value: readonly Value[], indent: number, lead: string): void {
    if (value.length === 0) {
      this.line(`${lead}[]`);
      return;
    }
    let first = lead.endsWith('- ') ? lead : '';
    if (first === '' && lead !== '') this.line(lead.trimEnd());
    for (const item of value) {
      const start = first === '' ? ' '.repeat(indent) : first;
      first = '';
      this.node(item, indent + 2, `${start}- `);
    }
  }

  #scalar(value: Scalar, indent: number, lead: string): void {
    const header = value.plain ? undefined : literalHeader(value.text);
    if (header === undefined || lead === '') {
      this.line(`${lead}${scalarText(value)}`);
      return;
    }
    this.line(`${lead}${header}`);
    const text = value.text.endsWith('\n') ? value.text.slice(0, -1) : value.text;
    for (const line of text.split('\n')) this.line(line === '' ? '' : `${' '.repeat(indent)}${line}`);
  }
}

/** The header of a literal block with exactly this text, undefined where quotes are safer. */
function literalHeader(text: string): string | undefined {
  if (!text.includes('\n') || !LITERAL.test(text)) return undefined;
  // Leading white space would need an indentation indicator, several final line feeds another chomping indicator.
  if (/^[\s]/.test(text) || text.endsWith('\n\n') || /\n[ \t]+$/.test(text)) return undefined;
  return text.endsWith('\n') ? '|' : '|-';
}

function keyText(key: Scalar): string {
  const text = scalarText(key);
  if (text.length > MAX_KEY_CHARACTERS) throw new Unwritable(`a key is longer than ${MAX_KEY_CHARACTERS} characters`);
  return text;
}

function scalarText(value: Scalar): string {
  if (value.plain && ASCII.test(value.text)) return value.text;
  return stringText(value.text);
}

function stringText(text: string): string {
  if (text.length <= 200 && SAFE.test(text) && !RESERVED.test(text)) return text;
  // Escapes in JSON and YAML can spell half of a surrogate pair, which UTF-8 cannot encode.
  if (!text.isWellFormed()) throw new Unwritable('a string contains half of a surrogate pair');
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
