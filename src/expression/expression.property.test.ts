import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../test/support/runs.ts';
import { SluiceError } from '../foundation/sluice-error.ts';
import { cpuMilliseconds } from '../foundation/time/cpu-time.ts';
import { compileExpression, type ExpressionErrorDetails } from './expression.ts';

const self = {
  metadata: { name: 'web', labels: { tier: 'front', 'app.example.org/part': 'x' } },
  spec: { replicas: 3, ratio: 0.5, gates: ['a', 'b'], parts: [{ name: 'p', size: 1 }, { name: 'q' }] },
};

function failureOf(action: () => unknown): SluiceError<ExpressionErrorDetails> {
  try {
    action();
  } catch (error) {
    if (error instanceof SluiceError) return error as SluiceError<ExpressionErrorDetails>;
    throw error;
  }
  throw new Error('no error');
}

describe('evaluate', () => {
  test.each([
    ['self.spec.replicas + 1 == 4', true],
    ['self.spec.replicas', 3],
    ['self.spec.ratio * 2.0', 1],
    ["self.metadata.labels['app.example.org/part']", 'x'],
    ["self.spec.gates.all(gate, gate in ['a', 'b', 'c'])", true],
    ['self.spec.parts.filter(part, has(part.size)).map(part, part.name)', ['p']],
    ["{'a': [1, 2.5], 'b': {'c': null}}", { a: [1, 2.5], b: { c: null } }],
    ["duration('90m')", '5400s'],
    ["timestamp('2026-01-02T03:04:05Z')", '2026-01-02T03:04:05.000Z'],
    ["self.metadata.name.matches('^w[a-z]+$')", true],
    ["has(self.spec.missing) ? 'yes' : 'no'", 'no'],
    ['9007199254740991 * 4', 36028797018963964n],
    ['type(self.spec.replicas) == int', true],
    ['self.spec.parts.exists_one(part, has(part.size))', true],
  ])('%s', (text, expected) => {
    expect(compileExpression(text, ['self']).evaluate({ self })).toEqual(expected);
  });

  test('an expression is compiled once', () => {
    expect(compileExpression('self.spec.replicas > 1', ['self'])).toBe(
      compileExpression('self.spec.replicas > 1', ['self']),
    );
  });

  test('test requires a boolean', () => {
    expect(compileExpression('self.spec.replicas == 3', ['self']).test({ self })).toBe(true);
    const error = failureOf(() => compileExpression('self.spec.replicas', ['self']).test({ self }));
    expect(error.code).toBe('InvalidInput');
    expect(error.message).toContain('gives number, expected true or false');
  });

  test('integers of any size are unchanged', () => {
    const identity = compileExpression('x', ['x']);
    const value = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.constant(null), fc.double({ noNaN: true }));
    const any = fc.oneof(value, fc.array(value), fc.dictionary(fc.string(), value));
    fc.assert(
      fc.property(any, (x) => {
        expect(identity.evaluate({ x })).toEqual(x);
      }),
      { numRuns: runs(100) },
    );
  });
});

describe('errors name the place', () => {
  test('syntax', () => {
    const error = failureOf(() => compileExpression('self.a &&\n  && self.b', ['self']));
    expect(error.code).toBe('InvalidInput');
    expect(error.details?.position).toEqual({ offset: 7, line: 1, column: 8 });
  });

  test('a name that is no variable, an inherited one among them', () => {
    for (const [text, column] of [
      ['self.a + other', 10],
      ['constructor', 1],
      ['__proto__', 1],
      ['[1].exists(x, y)', 15],
      ['[1].exists(x, true) && x', 24],
    ] as const) {
      const error = failureOf(() => compileExpression(text, ['self']));
      expect(error.message).toContain('is not known; known are self');
      expect(error.details?.position?.column).toBe(column);
    }
  });

  test('a regular expression that is invalid, or large once it is compiled', () => {
    const invalid = failureOf(() => compileExpression("true && 'a'.matches('(')", []).evaluate({}));
    expect(invalid).toMatchObject({ code: 'InvalidInput', details: { position: { column: 12 } } });
    const large = failureOf(() => compileExpression("false || 'a'.matches('(ab){1000}')", []).evaluate({}));
    expect(large).toMatchObject({ code: 'InvalidInput', details: { position: { column: 13 } } });
    expect(large.message).toContain('a regular expression has at most 2000 parts, and this one has 5005');
  });

  test('a field that is not there, a division by zero, a variable without a value', () => {
    const missing = failureOf(() => compileExpression('self.spec.nothing > 1', ['self']).evaluate({ self }));
    expect(missing).toMatchObject({ code: 'InvalidInput' });
    expect(missing.message).toContain('nothing');
    expect(missing.details?.position?.line).toBe(1);
    expect(failureOf(() => compileExpression('1 / 0', []).evaluate({}))).toMatchObject({ code: 'InvalidInput' });
    const unbound = failureOf(() => compileExpression('self.x', ['self']).evaluate({}));
    expect(unbound.message).toContain('variable self has no value');
  });

  test('NaN is an error where the limits refuse it, and only in what decides the result', () => {
    const x = 0.5;
    expect(compileExpression('(x - x) / (x - x) > 0.05', ['x']).test({ x })).toBe(false);
    const refusing = (text: string) => compileExpression(text, ['x'], { refusesNaN: true });
    for (const text of [
      '(x - x) / (x - x) > 0.05',
      'double("+inf") - double("Infinity") < x',
      'double("-Inf") + double("inf") < x',
      'double("inf") * (x - x) < x',
      'double("NaN") < x',
      'false || (x - x) / (x - x) > 0.05',
      '[x].exists(y, (y - y) / (y - y) > 0.05)',
    ]) {
      const error = failureOf(() => refusing(text).test({ x }));
      expect(error, text).toMatchObject({ code: 'InvalidInput', details: { isNaN: true } });
      expect(error.message).toContain('gives NaN');
    }
    expect(failureOf(() => refusing('x.y > x').test({ x })).details?.isNaN).toBeUndefined();
    expect(refusing('(x - x) / (x - x) > 0.05 || x > 0.1').test({ x })).toBe(true);
    expect(refusing('x > 1.0 && (x - x) / (x - x) > 0.05').test({ x })).toBe(false);
    expect(refusing('x / (x - x) > 1.0').test({ x })).toBe(true);
  });

  test('a text is a number as in CEL', () => {
    const read = (text: string) => compileExpression('double(text)', ['text']).evaluate({ text });
    expect(['1', '-.5', '2.', '1e3', '+Inf', '-infinity'].map(read)).toEqual([1, -0.5, 2, 1000, Infinity, -Infinity]);
    expect(read('nan')).toBeNaN();
    for (const text of ['', ' ', ' 1', 'x', '0x10', '1 2', 'null'])
      expect(failureOf(() => read(text)).message, text).toContain('a text is no number');
  });

  test('inherited fields are no fields', () => {
    for (const text of ['self.constructor', 'self.__proto__', "self['toString']"])
      expect(failureOf(() => compileExpression(text, ['self']).evaluate({ self })).code).toBe('InvalidInput');
  });
});

describe('an expensive expression ends', () => {
  const items = Array.from({ length: 300 }, (_, index) => index);

  test('loops in loops', () => {
    const text = 'x.all(a, x.all(b, x.exists(c, a + b + c < 0 || a + b + c >= 0)))';
    const error = failureOf(() => compileExpression(text, ['x'], { rounds: 5000 }).evaluate({ x: items }));
    expect(error).toMatchObject({ code: 'LimitExceeded' });
  });

  test('loops over what the expression itself makes', () => {
    const list = `[${items.slice(0, 100).join(',')}]`;
    const text = `${list}.map(a, ${list}.map(b, ${list}.map(c, a + b + c)))`;
    expect(failureOf(() => compileExpression(text, []).evaluate({}))).toMatchObject({ code: 'LimitExceeded' });
  });

  /** Sixteen characters: each doubling doubles them, so that the cases need few steps to be beyond a limit or below it. */
  const SIXTEEN = 'x'.repeat(16);
  const twice = (seed: string, count: number) => seed + '.map(a, a + a)'.repeat(count);
  const pairs = (seed: string, count: number) => seed + '.map(a, [a, a])'.repeat(count);
  test.each([
    ['a list that doubles', `${twice('[[1, 2]]', 60)}.map(a, string(3 in a))[0]`],
    ['a text that doubles', `${twice(`["${SIXTEEN}"]`, 60)}.map(a, string(a.size()))[0]`],
    ['bytes that double', `${twice(`[b"${SIXTEEN}"]`, 60)}.map(a, a.size())`],
    ['lists in lists', pairs('[1]', 60)],
    ['maps in maps', `['a']${".map(a, {'a': a, 'b': a})".repeat(60)}`],
    ['lists in lists that are compared', `${pairs('[1]', 60)} == ${pairs('[1]', 60)}`],
  ])('%s', (_, text) => {
    const start = performance.now();
    const limits = { nodes: 10_000, depth: 1000, size: 100_000 };
    const error = failureOf(() => compileExpression(text, [], limits).evaluate({}));
    expect(error.message).toMatch(/makes a (value of more than 100000 parts|text of more than 100000 characters)/);
    expect(error.code).toBe('LimitExceeded');
    // Without the limit it would not end.
    expect(performance.now() - start).toBeLessThan(60_000);
  });

  test.each([
    ['a search of repeated texts', `${twice(`["${SIXTEEN}"]`, 14)}.map(a, (a+a+a+a).contains(a+"y"+a))`],
    [
      'a search within the limits',
      `${twice(`["${SIXTEEN}"]`, 9)}.map(a, [${'(a+a).contains(a+"y"),'.repeat(90)} true])`,
    ],
    ['sizes of texts', `${twice(`["${SIXTEEN}"]`, 12)}.map(a, [${'size(a),'.repeat(400)} 1])`],
    ['numbers in texts', `${twice('["1111111111111111"]', 12)}.map(a, [${'double(a),'.repeat(400)} 1.0])`],
    ['a match by a pattern that repeats', `${twice('["aaaaaaaaaaaaaaab"]', 12)}.map(a, a.matches("(ab?){200}e"))`],
    ['a match of a long text', `${twice(`["${SIXTEEN}"]`, 12)}.map(a, a.matches("${'x?'.repeat(200)}y"))`],
  ])('within a call or between two: %s', (_, text) => {
    const start = cpuMilliseconds();
    const error = failureOf(() => compileExpression(text, [], { milliseconds: 20, nodes: 10_000 }).evaluate({}));
    expect(error.code).toBe('LimitExceeded');
    // The limit, one call, and what compiling takes on a slow machine.
    expect(cpuMilliseconds() - start).toBeLessThan(2000);
  });

  test.each([
    ['counted repetitions', `${'a{1000}'.repeat(100)}`],
    ['a long text that is repeated', `(${'ab'.repeat(300)}){1000}`],
    ['repetitions that only flags separate', '(?:ab){30}(?i){30}(?s){1000}'],
    ['repetitions in repetitions', `((ab){30}c){30}`],
    ['wide classes without regard to case', `(?i)${'[b-\\x{1e942}]'.repeat(200)}`],
  ])('a regular expression that would be large once it is compiled: %s', (_, pattern) => {
    const start = cpuMilliseconds();
    const error = failureOf(() => compileExpression('"a".matches(x)', ['x']).evaluate({ x: pattern }));
    expect(error).toMatchObject({ code: 'InvalidInput', details: { position: { column: 4 } } });
    expect(cpuMilliseconds() - start).toBeLessThan(500);
  });

  test('a short-circuit does not hide that a value is too large', () => {
    const text = `true || ${twice('[[1]]', 30)} == [[1]]`;
    expect(compileExpression(text, []).evaluate({})).toBe(true);
    const evaluated = `${twice('[[1]]', 30)} == [[1]] || true`;
    expect(failureOf(() => compileExpression(evaluated, []).evaluate({}))).toMatchObject({ code: 'LimitExceeded' });
  });

  test('a long list is made and read in time, and is what arrays make', () => {
    const x = Array.from({ length: 20_000 }, (_, index) => index);
    const limits = { milliseconds: 30_000 };
    expect(compileExpression('x.map(a, a * 2)', ['x'], limits).evaluate({ x })).toEqual(x.map((value) => value * 2));
    const lists = fc.array(fc.array(fc.integer(), { maxLength: 20 }), { minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(lists, (parts) => {
        const names = parts.map((_, index) => `l${index}`);
        const bindings = Object.fromEntries(parts.map((part, index) => [`l${index}`, part]));
        const all = parts.flat();
        expect(compileExpression(names.join(' + '), names).evaluate(bindings)).toEqual(all);
        const nested = names.reduceRight((sum, name) => `${name} + (${sum})`);
        expect(compileExpression(`(${nested}).map(a, a)`, names).evaluate(bindings)).toEqual(all);
        const at = compileExpression(`(${nested})[i]`, [...names, 'i']);
        for (const [i, value] of all.entries()) expect(at.evaluate({ ...bindings, i })).toBe(value);
      }),
      { numRuns: runs(100) },
    );
  });

  test('errors in a loop do not hide that the budget is spent', () => {
    const text = 'x.all(a, x.all(b, 1 / 0 == 1)) || true';
    const error = failureOf(() => compileExpression(text, ['x'], { rounds: 100 }).evaluate({ x: items }));
    expect(error).toMatchObject({ code: 'LimitExceeded' });
  });

  test('comparing large values in a loop meets the time limit', () => {
    const big = Array.from({ length: 20_000 }, (_, index) => index);
    const compiled = compileExpression('x.all(a, !(-1 in x))', ['x'], { milliseconds: 20 });
    expect(failureOf(() => compiled.evaluate({ x: big }))).toMatchObject({ code: 'LimitExceeded' });
  });

  test('one evaluation that was too expensive does not spoil the next', () => {
    const compiled = compileExpression('x.all(a, a >= 0)', ['x'], { rounds: 100 });
    expect(failureOf(() => compiled.evaluate({ x: items })).code).toBe('LimitExceeded');
    expect(compiled.evaluate({ x: items.slice(0, 50) })).toBe(true);
  });

  test('a regular expression that backtracking engines choke on', () => {
    const text = "x.matches('^(a+)+$') || x.matches('(x+x+)+y') || x.matches('(.*)*b$')";
    expect(compileExpression(text, ['x']).evaluate({ x: `${'a'.repeat(5000)}!` })).toBe(false);
  });

  test('texts, trees and inputs beyond the limits', () => {
    const limited = (text: string) => failureOf(() => compileExpression(text, ['x'])).code;
    expect(limited(`${'1 + '.repeat(2000)}1`)).toBe('LimitExceeded');
    expect(limited('('.repeat(2000) + ')'.repeat(2000))).toBe('LimitExceeded');
    expect(limited(`${'['.repeat(150)}1${']'.repeat(150)}`)).toBe('LimitExceeded');
    expect(limited(Array(1023).fill('x').join('||'))).toBe('LimitExceeded');
    const x = Array.from({ length: 10 }, () => items);
    const error = failureOf(() => compileExpression('size(x)', ['x'], { values: 1000 }).evaluate({ x }));
    expect(error).toMatchObject({ code: 'LimitExceeded' });
  });
});

test('any text either compiles or is refused with a SluiceError', () => {
  const word = fc.constantFrom(
    'x',
    '1',
    '"s"',
    '.',
    '(',
    ')',
    '[',
    ']',
    '{',
    '}',
    ':',
    '?',
    '&&',
    '||',
    '!',
    '-',
    ' in ',
    ',',
    '.map(a,',
    'r"',
    '\n',
    '//',
  );
  fc.assert(
    fc.property(fc.array(word, { maxLength: 12 }), (words) => {
      try {
        compileExpression(words.join(''), ['x']).evaluate({ x: [1, 'a'] });
      } catch (error) {
        expect(error).toBeInstanceOf(SluiceError);
      }
    }),
    { numRuns: runs(2000) },
  );
});
