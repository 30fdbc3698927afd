import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { runStarlark } from '../run-starlark.ts';
import { errorOf } from '../testing.ts';

test.each([
  ['a loop without an end', 'while True: pass', 'steps'],
  ['a loop in a function', 'def f():\n  x = 0\n  while True: x = (x * 31 + 7) % 1000003\nf()', 'steps'],
  ['a condition that is always true', 'while len([1]) == 1: pass', 'steps'],
  ['long ranges', 'for i in range(1 << 50): pass', 'steps'],
  ['comparing lists again and again', 'x = [1] * 1000\ny = [1] * 1000\nwhile x == y: pass', 'steps'],
  ['searching texts again and again', 'x = "a" * 1000000\nwhile "b" not in x: pass', 'steps'],
  ['ints that grow', 'x = 3\nwhile True: x = x * x % (1 << 500)', 'steps'],
  ['a regular expression', 'x = [i for i in range(1 << 40) if False]', 'steps'],
  ['a text that doubles', 'x = "a"\nwhile True: x += x', 'text'],
  ['a text that grows', 'x = "a" * 10000\nwhile True: y = x + "b"', 'MiB'],
  ['a long text', 'x = "a" * (1 << 40)', 'MiB'],
  ['a list that doubles', 'x = [1]\nwhile True: x = x + x', 'MiB'],
  ['a list that is added to itself', 'x = [1]\nwhile True: x += x', 'MiB'],
  ['a long list', 'x = [0] * (1 << 40)', 'MiB'],
  ['a list of a range', 'x = list(range(1 << 40))', 'MiB'],
  ['many dicts', 'x = []\nwhile True: x.append({"a": 1})', 'MiB'],
  ['joined texts', 'x = ["a" * 100000] * 10000\ny = "".join(x)', 'MiB'],
  ['replaced texts', 'x = ("a" * 10000).replace("a", "b" * 100000)', 'MiB'],
  ['values that hold one another twice', 'x = [1]\nfor i in range(100): x = [x, x]\nstr(x)', 'MiB|levels|steps'],
  ['formatted texts', 'x = "a" * 1000000\ny = ("%s" * 1000) % ((x,) * 1000)', 'MiB'],
  ['calls without an end', 'def f(): f()\nf()', 'nested more than 400 deep'],
  ['calls through sorted', 'def f(x): return sorted([1], key=f)\nf(1)', 'nested'],
  ['calls in deep expressions', `def f(): return ${'('.repeat(50)}1 + f()${')'.repeat(50)}\nf()`, 'nested'],
])('%s is stopped', (_what, script, why) => {
  const error = errorOf(script);
  expect(error.message).toMatch(new RegExp(why));
  expect(error.code === 'LimitExceeded' || error.details.phase === 'evaluation').toBe(true);
});

test('names its place', () => {
  expect(errorOf('x = 1\nwhile True:\n  x = 2').message).toMatch(
    /^test\.star:3:5: the script was stopped: it takes more than 10000000 steps$/,
  );
});

test('a script that is too long is not read', () => {
  expect(() => runStarlark(`#${'x'.repeat(1024 * 1024)}`, { name: 'long.star' })).toThrow(
    'long.star: the script is longer than 1048576 characters',
  );
});

test('deeply nested values fail cleanly', () => {
  for (const use of ['str(x)', 'x == y', 'x < y', 'repr([x])'])
    expect(errorOf(`x = []\ny = []\nfor i in range(100000):\n  x = [x]\n  y = [y]\n${use}`).message).toMatch(
      /levels deep|recursion depth/,
    );
  expect(errorOf('x = ()\nfor i in range(100000): x = (x,)\nd = {x: 1}').message).toMatch(
    /a key is longer|nested too deep/,
  );
  expect(errorOf('x = (1,)\nfor i in range(100): x = (x, x)\nd = {x: 1}').message).toMatch(/a key is longer/);
});

const words =
  `x y f ( ) [ ] { } , : = + - * / // % ** . 1 2.5 "a" 'b' """ None True for in if else elif while def lambda return
  break continue pass and or not == != < > += load len str list dict range sorted append pop items split join format
  fail print set zip @ $ \\ # ; << >> ~ ^ & |`.split(/\s+/);

test('any text ends with a Starlark error or none', () => {
  const line = fc.tuple(fc.nat(3), fc.array(fc.constantFrom(...words), { maxLength: 12 }));
  const script = fc
    .array(line, { maxLength: 8 })
    .map((lines) => lines.map(([indent, tokens]) => '  '.repeat(indent) + tokens.join(' ')).join('\n'));
  fc.assert(fc.property(fc.oneof(script, fc.string({ unit: 'grapheme', maxLength: 60 })), endsWell), {
    numRuns: runs(1500, 3),
  });
});

test('any script ends with a Starlark error or none', () => {
  const { expression } = fc.letrec<{ expression: string }>((tie) => {
    const inner = tie('expression');
    const fill = (template: string, ...parts: fc.Arbitrary<string>[]) =>
      fc.tuple(...parts).map((texts) => texts.reduce((text, part) => text.replace('_', () => part), template));
    return {
      expression: fc.oneof(
        { maxDepth: 4 },
        fc.constantFrom(
          'x',
          'y',
          '0',
          '1',
          '-3',
          '1 << 300',
          '2.5',
          '"abc"',
          '"%s{}"',
          'None',
          '[]',
          '{}',
          '()',
          '[1, [2]]',
          '{"a": x}',
          'range(9)',
          'set([1])',
          'len',
          'f',
        ),
        fill('(_ OP _)', inner, inner).chain((text) =>
          fc
            .constantFrom('+', '-', '*', '/', '//', '%', '<<', '>>', '==', '<', 'in', 'and', '|', '&', '^')
            .map((op) => text.replace('OP', () => op)),
        ),
        fill('[_ for x in _ if _]', inner, inner, inner),
        fill('{_: _ for x in _}', inner, inner, inner),
        fill('(_)[_]', inner, inner),
        fill('(_)[_:_:_]', inner, inner, inner, inner),
        fill('NAME(_)', inner).chain((text) =>
          fc
            .constantFrom(
              'str',
              'len',
              'sorted',
              'list',
              'int',
              'dict',
              'max',
              'zip',
              'f',
              'type',
              'reversed',
              'hash',
              'x.append',
              'y.update',
              '"".join',
              '"a b".split',
              'x.index',
            )
            .map((name) => text.replace('NAME', () => name)),
        ),
        fill('(lambda y: _)(_)', inner, inner),
      ),
    };
  });
  const statement = fc
    .tuple(
      fc.constantFrom(
        'x = _',
        'y = _',
        'x += _',
        'x[0] = _',
        'y["a"] = _',
        'for z in _: x.append(z)',
        'if _: y = x',
        'while _: x = x * 2',
        'print(_)',
        'def f(x): return _',
        'x *= _',
      ),
      expression,
    )
    .map(([template, value]) => template.replace('_', () => value));
  const script = fc
    .array(statement, { minLength: 1, maxLength: 8 })
    .map((lines) => `x = [1]\ny = {}\ndef f(a): return a\n${lines.join('\n')}`);
  fc.assert(fc.property(script, endsWell), { numRuns: runs(1500, 3) });
});

function endsWell(script: string): void {
  try {
    runStarlark(script, { name: 'fuzz.star', limits: { steps: 20_000, memory: 4 * 1024 * 1024 } });
  } catch (error) {
    if (!(error instanceof SluiceError) || error.details === undefined) throw error;
    expect(['InvalidInput', 'LimitExceeded']).toContain(error.code);
  }
}
