import { describe, expect, test } from 'vitest';
import { errorOf, linesOf } from '../testing.ts';

test.each([
  ['blank lines and comments', '# a\n\n   # b\nprint(1) # c\n\n', ['1']],
  ['statements of one line', 'print(1); print(2);\nif True: print(3); print(4)', ['1', '2', '3', '4']],
  ['lines that go on', 'x = (1 +\n2)\ny = 1 + \\\n  2\nprint(x, y, [\n1,\n  # why\n2,\n])', ['3 3 [1, 2]']],
  ['tabs and blanks that stand alike', 'if True:\n\tx = 1\n        y = 2\nprint(x, y)', ['1 2']],
  ['line ends of Windows, and no last one', 'x = 1\r\nif x:\r\n  print("""a\r\nb""")', ['a\nb']],
  ['a mark of the byte order', '\uFEFFprint(1)', ['1']],
  ['doc strings', 'def f():\n  """doc"""\n  return 1\nprint(f())', ['1']],
  [
    'how operators bind',
    'print(1 + 2 * 3, -2 * 3, 2 - -2, 1 | 2 ^ 3 & 4, 1 << 2 + 1, not 1 == 2, -7 // 2)',
    ['7 -6 4 3 8 True -4'],
  ],
  ['conditions bind last', 'print(1 if 0 else 2 if 0 else 3, [x for x in [1, 2, 3] if x > 1 if x < 3])', ['3 [2]']],
  ['chains of suffixes', 'print({"a": [[1, 2]]}["a"][0][1:][0], "a".upper().lower())', ['2 a']],
  ['names beyond ASCII', 'größe = 1\nprint(größe)', ['1']],
  ['string prefixes and quotes', `print('a"b', "a'b", r'\\d', '''x'y''')`, ["a\"b a'b \\d x'y"]],
  ['trailing commas in brackets', 'print((1,), [1,], {1: 2,}, len([],))', ['(1,) [1] {1: 2} 0']],
])('reads %s', (_what, script, lines) => {
  expect(linesOf(script)).toEqual(lines);
});

describe('refuses, with the place', () => {
  test.each([
    ['x = ', '1:5: got newline, want primary expression'],
    ['x = 1 2', '1:7: got number, want newline'],
    ['x = "abc', '1:5: unexpected end of script in string'],
    ['x = "abc\ny', '1:5: unexpected end of line in string'],
    ['x = "\\q"', '1:5: invalid escape sequence \\q'],
    ['x = "\\x8', '1:5: truncated escape sequence \\x8'],
    ['x = "\\x80"', '1:5: non-ASCII octal or hex escape \\x80 (use \\u0080 for U+0080)'],
    ['x = "\\ud800"', '1:5: invalid Unicode code point in escape sequence \\ud800'],
    ['x = b"a"', '1:5: bytes literals are not supported here'],
    ['x = 01', '1:5: obsolete form of octal literal; use 0o1'],
    ['x = 1a', '1:5: invalid number literal 1a'],
    ['x = 1e999', '1:5: floating-point literal too large'],
    ['x = $', '1:5: unexpected input character "$"'],
    ['x = \\ 1', '1:5: stray backslash in program'],
    ['x = (1', "1:5: '(' is never closed"],
    ['x = (1]', "1:7: unexpected ']'"],
    ['x = 1,', '1:7: unparenthesized tuple with trailing comma'],
    ['if 1:\nx = 1', '2:1: got x, want indent'],
    ['  x = 1', '1:3: got indent, want primary expression'],
    ['if 1:\n    x = 1\n  y = 2', '3:3: unindent does not match any outer indentation level'],
    ['class A: pass', '1:1: class is a reserved word'],
    ['a < b < c', '1:7: < does not associate with other comparisons (use parens)'],
    ['x = 5 if 1', '1:11: got newline, want else'],
    ['f(1 for x in y)', "1:5: got for, want ','"],
    ['f(a + 1 = 2)', '1:3: keyword argument must have form name=expr'],
    ['len(a=1, 2)', '1:10: positional argument may not follow named'],
    ['len(*x, 1)', '1:9: positional argument may not follow *args'],
    ['dict(a=1, a=2)', '1:11: keyword argument "a" is repeated'],
    ['def f(a, a): pass', '1:10: duplicate parameter: a'],
    ['def f(a=1, b): pass', '1:12: required parameter may not follow optional'],
    ['def f(**a, b): pass', '1:12: no parameter may follow **a'],
    ['def f(*): pass', '1:7: bare * must be followed by keyword-only parameters'],
    ['def f(*a, *b): pass', '1:11: multiple * parameters not allowed'],
    ['return 1', '1:1: return statement not within a function'],
    ['break', '1:1: break not in a loop'],
    ['for x in []:\n  def f(): continue', '2:12: continue not in a loop'],
    ['1 = 2', "1:1: can't assign to expression"],
    ['(a, b) += 1', "1:2: can't use tuple expression in augmented assignment"],
    ['print(nope)', '1:7: undefined: nope'],
    ['print(z)\nz = 1', '1:7: undefined: z'],
    ['def f(): return nope', '1:17: undefined: nope'],
    ['def f():\n  load("a", "b")', '2:3: load statement within a function'],
    ['if 1: load("a", "b")', '1:7: load statement within a conditional or a loop'],
    ['load("a", "_b")', '1:11: load: names with leading underscores are not exported: _b'],
    ['load("a")', '1:1: load statement must import at least 1 symbol'],
    ['load(a, "b")', '1:6: first operand of load statement must be a string literal'],
  ])('%s', (script, message) => {
    const error = errorOf(script);
    expect(error.message).toBe(`test.star:${message}`);
    expect(error.details.phase).toBe('syntax');
  });
});

test('refuses what is nested too deep, in any form', () => {
  const many = 1200;
  for (const script of [
    `x = ${'('.repeat(many)}1${')'.repeat(many)}`,
    `x = ${'['.repeat(many)}1${']'.repeat(many)}`,
    `x = ${'-'.repeat(many)}1`,
    `x = ${'not '.repeat(many)}1`,
    `x = ${'1 + '.repeat(many)}1`,
    `x = ${'1 if 1 else '.repeat(many)}1`,
    `x = ${'lambda: '.repeat(many)}1`,
    `x = len${'()'.repeat(many)}`,
    `x = len${'.a'.repeat(many)}`,
    `x = [1 ${'for y in [1] '.repeat(many)}]`,
    Array.from({ length: many }, (_, depth) => `${' '.repeat(depth)}if 1:`).join('\n'),
    Array.from({ length: many }, (_, depth) => `${' '.repeat(depth)}def f():`).join('\n'),
  ])
    expect(errorOf(script).details.reason).toBe('nested more than 120 levels deep');
});

test('accepts long scripts without nesting', () => {
  const many = 3000;
  const branches = `if 0: pass\n${'elif 0: pass\n'.repeat(many)}else: print("end")\n`;
  expect(linesOf(`${branches}x = [${'1,'.repeat(many)}]\nprint(len(x))\n${'x = 1\n'.repeat(many)}`)).toEqual([
    'end',
    '3000',
  ]);
});
