import { SluiceError } from '../../foundation/sluice-error.ts';
import { type LabelOperator, type LabelRequirement, labelRequirement } from './label-requirement.ts';

const MAX_LENGTH = 64 * 1024;
const TOKEN = /\s*(?:([A-Za-z0-9_./-]+)|(==|!=|[=!(),]))/y;

interface Token {
  readonly text: string;
  readonly word: boolean;
  /** 1-based. */
  readonly column: number;
}

/**
 * Parses the text form of label selectors as kubectl accepts it: requirements separated by commas, each `key=value`,
 * `key==value`, `key!=value`, `key in (a,b)`, `key notin (a,b)`, `key` or `!key`. A value may be empty.
 */
export function parseLabelRequirements(text: string): LabelRequirement[] {
  if (text.length > MAX_LENGTH) throw error(1, `has ${text.length} characters, at most ${MAX_LENGTH} are allowed`);
  const tokens = tokenize(text);
  const requirements: LabelRequirement[] = [];
  let position = 0;
  const peek = () => tokens[position];
  const columnHere = () => peek()?.column ?? text.length + 1;
  const take = (symbol: string): boolean => {
    const found = peek()?.word === false && peek()?.text === symbol;
    if (found) position += 1;
    return found;
  };
  const word = (what: string): string => {
    const token = peek();
    if (token?.word !== true) throw error(columnHere(), `expected ${what}, found ${shown(token)}`);
    position += 1;
    return token.text;
  };
  const optionalWord = (): string => (peek()?.word === true ? word('a value') : '');

  function values(): string[] {
    if (!take('(')) throw error(columnHere(), `expected "(", found ${shown(peek())}`);
    const list = [optionalWord()];
    while (take(',')) list.push(optionalWord());
    if (!take(')')) throw error(columnHere(), `expected "," or ")", found ${shown(peek())}`);
    return list;
  }

  function requirement(): LabelRequirement {
    const column = columnHere();
    const make = (key: string, operator: LabelOperator, list: readonly string[]) =>
      labelRequirement(key, operator, list, `column ${column}`);
    if (take('!')) return make(word('a label key'), 'DoesNotExist', []);
    const key = word('a label key');
    if (take('=') || take('==')) return make(key, 'In', [optionalWord()]);
    if (take('!=')) return make(key, 'NotIn', [optionalWord()]);
    const next = peek();
    if (next?.word !== true) return make(key, 'Exists', []);
    if (next.text !== 'in' && next.text !== 'notin')
      throw error(next.column, `expected "=", "!=", "in", "notin" or ",", found ${shown(next)}`);
    position += 1;
    return make(key, next.text === 'in' ? 'In' : 'NotIn', values());
  }

  if (tokens.length === 0) return requirements;
  requirements.push(requirement());
  while (take(',')) requirements.push(requirement());
  if (position < tokens.length) throw error(columnHere(), `expected ",", found ${shown(peek())}`);
  return requirements;
}

function tokenize(text: string): Token[] {
  const tokens: Token[] = [];
  const end = text.trimEnd().length;
  TOKEN.lastIndex = 0;
  for (let at = 0; at < end; at = TOKEN.lastIndex) {
    TOKEN.lastIndex = at;
    const match = TOKEN.exec(text);
    if (match === null) {
      const bad = at + (text.slice(at).match(/^\s*/)?.[0].length ?? 0);
      throw error(bad + 1, `unexpected character ${JSON.stringify(text[bad])}`);
    }
    const found = match[1] ?? match[2] ?? '';
    tokens.push({ text: found, word: match[1] !== undefined, column: TOKEN.lastIndex - found.length + 1 });
  }
  return tokens;
}

function shown(token: Token | undefined): string {
  return token === undefined ? 'the end' : JSON.stringify(token.text);
}

function error(column: number, problem: string): SluiceError {
  return new SluiceError('InvalidInput', `label selector, column ${column}: ${problem}`);
}
