import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { give, linesOf, reasonOf, refuse, reprOfExpression } from '../testing.ts';

describe('None and bool', () => {
  give('gives', [
    ['None', 'None'],
    ['None == None', 'True'],
    ['None == False', 'False'],
    ['True == 1', 'False'],
    ['False < True', 'True'],
    ['not 0', 'True'],
    ['not [0]', 'False'],
    ['0 or "x"', '"x"'],
    ['"" and 1 // 0', '""'],
    ['1 and 2', '2'],
    ['1 if "" else 2', '2'],
    ['[bool(x) for x in [None, 0, 0.0, "", (), [], {}, set(), range(0)]] == [False] * 9', 'True'],
    ['[bool(x) for x in [1, -1.5, "a", (0,), [0], {0: 0}, len, lambda: 0]] == [True] * 8', 'True'],
  ]);
  refuse('fails', [
    ['None < None', 'NoneType < NoneType not implemented'],
    ['True + 1', 'unknown binary op: bool + int'],
    ['-True', 'unknown unary op: - bool'],
  ]);
});

describe('int', () => {
  give('gives', [
    ['0x1F + 0o17 + 0b11', '49'],
    ['7 // 2, -7 // 2, 7 // -2, -7 // -2', '(3, -4, -4, 3)'],
    ['7 % 3, -7 % 3, 7 % -3, -7 % -3', '(1, 2, -2, -1)'],
    ['0 * -5', '0'],
    ['-4 % 2', '0'],
    ['7 / 2', '3.5'],
    ['9007199254740991 + 1', '9007199254740992'],
    ['9007199254740993 * 9007199254740993', '81129638414606699710187514626049'],
    ['-9007199254740993 // 7, -9007199254740993 % 7', '(-1286742750677285, 2)'],
    ['(1 << 70) >> 68', '4'],
    ['(1 << 70) - (1 << 70)', '0'],
    ['1 << 511 == 2 * (1 << 510)', 'True'],
    ['-1 >> 3, 5 >> 100', '(-1, 0)'],
    ['6 & 3, 6 | 3, 6 ^ 3, ~6', '(2, 7, 5, -7)'],
    ['(1 << 60) & ~1, -1 & (1 << 60)', '(1152921504606846976, 1152921504606846976)'],
    ['1 == 1.0, 1 < 1.5, (1 << 60) < 1e30', '(True, True, True)'],
    ['{1: "a"}[1.0]', '"a"'],
    ['9007199254740993 == 9007199254740992.0', 'False'],
  ]);
  refuse('fails', [
    ['1 // 0', 'floored division by zero'],
    ['1 % 0', 'integer modulo by zero'],
    ['1 / 0', 'floating-point division by zero'],
    ['1 << -1', 'negative shift count: -1'],
    ['1 << 512', 'shift count too large: 512'],
    [
      '(1 << 511) * (1 << 511) * (1 << 511) * (1 << 511) * (1 << 511) * (1 << 511) * (1 << 511) * (1 << 511) * (1 << 511) * (1 << 511)',
      'an int has more than 4096 bits',
    ],
    ['1 + "a"', 'unknown binary op: int + string'],
    ['1.5 & 1', 'unknown binary op: float & int'],
  ]);

  test('is exact in any size', () => {
    const int = fc.oneof(
      fc.maxSafeInteger().map(BigInt),
      fc.bigInt({ min: -(2n ** 100n), max: 2n ** 100n }),
      fc.integer({ min: -5, max: 5 }).map(BigInt),
    );
    fc.assert(
      fc.property(int, int, (a, b) => {
        const [x, y] = [`(${a})`, `(${b})`];
        expect(
          reprOfExpression(
            `[${x} + ${y}, ${x} - ${y}, ${x} * ${y}, ${x} & ${y}, ${x} | ${y}, ${x} ^ ${y}, ~${x}, ${x} < ${y}]`,
          ),
        ).toBe(`[${[a + b, a - b, a * b, a & b, a | b, a ^ b, ~a].join(', ')}, ${a < b ? 'True' : 'False'}]`);
        if (b === 0n) return;
        expect(reprOfExpression(`${x} // ${y} * ${y} + ${x} % ${y} == ${x}`)).toBe('True');
        expect(reprOfExpression(`0 <= ${x} % ${y} * (1 if ${y} > 0 else -1) and abs(${x} % ${y}) < abs(${y})`)).toBe(
          'True',
        );
      }),
      { numRuns: runs(60) },
    );
  });
});

describe('float', () => {
  give('gives', [
    ['1.0, 100000.0, 1000000.0, 0.0001, 0.00001', '(1.0, 100000.0, 1e+06, 0.0001, 1e-05)'],
    ['123456.5, 1234567.5, 1e100, -0.0', '(123456.5, 1.2345675e+06, 1e+100, -0.0)'],
    ['0.1 + 0.2, .5, 5.', '(0.30000000000000004, 0.5, 5.0)'],
    ['float("inf"), -float("inf"), float("nan")', '(+inf, -inf, nan)'],
    ['7.5 // 2, -7.5 // 2, -7.5 % 2, 7.5 % -2', '(3.0, -4.0, 0.5, -0.5)'],
    ['float("nan") == float("nan"), float("nan") > float("inf")', '(True, True)'],
    ['{float("nan"): 1}[float("nan")]', '1'],
  ]);
  refuse('fails', [
    ['1.0 / 0', 'floating-point division by zero'],
    ['1.0 // 0', 'floored division by zero'],
    ['1.0 % 0.0', 'floating-point modulo by zero'],
    ['~1.5', 'unknown unary op: ~ float'],
  ]);
});

describe('string', () => {
  give('gives', [
    ['"a\\tb\\"\\\\\\x41\\101\\u00e9\\U0001F600"', '"a\\tb\\"\\\\AAé😀"'],
    ["r'a\\nb'", '"a\\\\nb"'],
    ['"\\x07\\x7f\\u200b\\n"', '"\\a\\x7f\\u200b\\n"'],
    ['"""a\nb\\\nc"""', '"a\\nbc"'],
    ['"ab" * 3, 2 * "x", "a" * -1', '("ababab", "xx", "")'],
    ['"b" in "abc", "" in "abc", "x" not in "abc"', '(True, True, True)'],
    ['"abcdef"[1:3], "abcdef"[::-1], "abcdef"[-2:], "abcdef"[::2]', '("bc", "fedcba", "ef", "ace")'],
    ['"abc"[1], "abc"[-1]', '("b", "c")'],
    ['"a" < "b", "B" < "a", "a" < "aa"', '(True, True, True)'],
  ]);
  refuse('fails', [
    ['"abc"[3]', 'string index 3 out of range [-3:2]'],
    ['""[0]', 'index 0 out of range: empty string'],
    ['1 in "abc"', "'in <string>' requires string as left operand, not int"],
    ['[c for c in "abc"]', 'string value is not iterable'],
    ['"a" < 1', 'string < int not implemented'],
  ]);
});

describe('list and tuple', () => {
  give('gives', [
    ['[], [1], (), (1,), (1, 2)', '([], [1], (), (1,), (1, 2))'],
    ['[1] + [2], (1,) + (2,), [0] * 2, 2 * (1,)', '([1, 2], (1, 2), [0, 0], (1, 1))'],
    ['[1, 2] < [1, 3], (1,) < (1, 0), [] < [0]', '(True, True, True)'],
    ['[1, [2]] == [1, [2]], [1] == (1,)', '(True, False)'],
    ['[1, 2, 3, 4][1:-1], [1, 2, 3][::-2], [1, 2, 3][5:], [1, 2][-9:1]', '([2, 3], [3, 1], [], [1])'],
    ['(1, 2, 3)[1:], (1, 2, 3)[-1]', '((2, 3), 3)'],
    ['2 in [1, 2], 3 not in (1, 2)', '(True, True)'],
    ['{(1, "a"): 1}[(1, "a")]', '1'],
    ['{("a", "b"): 1, ("ab",): 2, "ab": 3, ("a", ("b",)): 4}[("a", ("b",))]', '4'],
  ]);
  refuse('fails', [
    ['[1, 2][2]', 'list index 2 out of range [-2:1]'],
    ['[][0]', 'index 0 out of range: empty list'],
    ['[1]["a"]', 'list index: got string, want int'],
    ['[1] + (2,)', 'unknown binary op: list + tuple'],
    ['[1][::0]', 'zero is not a valid slice step'],
    ['[1]["a":]', 'invalid start index: got string, want int'],
    ['1[1:2]', 'invalid slice operand int'],
    ['[1, "a"] < [1, 2]', 'string < int not implemented'],
  ]);
});

describe('dict', () => {
  give('gives', [
    ['{"b": 1, "a": 2}', '{"b": 1, "a": 2}'],
    ['{1: 2} | {1: 3, 4: 5}', '{1: 3, 4: 5}'],
    ['{"a": 1, "b": 2} == {"b": 2, "a": 1}, {"a": 1} == {"a": 2}', '(True, False)'],
    ['"a" in {"a": None}, [] in {}', '(True, False)'],
    ['{"\\x00s": 1, "": 2, "\\x00t1:i1;": 3, (1,): 4}', '{"\\x00s": 1, "": 2, "\\x00t1:i1;": 3, (1,): 4}'],
    ['{True: 1, 1: 2, "True": 3, None: 4, "None": 5}', '{True: 1, 1: 2, "True": 3, None: 4, "None": 5}'],
    ['{"__proto__": 1, "constructor": 2}["__proto__"]', '1'],
    ['"constructor" in {}, "__proto__" in {}', '(False, False)'],
    ['{len: 1}[len]', '1'],
  ]);
  refuse('fails', [
    ['{}["a"]', 'key "a" not in dict'],
    ['{1: 1, 1.0: 2}', 'duplicate key: 1.0'],
    ['{[]: 1}', 'unhashable type: list'],
    ['{({},): 1}', 'unhashable type: dict'],
    ['{} < {}', 'dict < dict not implemented'],
    ['{}[1:]', 'invalid slice operand dict'],
  ]);
});

describe('set', () => {
  give('gives', [
    ['set([1, 2, 1])', 'set([1, 2])'],
    ['set([1]) | set([2]), set([1, 2]) & set([2, 3]), set([1, 2]) - set([2])', '(set([1, 2]), set([2]), set([1]))'],
    ['set([1, 2]) ^ set([2, 3])', 'set([1, 3])'],
    ['set([1, 2]) == set([2, 1]), 1.0 in set([1])', '(True, True)'],
  ]);
  refuse('fails', [
    ['set([[]])', 'unhashable type: list'],
    ['set([1]) + set([2])', 'unknown binary op: set + set'],
    ['set("ab")', 'set: for parameter 1: got string, want iterable'],
  ]);
});

describe('range', () => {
  give('gives', [
    ['range(3), range(1, 5), range(1, 5, 2)', '(range(3), range(1, 5), range(1, 5, 2))'],
    ['list(range(10, 0, -3)), len(range(0)), list(range(5, 1))', '([10, 7, 4, 1], 0, [])'],
    ['range(10)[2:8:2], range(10)[::-1], range(10)[3], range(10)[-1]', '(range(2, 8, 2), range(9, -1, -1), 3, 9)'],
    ['3 in range(5), 3 in range(0, 9, 2), 2.0 in range(5)', '(True, False, True)'],
    ['range(0, 5, 2) == range(0, 6, 2), range(0) == range(5, 5), range(2) == range(3)', '(True, True, False)'],
    ['len(range(1 << 40)), 1 << 39 in range(1 << 40)', '(1099511627776, True)'],
  ]);
  refuse('fails', [
    ['range(1, 2, 0)', 'range: step argument must not be zero'],
    ['range("a")', 'range: for parameter 1: got string, want int'],
    ['range(1 << 60)', 'range: 1152921504606846976 out of range'],
    ['range(5)[9]', 'range index 9 out of range [-5:4]'],
  ]);
});

describe('texts of values that hold themselves', () => {
  test('end', () => {
    expect(linesOf('x = [1]\nx.append(x)\nprint(x)\ny = {}\ny["y"] = (y,)\nprint(y)')).toEqual([
      '[1, [...]]',
      '{"y": ({...},)}',
    ]);
  });

  test('and comparing them fails', () => {
    expect(reasonOf('x = []\nx.append(x)\ny = []\ny.append(y)\nx == y')).toBe(
      'comparison exceeded maximum recursion depth',
    );
  });
});
