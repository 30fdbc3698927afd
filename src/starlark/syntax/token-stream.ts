import type { Position } from '../machine/position.ts';
import { type Token, tokenize } from './lexer.ts';
import { ScriptSyntaxError } from './syntax-error.ts';

/** Nesting of expressions and blocks, so that no later step exhausts the stack. */
const MAX_DEPTH = 120;

/** The tokens of a script as a stream for the parser. */
export class TokenStream {
  private readonly tokens: readonly Token[];
  private at = 0;
  private depth = 0;

  constructor(script: string) {
    this.tokens = tokenize(script);
  }

  get current(): Token {
    return this.tokens[this.at] as Token;
  }

  get position(): Position {
    return this.current.position;
  }

  is(...types: readonly string[]): boolean {
    return types.includes(this.current.type);
  }

  next(): Token {
    const token = this.current;
    this.at += 1;
    return token;
  }

  /** Advances if the token is of the type. */
  accept(type: string): Token | undefined {
    return this.current.type === type ? this.next() : undefined;
  }

  expect(type: string): Token {
    if (this.current.type !== type) this.unexpected(describe(type));
    return this.next();
  }

  unexpected(wanted: string): never {
    const { type, value } = this.current;
    const got = type === 'name' ? String(value) : describe(type);
    throw new ScriptSyntaxError(this.position, `got ${got}, want ${wanted}`);
  }

  /** Parses a construct that may be nested. */
  nested<Node>(parse: () => Node): Node {
    this.deeper();
    const node = parse();
    this.depth -= 1;
    return node;
  }

  /** For chains such as `a + b + c`, each link of which is nested in the next: counts one, until `rise`. */
  deeper(): void {
    this.depth += 1;
    if (this.depth > MAX_DEPTH) throw new ScriptSyntaxError(this.position, `nested more than ${MAX_DEPTH} levels deep`);
  }

  rise(levels: number): void {
    this.depth -= levels;
  }
}

function describe(type: string): string {
  return /^[a-z]+$/.test(type) ? type : `'${type}'`;
}
