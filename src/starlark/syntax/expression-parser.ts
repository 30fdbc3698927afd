import type { Position } from '../machine/position.ts';
import { ScriptSyntaxError } from './syntax-error.ts';
import type { TokenStream } from './token-stream.ts';
import type { Argument, BinaryOperator, Clause, Expression, FunctionParts, Name, Parameter } from './tree.ts';

/** Binary operators by precedence, lowest first; those of a line have the same. */
const LEVELS: readonly (readonly string[])[] = [
  ['or'],
  ['and'],
  ['not'],
  ['==', '!=', '<', '>', '<=', '>=', 'in', 'not in'],
  ['|'],
  ['^'],
  ['&'],
  ['<<', '>>'],
  ['+', '-'],
  ['*', '/', '//', '%'],
];
const NOT = 2;
const COMPARISON = 3;

/** An expression, or several with commas between them, which are a tuple. */
export function parseExpression(tokens: TokenStream): Expression {
  const { position } = tokens;
  const first = parseTest(tokens);
  return tokens.is(',') ? parseTupleRest(tokens, first, position, parseTest) : first;
}

/** The targets of a `for`: names, elements and attributes, with commas between them. */
export function parseLoopTarget(tokens: TokenStream): Expression {
  const { position } = tokens;
  const first = parsePrimary(tokens);
  return tokens.is(',') ? parseTupleRest(tokens, first, position, parsePrimary) : first;
}

function parseTupleRest(
  tokens: TokenStream,
  first: Expression,
  position: Position,
  parse: (tokens: TokenStream) => Expression,
): Expression {
  const items = [first];
  while (tokens.accept(',') !== undefined) {
    if (endsTuple(tokens)) {
      if (!tokens.is(')', ']'))
        throw new ScriptSyntaxError(tokens.position, 'unparenthesized tuple with trailing comma');
      break;
    }
    items.push(parse(tokens));
  }
  return { kind: 'tuple', items, position };
}

function endsTuple(tokens: TokenStream): boolean {
  return /^(?:[\])}=:;]|newline|eof|in|[^=!<>]{1,2}=)$/.test(tokens.current.type);
}

/** One expression, without commas. */
export function parseTest(tokens: TokenStream): Expression {
  return tokens.nested(() => {
    const { position } = tokens;
    if (tokens.is('lambda')) return parseLambda(tokens, parseTest);
    const then = parseLevel(tokens, 0);
    if (tokens.accept('if') === undefined) return then;
    const condition = parseLevel(tokens, 0);
    tokens.expect('else');
    return { kind: 'if', condition, then, otherwise: parseTest(tokens), position };
  });
}

/** The condition of a comprehension: without conditional expressions, which would look like another clause. */
function parseTestWithoutIf(tokens: TokenStream): Expression {
  return tokens.is('lambda') ? parseLambda(tokens, parseTestWithoutIf) : parseLevel(tokens, 0);
}

function parseLambda(tokens: TokenStream, parseBody: (tokens: TokenStream) => Expression): Expression {
  return tokens.nested(() => {
    const { position } = tokens.expect('lambda');
    const parameters = parseParameters(tokens, ':');
    tokens.expect(':');
    const value = parseBody(tokens);
    const parts: FunctionParts = {
      name: 'lambda',
      parameters,
      body: [{ kind: 'return', value, position: value.position }],
      position,
    };
    return { kind: 'lambda', function: parts, position };
  });
}

function operatorAt(tokens: TokenStream): string {
  return tokens.current.type === 'not' ? 'not in' : tokens.current.type;
}

function parseLevel(tokens: TokenStream, level: number): Expression {
  if (level >= LEVELS.length) return parseUnary(tokens);
  if (level === NOT) {
    const { position } = tokens;
    if (tokens.accept('not') === undefined) return parseLevel(tokens, level + 1);
    return tokens.nested(() => ({ kind: 'not', operand: parseLevel(tokens, NOT), position }));
  }
  const operators = LEVELS[level] as readonly string[];
  let left = parseLevel(tokens, level + 1);
  let links = 0;
  for (let operator = operatorAt(tokens); operators.includes(operator); operator = operatorAt(tokens)) {
    const { position } = tokens.next();
    if (operator === 'not in') tokens.expect('in');
    if (level === COMPARISON && links > 0)
      throw new ScriptSyntaxError(position, `${operator} does not associate with other comparisons (use parens)`);
    const right = parseLevel(tokens, level + 1);
    left =
      operator === 'and' || operator === 'or'
        ? { kind: operator, left, right, position }
        : { kind: 'binary', operator: operator as BinaryOperator, left, right, position };
    links += 1;
    tokens.deeper();
  }
  tokens.rise(links);
  return left;
}

function parseUnary(tokens: TokenStream): Expression {
  const { type, position } = tokens.current;
  if (type !== '-' && type !== '+' && type !== '~') return parsePrimary(tokens);
  tokens.next();
  return tokens.nested(() => ({ kind: type, operand: parseUnary(tokens), position }));
}

function parsePrimary(tokens: TokenStream): Expression {
  let operand = parseOperand(tokens);
  let links = 0;
  for (; tokens.is('.', '(', '['); links += 1) {
    tokens.deeper();
    const { type, position } = tokens.next();
    if (type === '.') operand = { kind: 'attribute', operand, name: String(tokens.expect('name').value), position };
    else if (type === '(') operand = { kind: 'call', callee: operand, args: parseArguments(tokens), position };
    else operand = parseSubscript(tokens, operand, position);
  }
  tokens.rise(links);
  return operand;
}

function parseSubscript(tokens: TokenStream, operand: Expression, position: Position): Expression {
  const part = () => (tokens.is(':', ']') ? undefined : parseTest(tokens));
  let start: Expression | undefined;
  if (!tokens.is(':')) {
    const index = parseExpression(tokens);
    if (tokens.accept(']') !== undefined) return { kind: 'index', operand, index, position };
    start = index;
  }
  tokens.expect(':');
  const stop = part();
  const step = tokens.accept(':') === undefined ? undefined : part();
  tokens.expect(']');
  return {
    kind: 'slice',
    operand,
    ...(start === undefined ? {} : { start }),
    ...(stop === undefined ? {} : { stop }),
    ...(step === undefined ? {} : { step }),
    position,
  };
}

function parseOperand(tokens: TokenStream): Expression {
  const token = tokens.current;
  const { position } = token;
  switch (token.type) {
    case 'name':
      return parseName(tokens);
    case 'string':
    case 'number':
      tokens.next();
      return { kind: 'constant', value: token.value, position };
    case '(':
      return tokens.nested(() => {
        tokens.next();
        if (tokens.accept(')') !== undefined) return { kind: 'tuple', items: [], position };
        const inner = parseExpression(tokens);
        tokens.expect(')');
        return inner;
      });
    case '[':
      return tokens.nested(() => parseList(tokens));
    case '{':
      return tokens.nested(() => parseDict(tokens));
    default:
      return tokens.unexpected('primary expression');
  }
}

export function parseName(tokens: TokenStream): Name {
  const { value, position } = tokens.expect('name');
  return { kind: 'name', name: String(value), position };
}

function parseList(tokens: TokenStream): Expression {
  const { position } = tokens.expect('[');
  const items: Expression[] = [];
  while (tokens.accept(']') === undefined) {
    const item = parseTest(tokens);
    if (items.length === 0 && tokens.is('for'))
      return { kind: 'comprehension', body: item, clauses: parseClauses(tokens, ']'), position };
    items.push(item);
    if (!tokens.is(']')) tokens.expect(',');
  }
  return { kind: 'list', items, position };
}

function parseDict(tokens: TokenStream): Expression {
  const { position } = tokens.expect('{');
  const entries: { key: Expression; value: Expression; position: Position }[] = [];
  while (tokens.accept('}') === undefined) {
    const key = parseTest(tokens);
    const colon = tokens.expect(':').position;
    const value = parseTest(tokens);
    if (entries.length === 0 && tokens.is('for'))
      return { kind: 'comprehension', key, body: value, clauses: parseClauses(tokens, '}'), position };
    entries.push({ key, value, position: colon });
    if (!tokens.is('}')) tokens.expect(',');
  }
  return { kind: 'dict', entries, position };
}

function parseClauses(tokens: TokenStream, end: string): Clause[] {
  const clauses: Clause[] = [];
  while (tokens.accept(end) === undefined) {
    // Each clause is a loop nested in the one before.
    tokens.deeper();
    const { position } = tokens;
    if (tokens.accept('for') !== undefined) {
      const target = parseLoopTarget(tokens);
      tokens.expect('in');
      clauses.push({ kind: 'for', target, value: parseLevel(tokens, 0), position });
    } else if (tokens.accept('if') !== undefined)
      clauses.push({ kind: 'if', value: parseTestWithoutIf(tokens), position });
    else tokens.unexpected(`'${end}', for, or if`);
  }
  tokens.rise(clauses.length);
  return clauses;
}

function parseArguments(tokens: TokenStream): Argument[] {
  const args: Argument[] = [];
  while (tokens.accept(')') === undefined) {
    const { position } = tokens;
    if (tokens.accept('*') !== undefined) args.push({ kind: 'rest', value: parseTest(tokens), position });
    else if (tokens.accept('**') !== undefined) args.push({ kind: 'namedRest', value: parseTest(tokens), position });
    else {
      const value = parseTest(tokens);
      if (tokens.accept('=') === undefined) args.push({ kind: 'positional', value, position });
      else if (value.kind !== 'name')
        throw new ScriptSyntaxError(position, 'keyword argument must have form name=expr');
      else args.push({ kind: 'named', name: value.name, value: parseTest(tokens), position });
    }
    if (!tokens.is(')')) tokens.expect(',');
  }
  return args;
}

/** The parameters of a function up to, and without, the token that ends them. */
export function parseParameters(tokens: TokenStream, end: string): Parameter[] {
  const parameters: Parameter[] = [];
  while (!tokens.is(end)) {
    const { position } = tokens;
    if (tokens.accept('*') !== undefined) {
      if (tokens.is('name')) parameters.push({ kind: 'rest', name: parseName(tokens), position });
      else parameters.push({ kind: 'star', name: { kind: 'name', name: '*', position }, position });
    } else if (tokens.accept('**') !== undefined)
      parameters.push({ kind: 'namedRest', name: parseName(tokens), position });
    else {
      const name = parseName(tokens);
      if (tokens.accept('=') === undefined) parameters.push({ kind: 'plain', name, position });
      else parameters.push({ kind: 'plain', name, default: parseTest(tokens), position });
    }
    if (!tokens.is(end)) tokens.expect(',');
  }
  return parameters;
}
