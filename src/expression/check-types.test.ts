import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ALL_RUNS, runs } from '../../test/support/runs.ts';
import { isSluiceError, messageOf, type SluiceError } from '../foundation/sluice-error.ts';
import { compileTyped, type ExpressionErrorDetails } from './expression.ts';
import { DYN, mapOf, objectOf, type StaticType, scalar } from './static-type.ts';

const TEXT = scalar('string');
const TARGET = objectOf({ name: TEXT, labels: mapOf(TEXT, TEXT), size: scalar('int') });
const VARIABLES: Readonly<Record<string, StaticType>> = {
  ...{ target: TARGET, text: TEXT, any: DYN },
  values: { scalars: ['double'], list: scalar('double') },
};

/** `column: message` of the error of an expression; undefined if it has none. */
function problem(text: string, result?: 'string' | 'bool'): string | undefined {
  try {
    compileTyped(text, { variables: VARIABLES, ...(result === undefined ? {} : { result }) });
    return undefined;
  } catch (error) {
    if (!isSluiceError(error)) throw error;
    const { details, message } = error as SluiceError<ExpressionErrorDetails>;
    const { line, column } = details?.position ?? {};
    const place = `line ${line}, column ${column}: `;
    return `${line}:${column} ${message.slice(message.indexOf(place) + place.length)}`;
  }
}

test.each([
  // In branches that no target reaches, and in those that a value hides.
  ['true ? text : text + 1', "1:19 found no matching overload for '_+_' applied to '(string, int)'"],
  ['false ? target.nme : text', '1:15 field not found: nme; known are name, labels, size'],
  ["true || text.split(',') == []", '1:13 unbound function: split'],
  ["false && text > 1 ? '' : text", "1:14 found no matching overload for '_>_' applied to '(string, int)'"],
  ["text == '' ?\n  text :\n  target.labels.a.b", '3:18 field not found: b; string has no fields'],
  ['[].map(x, text + 1)', "1:15 found no matching overload for '_+_' applied to '(string, int)'"],
  ['target.labels.map(key, key + 1) == []', "1:27 found no matching overload for '_+_' applied to '(string, int)'"],
  ['text.map(x, x)', '1:5 type mismatch: iterable vs string'],
  ['text ? 1 : 2', '1:1 type mismatch: expected bool, got string'],
  ['true || text', '1:9 type mismatch: expected bool, got string'],
  ["target.name == 1 ? 'a' : 'b'", "1:13 found no matching overload for '_==_' applied to '(string, int)'"],
  ['target.labels[1]', "1:14 found no matching overload for '_[_]' applied to '(map, int)'"],
  ["target['nme']", '1:7 field not found: nme; known are name, labels, size'],
  [
    'text.startsWith(text, text)',
    "1:5 found no matching overload for 'startsWith' applied to 'string.(string, string)'",
  ],
  ["false && text.matches('(')", '1:14 pattern: '],
  ['values[0] * 2', "1:10 found no matching overload for '_*_' applied to '(double, int)'"],
  ['values.all(v, v.x)', '1:16 field not found: x; double has no fields'],
])('%s', (text, expected) => {
  expect(problem(text)).toContain(expected);
});

test.each([
  'target.labels.a + target.labels["b"] + string(target.size)',
  "has(target.labels.a) ? target.labels.a : 'none'",
  // What an expression tests for may be absent.
  "has(target.region) ? target.region : 'none'",
  "'region' in target ? target['region'] : 'none'",
  'target.labels.map(key, key + target.labels[key])[0]',
  "target.labels.filter(key, key.startsWith('a')).exists(key, key == 'ab') ? 'a' : 'b'",
  "[1, 2].map(x, string(x)).exists_one(x, x == '1') ? 'a' : 'b'",
  'any.a.b[0].c + text',
  'any ? text : any',
  "{'a': [text]}['a'][0]",
  "type(target.size) == int ? 'a' : 'b'",
  '([] + [text])[0]',
  "string(timestamp('2030-01-01T00:00:00Z') + duration('1h'))",
  'string(1 == 1.0 || target.name != null)',
])('%s is a text', (text) => {
  expect(problem(text, 'string')).toBeUndefined();
});

test('either alternative of a type suffices, and the result may differ only where it is a text', () => {
  for (const right of ['values > 0.5', 'values[0] > 0.5', 'values.all(v, v < 1.0)', 'size(values) > 1', 'values < 1'])
    expect(problem(right, 'bool')).toBeUndefined();
  expect(problem('values', 'bool')).toContain('1:1 gives list or double, expected true or false');
  expect(problem("true ? 'a' : 1", 'string')).toContain('1:14 gives int, expected a text');
  expect(problem("true ? 'a' : false ? 'b' : target.labels", 'string')).toContain('gives map, expected a text');
  expect(problem("true ? true : 'a'", 'bool')).toContain('gives string, expected true or false');
});

/** Expressions of any types. */
const expression = fc.letrec<{ node: string }>((tie) => {
  const node = tie('node');
  const two = fc.tuple(node, node);
  return {
    node: fc.oneof(
      { maxDepth: 4, withCrossShrink: true },
      fc.constantFrom('text', 'target.name', 'target.size', 'target.labels', 'true', '1', '1.5', "'a'", 'null', '[]'),
      fc.tuple(two, fc.constantFrom('+', '==', '<', '&&', '||', '*', 'in')).map(([[a, b], op]) => `(${a} ${op} ${b})`),
      fc.tuple(node, node, node).map(([a, b, c]) => `(${a} ? ${b} : ${c})`),
      two.map(([a, b]) => `[${a}, ${b}]`),
      two.map(([a, b]) => `${a}[${b}]`),
      two.map(([a, b]) => `${a}.map(x, ${b})`),
      two.map(([a, b]) => `${a}.filter(x, x == ${b})`),
      node.map((a) => `size(${a})`),
      node.map((a) => `string(${a})`),
      node.map((a) => `!${a}`),
      two.map(([a, b]) => `{'k': ${a}}[${b}]`),
      two.map(([a, b]) => `${a}.startsWith(${b})`),
    ),
  };
}).node;

test('what is reported to have right types has no error of types when it is evaluated', () => {
  const target = { name: 'web', labels: { a: 'x', web: 'y' }, size: 3 };
  const bindings = { target, text: 'a', any: 1, values: [0.5] };
  let evaluated = 0;
  fc.assert(
    fc.property(expression, (text) => {
      let compiled: ReturnType<typeof compileTyped>;
      try {
        compiled = compileTyped(text, { variables: VARIABLES });
      } catch (error) {
        if (!isSluiceError(error)) throw error;
        return;
      }
      try {
        compiled.evaluate(bindings);
        evaluated += 1;
      } catch (error) {
        // Entries of lists with several types have one of them.
        if (!/\[.*,|\?/.test(text)) expect(messageOf(error)).not.toMatch(/no matching overload|type mismatch|unbound/);
      }
    }),
    { numRuns: runs(2000) },
  );
  if (ALL_RUNS) expect(evaluated).toBeGreaterThan(0);
});

test('types of any depth are checked at a bounded cost', () => {
  // Each level has two alternatives, which contain the level before.
  const nested = (name: string) =>
    Array.from({ length: 40 }).reduce<string>((text) => `(any ? [${text}] : {'${name}': any})`, 'text');
  const start = performance.now();
  expect(problem(`any ? ${nested('a')} : ${nested('b')}`)).toBeUndefined();
  expect(performance.now() - start).toBeLessThan(5000);
});
