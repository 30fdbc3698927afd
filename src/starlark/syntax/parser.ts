import { parseExpression, parseLoopTarget, parseName, parseParameters, parseTest } from './expression-parser.ts';
import { ScriptSyntaxError } from './syntax-error.ts';
import { TokenStream } from './token-stream.ts';
import type { BinaryOperator, Name, Statement } from './tree.ts';

/** The statements of a script. Throws ScriptSyntaxError. */
export function parseScript(script: string): Statement[] {
  const tokens = new TokenStream(script);
  const statements: Statement[] = [];
  while (!tokens.is('eof')) if (tokens.accept('newline') === undefined) parseStatement(tokens, statements);
  return statements;
}

/** Adds the statement, or the several of one line. */
function parseStatement(tokens: TokenStream, into: Statement[]): void {
  switch (tokens.current.type) {
    case 'def':
      into.push(parseDef(tokens));
      break;
    case 'if':
      into.push(parseIf(tokens));
      break;
    case 'for': {
      const { position } = tokens.next();
      const target = parseLoopTarget(tokens);
      tokens.expect('in');
      const value = parseExpression(tokens);
      into.push({ kind: 'for', target, value, body: parseBlock(tokens), position });
      break;
    }
    case 'while': {
      const { position } = tokens.next();
      const condition = parseTest(tokens);
      into.push({ kind: 'while', condition, body: parseBlock(tokens), position });
      break;
    }
    default:
      parseLine(tokens, into);
  }
}

function parseDef(tokens: TokenStream): Statement {
  const { position } = tokens.expect('def');
  const name = parseName(tokens);
  tokens.expect('(');
  const parameters = parseParameters(tokens, ')');
  tokens.expect(')');
  const body = parseBlock(tokens);
  return { kind: 'def', name, function: { name: name.name, parameters, body, position }, position };
}

function parseIf(tokens: TokenStream): Statement {
  const { position } = tokens.expect('if');
  const branches = [{ condition: parseTest(tokens), body: parseBlock(tokens) }];
  while (tokens.accept('elif') !== undefined) branches.push({ condition: parseTest(tokens), body: parseBlock(tokens) });
  const otherwise = tokens.accept('else') === undefined ? [] : parseBlock(tokens);
  return { kind: 'if', branches, otherwise, position };
}

/** A colon, and its block. */
function parseBlock(tokens: TokenStream): Statement[] {
  return tokens.nested(() => {
    const statements: Statement[] = [];
    tokens.expect(':');
    if (tokens.accept('newline') === undefined) {
      parseLine(tokens, statements);
      return statements;
    }
    tokens.expect('indent');
    while (tokens.accept('outdent') === undefined) parseStatement(tokens, statements);
    return statements;
  });
}

/** Small statements with semicolons between them, to the end of the line. */
function parseLine(tokens: TokenStream, into: Statement[]): void {
  do {
    if (tokens.is('newline')) break;
    into.push(parseSmall(tokens));
  } while (tokens.accept(';') !== undefined);
  if (!tokens.is('eof')) tokens.expect('newline');
}

function parseSmall(tokens: TokenStream): Statement {
  const { type, position } = tokens.current;
  switch (type) {
    case 'return':
      tokens.next();
      if (tokens.is('newline', ';', 'eof')) return { kind: 'return', position };
      return { kind: 'return', value: parseExpression(tokens), position };
    case 'break':
    case 'continue':
    case 'pass':
      tokens.next();
      return { kind: type, position };
    case 'load':
      return parseLoad(tokens);
    default:
  }
  const target = parseExpression(tokens);
  const assignment = tokens.current;
  if (assignment.type === '=') {
    tokens.next();
    return { kind: 'assign', target, value: parseExpression(tokens), position: assignment.position };
  }
  if (/^(?:[-+*/%&|^]|\/\/|<<|>>)=$/.test(assignment.type)) {
    tokens.next();
    const operator = assignment.type.slice(0, -1) as BinaryOperator;
    return { kind: 'augment', operator, target, value: parseExpression(tokens), position: assignment.position };
  }
  return { kind: 'expression', value: target, position };
}

function parseLoad(tokens: TokenStream): Statement {
  const { position } = tokens.expect('load');
  tokens.expect('(');
  if (!tokens.is('string'))
    throw new ScriptSyntaxError(tokens.position, 'first operand of load statement must be a string literal');
  const module = String(tokens.next().value);
  const names: { local: Name; exported: string }[] = [];
  while (tokens.accept(',') !== undefined && !tokens.is(')')) {
    if (tokens.is('string')) {
      const { value, position: at } = tokens.next();
      names.push({ local: { kind: 'name', name: String(value), position: at }, exported: String(value) });
    } else {
      const local = parseName(tokens);
      tokens.expect('=');
      names.push({ local, exported: String(tokens.expect('string').value) });
    }
  }
  tokens.expect(')');
  if (names.length === 0) throw new ScriptSyntaxError(position, 'load statement must import at least 1 symbol');
  return { kind: 'load', module, names, position };
}
