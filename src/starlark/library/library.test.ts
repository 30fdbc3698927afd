import { describe, expect, test } from 'vitest';
import { give, linesOf, refuse } from '../testing.ts';

describe('functions of the language', () => {
  give('gives', [
    ['abs(-5), abs(-1.5)', '(5, 1.5)'],
    ['any([0, 1]), any([]), all([1, 0]), all([])', '(True, False, False, True)'],
    ['bool(), bool("a"), bool([])', '(False, True, False)'],
    ['chr(65), chr(128512), ord("A"), ord("😀")', '("A", "😀", 65, 128512)'],
    ['dict(), dict([(1, 2), [3, 4]]), dict({"a": 1}, b=2)', '({}, {1: 2, 3: 4}, {"a": 1, "b": 2})'],
    ['dir({}) == ["clear", "get", "items", "keys", "pop", "popitem", "setdefault", "update", "values"]', 'True'],
    ['dir(1)', '[]'],
    ['enumerate(["a", "b"]), enumerate((1,), 5)', '([(0, "a"), (1, "b")], [(5, 1)])'],
    ['float("1.5"), float("1e3"), float(3), float(True), float("-Infinity")', '(1.5, 1000.0, 3.0, 1.0, -inf)'],
    [
      'getattr("a", "upper")(), getattr("a", "nope", 3), hasattr("a", "upper"), hasattr("a", "nope")',
      '("A", 3, True, False)',
    ],
    ['hash("abc"), hash("")', '(96354, 0)'],
    ['int("12"), int("-0x1F", 16), int("0b11", 0), int("0o17", 0), int("z", 36), int("+7")', '(12, -31, 3, 15, 35, 7)'],
    [
      'int(1.9), int(-1.9), int(True), int("99999999999999999999"), int(1e20)',
      '(1, -1, 1, 99999999999999999999, 100000000000000000000)',
    ],
    ['len("abc"), len([1]), len({1: 2}), len(range(3)), len(set([1]))', '(3, 1, 1, 3, 1)'],
    ['list(), list((1, 2)), list({"a": 1}), tuple([1]), tuple()', '([], [1, 2], ["a"], (1,), ())'],
    ['max(1, 3, 2), max([1, 5, 2]), max([1, -5], key=abs), min("b", "a"), min([[2], [1]])', '(3, 5, -5, "a", [1])'],
    ['repr("a"), str("a"), str([1, "a"]), str(None)', '("\\"a\\"", "a", "[1, \\"a\\"]", "None")'],
    ['reversed([1, 2]), reversed(range(3))', '([2, 1], [2, 1, 0])'],
    [
      'sorted([3, 1, 2]), sorted([3, 1, 2], reverse=True), sorted({"b": 1, "a": 2})',
      '([1, 2, 3], [3, 2, 1], ["a", "b"])',
    ],
    [
      'sorted(["bb", "a", "cc"], key=len), sorted(["bb", "a", "cc"], key=len, reverse=True)',
      '(["a", "bb", "cc"], ["bb", "cc", "a"])',
    ],
    [
      '[type(x) for x in [None, True, 1, 1.0, "", (), [], {}, set(), range(0), len, "".upper, lambda: 0]] == ["NoneType", "bool", "int", "float", "string", "tuple", "list", "dict", "set", "range", "builtin_function_or_method", "builtin_function_or_method", "function"]',
      'True',
    ],
    ['zip(), zip([1, 2], ["a", "b", "c"]), zip([1])', '([], [(1, "a"), (2, "b")], [(1,)])'],
    [
      'len, "".upper, lambda: 0',
      '(<built-in function len>, <built-in method upper of string value>, <function lambda>)',
    ],
  ]);
  refuse('fails', [
    ['abs("x")', 'abs: got string, want int or float'],
    ['any(1)', 'any: for parameter 1: got int, want iterable'],
    ['chr(-1)', 'chr: Unicode code point -1 out of range (<0)'],
    ['chr(1114112)', 'chr: Unicode code point U+110000 out of range (>0x10FFFF)'],
    ['ord("ab")', 'ord: string encodes 2 Unicode code points, want 1'],
    ['dict([1])', 'dict: dictionary update sequence element #0 is not iterable (int)'],
    ['dict([(1,)])', 'dict: dictionary update sequence element #0 has length 1, want 2'],
    ['fail("a", 1, None)', 'fail: a 1 None'],
    ['fail(1, 2, sep=",")', 'fail: 1,2'],
    ['float("x")', 'invalid float literal: x'],
    ['float("")', 'float: empty string'],
    ['getattr("a", "nope")', 'getattr: string has no .nope field or method'],
    ['int("")', 'int: invalid literal with base 10: '],
    ['int("1_0")', 'int: invalid literal with base 10: 1_0'],
    ['int("017", 0)', 'int: invalid literal with base 0: 017'],
    ['int("1", 1)', 'int: base must be an integer >= 2 && <= 36'],
    ['int(1, 10)', "int: can't convert non-string with explicit base"],
    ['int([])', 'int: cannot convert list to int'],
    ['int(float("nan"))', 'int: cannot convert float NaN to integer'],
    ['int("9" * 5000)', 'an int has more than 4096 bits'],
    ['len(5)', 'len: value of type int has no len'],
    ['len()', 'len: got 0 arguments, want 1'],
    ['len(x=[])', 'len: unexpected keyword arguments'],
    ['max([])', 'max: argument is an empty sequence'],
    ['max()', 'max requires at least one positional argument'],
    ['min(1, "a")', 'string < int not implemented'],
    ['sorted([1, "a"])', 'string < int not implemented'],
    ['sorted([1], nope=1)', 'sorted: unexpected keyword argument "nope"'],
    ['zip("ab")', 'zip: argument #1 is not iterable: string'],
    ['"a".nope', 'string has no .nope field or method'],
    ['[].constructor', 'list has no .constructor field or method'],
    ['{}.__proto__', 'dict has no .__proto__ field or method'],
    ['len.call', 'builtin_function_or_method has no .call field or method'],
    ['(lambda: 0).constructor', 'function has no .constructor field or method'],
  ]);

  test('print writes texts as they are and other values as repr', () => {
    expect(linesOf('print("a", 1, ["b"])\nprint()\nprint(1, 2, sep="-")')).toEqual(['a 1 ["b"]', '', '1-2']);
  });
});

describe('methods of strings', () => {
  give('gives', [
    [
      '"hELLO wORLD".capitalize(), "hello wORLD-x".title(), "aB".upper(), "aB".lower()',
      '("Hello world", "Hello World-X", "AB", "ab")',
    ],
    [
      '"aXbX".count("X"), "aaa".count("aa"), "abc".count(""), "abcb".count("b", 2), "abcb".count("b", 0, 3)',
      '(2, 1, 4, 1, 1)',
    ],
    [
      '"abc".elems(), "aé😀".codepoints(), "aé".codepoint_ords(), "ab".elem_ords()',
      '(["a", "b", "c"], ["a", "é", "😀"], [97, 233], [97, 98])',
    ],
    [
      '"abc".startswith("ab"), "abc".startswith(("x", "a")), "abc".startswith("b", 1), "abc".endswith("b", 0, 2)',
      '(True, True, True, True)',
    ],
    [
      '"abcabc".find("c"), "abc".find("z"), "abcabc".find("a", 1), "abcabc".rfind("a"), "abc".find("a", -2)',
      '(2, -1, 3, 3, -1)',
    ],
    ['"abc".index("c"), "abcb".rindex("b")', '(2, 3)'],
    [
      '"ab1".isalnum(), "ab1".isalpha(), "12".isdigit(), "ab".islower(), "AB1".isupper(), " \\t".isspace(), "Ab Cd".istitle()',
      '(True, False, True, True, True, True, True)',
    ],
    ['"".isalpha(), "1".islower(), "Ab cd".istitle()', '(False, False, False)'],
    ['",".join(["a", "b"]), "".join(()), "-".join({"x": 1, "y": 2})', '("a,b", "", "x-y")'],
    ['"  a ".strip(), "xyaxy".lstrip("yx"), "xyaxy".rstrip("yx"), "aba".strip("a")', '("a", "axy", "xya", "b")'],
    [
      '"a:b:c".partition(":"), "a:b:c".rpartition(":"), "a".partition(":"), "a".rpartition(":")',
      '(("a", ":", "b:c"), ("a:b", ":", "c"), ("a", "", ""), ("", "", "a"))',
    ],
    ['"abc".removeprefix("ab"), "abc".removesuffix("bc"), "abc".removeprefix("x")', '("c", "a", "abc")'],
    [
      '"aaa".replace("a", "b", 2), "abc".replace("", "-"), "abc".replace("", "-", 2), "a$b".replace("$", "$&")',
      '("bba", "-a-b-c-", "-a-bc", "a$&b")',
    ],
    [
      '"a,b,,c".split(","), "a,b,c".split(",", 1), "a,b,c".rsplit(",", 1), "".split(",")',
      '(["a", "b", "", "c"], ["a", "b,c"], ["a,b", "c"], [""])',
    ],
    [
      '" a  b ".split(), " a  b c ".split(None, 1), " a  b c ".rsplit(None, 1), "".split()',
      '(["a", "b"], ["a", "b c "], [" a  b", "c"], [])',
    ],
    [
      '"a\\nb\\n".splitlines(), "a\\nb".splitlines(True), "".splitlines(), "\\n\\n".splitlines()',
      '(["a", "b"], ["a\\n", "b"], [], ["", ""])',
    ],
  ]);
  refuse('fails', [
    ['"abc".index("z")', 'index: substring not found'],
    ['"abc".startswith(1)', 'startswith: got int, want string or tuple of string'],
    ['"abc".startswith((1,))', 'startswith: want string, got int, for element 0'],
    ['"a".split("")', 'split: empty separator'],
    ['"a".partition("")', 'partition: empty separator'],
    ['"a".split(1)', 'split: got int for separator, want string'],
    ['",".join([1])', 'join: in list, want string, got int'],
    ['",".join("ab")', 'join: for parameter 1: got string, want iterable'],
    ['"a".upper(1)', 'upper: got 1 arguments, want 0'],
    ['"a".replace(1, 2)', 'replace: for parameter 1: got int, want string'],
  ]);
});

describe('formatting', () => {
  give('gives', [
    [
      '"{} {}".format(1, "x"), "{0} {1} {0}".format(1, 2), "{a}{b!r}".format(a=1, b="x"), "{{}}".format()',
      '("1 x", "1 2 1", "1\\"x\\"", "{}")',
    ],
    ['"%s %r %d" % ("a", "b", 3), "%s" % [1], "%%" % ()', '("a \\"b\\" 3", "[1]", "%")'],
    ['"%x %X %o %i" % (255, 255, 8, 3.7), "%x" % -255', '("ff FF 10 3", "-ff")'],
    ['"%e %f %g %E" % (1.5, 1, 1e-10, 1e100)', '"1.500000e+00 1.000000 1e-10 1.000000E+100"'],
    ['"%c%c" % (65, "é"), "%(a)s-%(b)d" % {"a": 1, "b": 2}', '("Aé", "1-2")'],
  ]);
  refuse('fails', [
    ['"{".format()', "format: unmatched '{' in format"],
    ['"}".format()', "format: single '}' in format"],
    ['"{}".format()', 'format: tuple index out of range'],
    ['"{} {0}".format(1)', 'format: cannot switch from automatic field numbering to manual field specification'],
    ['"{0} {}".format(1)', 'format: cannot switch from manual field specification to automatic field numbering'],
    ['"{a}".format()', 'format: keyword a not found'],
    ['"{a.b}".format(a=1)', 'format: attribute syntax x.y is not supported in replacement fields: a.b'],
    ['"{:5}".format(1)', 'format: format spec features not supported in replacement fields: 5'],
    ['"{!x}".format(1)', 'format: unknown conversion "x"'],
    ['"%d" % "a"', '%d format requires integer: cannot convert string to int'],
    ['"%f" % "a"', '%f format requires float, not string'],
    ['"%c" % "ab"', '%c format requires a single-character string'],
    ['"%s" % ()', 'not enough arguments for format string'],
    ['"%s" % (1, 2)', 'too many arguments for format string'],
    ['"a" % 1', 'too many arguments for format string'],
    ['"%(a)s" % {}', 'key not found: a'],
    ['"%(a)s" % 1', 'format requires a mapping'],
    ['"%(a" % {}', 'incomplete format key'],
    ['"%" % 1', 'incomplete format'],
    ['"%z" % 1', 'unknown conversion %z'],
  ]);
});

describe('methods of collections', () => {
  test('lists', () => {
    const script = `x = [3, 1]
x.append(2)
x.insert(0, 5)
x.insert(-1, 6)
x.insert(99, 7)
print(x)
print(x.index(6), [1, 2, 1].index(1, 1), x.pop(), x.pop(0), x.pop(-2))
x.remove(1)
x.extend([9])
x.extend((8,))
print(x)
x.clear()
print(x)`;
    expect(linesOf(script)).toEqual(['[5, 3, 1, 6, 2, 7]', '3 2 7 5 6', '[3, 2, 9, 8]', '[]']);
  });

  test('dicts', () => {
    const script = `x = {"a": 1, "b": 2}
print(x.get("a"), x.get("z"), x.get("z", 5), x.items(), x.keys(), x.values())
print(x.pop("a"), x.pop("z", 1), x.setdefault("q", []), x.setdefault("b", 9), x.setdefault("n"))
x.update({"u": 1})
x.update([("v", 2)], w=3)
print(x)
print(x.popitem(), "b" in x)
x["b"] = 1
x["u"] = 2
print(x)
x.clear()
print(x)`;
    expect(linesOf(script)).toEqual([
      '1 None 5 [("a", 1), ("b", 2)] ["a", "b"] [1, 2]',
      '1 1 [] 2 None',
      '{"b": 2, "q": [], "n": None, "u": 1, "v": 2, "w": 3}',
      '("b", 2) False',
      '{"q": [], "n": None, "u": 2, "v": 2, "w": 3, "b": 1}',
      '{}',
    ]);
  });

  test('sets', () => {
    const script = `x = set([1, 2])
x.add(3)
x.remove(1)
x.discard(9)
print(x)
print(x.pop(), x)
print(x.union([3, 4]), x.difference([3]), x.intersection([3, 5]), x.symmetric_difference([5]))
print(x.issubset([3, 4]), x.issuperset([]), 3 in x)`;
    expect(linesOf(script)).toEqual([
      'set([2, 3])',
      '2 set([3])',
      'set([3, 4]) set([]) set([3]) set([3, 5])',
      'True True True',
    ]);
  });

  refuse('fails', [
    ['[].pop()', 'pop: index -1 out of range: empty list'],
    ['[1].pop(5)', 'pop: list index 5 out of range [-1:0]'],
    ['[1].remove(2)', 'remove: element not found'],
    ['[1].index(2)', 'index: value not in list'],
    ['[1].extend(5)', 'extend: for parameter 1: got int, want iterable'],
    ['{}.pop(1)', 'pop: missing key'],
    ['{}.popitem()', 'popitem: empty dict'],
    ['{}.update([5])', 'update: dictionary update sequence element #0 is not iterable (int)'],
    ['{}.setdefault([])', 'unhashable type: list'],
    ['set().remove(1)', 'remove: missing key'],
    ['set().pop()', 'pop: empty set'],
  ]);
});
