import { describe, expect, test } from 'vitest';
import { isSluiceError } from '../foundation/sluice-error.ts';
import { runStarlark } from './run-starlark.ts';
import { errorOf, linesOf, reasonOf } from './testing.ts';
import { List } from './values/sequence.ts';
import { freeze, type Value } from './values/value.ts';

/** Scripts and what they print. */
function print(table: readonly (readonly [what: string, script: string, lines: readonly string[]])[]): void {
  test.each(table)('%s', (_what, script, lines) => {
    expect(linesOf(script)).toEqual(lines);
  });
}

function refuse(table: readonly (readonly [script: string, reason: string])[]): void {
  test.each(table)('%s', (script, reason) => {
    expect(reasonOf(script)).toBe(reason);
  });
}

describe('assignments', () => {
  print([
    ['several names', 'a, (b, c) = 1, [2, 3]\n[d, e] = {"x": 1, "y": 2}\nprint(a, b, c, d, e)', ['1 2 3 x y']],
    ['elements that change places', 'x = [1, 2, 3]\nx[0], x[-1] = x[-1], x[0]\nprint(x)', ['[3, 2, 1]']],
    ['augmented ones', 'x = 7\nx += 1\nx -= 2\nx *= 5\nx //= 4\nx %= 4\nx <<= 3\nx |= 1\nprint(x)', ['25']],
    [
      'a list changes in place',
      'x = [1]\ny = x\nx += (2,)\nx += x\nx = x + [9]\nprint(x, y)',
      ['[1, 2, 1, 2, 9] [1, 2, 1, 2]'],
    ],
    ['a dict changes in place', 'x = {1: 1}\ny = x\nx |= {2: 2}\nprint(y)', ['{1: 1, 2: 2}']],
    [
      'the place of an augmented one is found once',
      'n = []\ndef f():\n  n.append(1)\n  return 0\nx = [5]\nx[f()] += 1\nprint(x, n)',
      ['[6] [1]'],
    ],
    ['new meanings of names', 'print(len("a"))\nlen = 3\nprint(len)\nlen = "x"\nprint(len)', ['1', '3', 'x']],
  ]);
  refuse([
    ['a, b = 1', 'got int in sequence assignment'],
    ['a, b = 1, 2, 3', 'too many values to unpack (got 3, want 2)'],
    ['a, b = [1]', 'too few values to unpack (got 1, want 2)'],
    ['a, b = "xy"', 'got string in sequence assignment'],
    ['x = (1,)\nx[0] = 1', 'tuple value does not support item assignment'],
    ['x = "a"\nx[0] = "b"', 'string value does not support item assignment'],
    ['x = [1]\nx[5] = 1', 'list index 5 out of range [-1:0]'],
    ['x = None\nx.y = 1', "can't assign to .y field of NoneType"],
    ['x = [1]\nx += 1', 'unknown binary op: list + int'],
    ['x = [1]\nx += "ab"', 'unknown binary op: list + string'],
  ]);
});

describe('control flow', () => {
  print([
    [
      'if',
      'for x in [0, 1, 2]:\n  if x == 0: print("a")\n  elif x == 1:\n    print("b")\n  else:\n    print("c")',
      ['a', 'b', 'c'],
    ],
    ['for', 'for i in range(9):\n  if i == 1: continue\n  if i == 3: break\n  print(i)', ['0', '2']],
    ['for with several names', 'for a, (b, c) in [(1, (2, 3))]: print(a, b, c)', ['1 2 3']],
    ['for over a dict and a set', 'for k in {"a": 1, "b": 2}: print(k)\nfor e in set([3]): print(e)', ['a', 'b', '3']],
    ['while', 'i = 0\nwhile i < 5:\n  i += 1\n  if i == 2: continue\n  if i == 4: break\n  print(i)', ['1', '3']],
    [
      'return out of loops',
      'def f():\n  for i in range(3):\n    while True:\n      if i == 0: break\n      return i\nprint(f())',
      ['1'],
    ],
    [
      'a loop that ended lets its list change',
      'x = [1, 2]\nfor a in x: break\nx.append(3)\ndef f():\n  for a in x: return a\nf()\nx.append(4)\nprint(x)',
      ['[1, 2, 3, 4]'],
    ],
  ]);
  refuse([
    ['for x in 5: pass', 'int value is not iterable'],
    ['for x in "abc": pass', 'string value is not iterable'],
    ['x = [1]\nfor a in x: x.append(1)', 'cannot append to list during iteration'],
    ['x = [1]\nfor a in x: x[0] = 2', 'cannot assign to element of list during iteration'],
    ['x = {1: 2}\nfor a in x: x[3] = 1', 'cannot insert into hash table during iteration'],
    ['x = {1: 2}\nfor a in x: x.pop(1)', 'cannot delete from hash table during iteration'],
    ['x = set([1])\nfor a in x: x.add(2)', 'cannot insert into hash table during iteration'],
    ['x = [1]\ny = [x.append(2) for a in x]', 'cannot append to list during iteration'],
  ]);
});

describe('comprehensions', () => {
  print([
    ['loops and conditions', 'print([(x, y) for x in range(3) for y in range(x) if y != 1])', ['[(1, 0), (2, 0)]']],
    ['of dicts', 'print({k: v * 2 for k, v in {"a": 1}.items()})', ['{"a": 2}']],
    ['have names of their own', 'x = 1\ny = [x for x in [2, 3]]\nprint(x, y, [x for x in [x]])', ['1 [2, 3] [1]']],
    ['share them with functions inside', 'f = [lambda: x for x in [1, 2]]\nprint([g() for g in f])', ['[2, 2]']],
    ['nest', 'print([[y * x for y in range(x)] for x in range(4)])', ['[[], [0], [0, 2], [0, 3, 6]]']],
  ]);
});

describe('functions', () => {
  const all = 'def f(a, b=2, *args, c=3, d, **kw): print(a, b, args, c, d, kw)\n';
  print([
    ['arguments by place', `${all}f(1, 5, 6, 7, d=4)`, ['1 5 (6, 7) 3 4 {}']],
    ['arguments by name', `${all}f(d=4, a=1, z=9)`, ['1 2 () 3 4 {"z": 9}']],
    ['arguments out of lists and dicts', `${all}f(*[1, 2, 3], **{"d": 4, "y": 1})`, ['1 2 (3,) 3 4 {"y": 1}']],
    ['bare star', 'def f(a, *, b): return (a, b)\nprint(f(1, b=2))', ['(1, 2)']],
    ['lambda', 'print((lambda x, *y, z=3, **w: (x, y, z, w))(1, 2, k=4))', ['(1, (2,), 3, {"k": 4})']],
    ['nothing returned', 'def f():\n  return\ndef g(): pass\nprint(f(), g())', ['None None']],
    ['a default is made once', 'def f(x=[]):\n  x.append(1)\n  return x\nf()\nprint(f())', ['[1, 1]']],
    ['closures share variables', 'def f():\n  x = 1\n  def g(): return x\n  x = 2\n  return g\nprint(f()())', ['2']],
    [
      'closures of each call are their own',
      'def f(n):\n  def g(m):\n    def h(): return n + m\n    return h\n  return g\na = f(1)(10)\nb = f(2)(20)\nprint(a(), b())',
      ['11 22'],
    ],
    ['recursion', 'def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)\nprint(fib(15))', ['610']],
    ['functions see what is set below them', 'def f(): return g()\ndef g(): return y\ny = 4\nprint(f())', ['4']],
    ['a loop sets names outside of functions', 'for i in range(2):\n  z = i\nprint(i, z)', ['1 1']],
  ]);
  refuse([
    ['def f(a): pass\nf()', 'function f missing 1 argument (a)'],
    ['def f(a, b, *, c): pass\nf()', 'function f missing 3 arguments (a, b, c)'],
    ['def f(): pass\nf(1)', 'function f accepts no arguments (1 given)'],
    ['def f(a): pass\nf(1, 2)', 'function f accepts 1 positional argument (2 given)'],
    ['def f(a, b=1): pass\nf(1, 2, 3)', 'function f accepts at most 2 positional arguments (3 given)'],
    ['def f(a): pass\nf(1, a=2)', 'function f got multiple values for parameter "a"'],
    ['def f(a): pass\nf(b=2)', 'function f got an unexpected keyword argument "b"'],
    ['def f(*args): pass\nf(args=1)', 'function f got an unexpected keyword argument "args"'],
    ['len(*5)', 'argument after * must be iterable, not int'],
    ['len(**5)', 'argument after ** must be a mapping, not int'],
    ['dict(**{1: 2})', 'keywords must be strings, not int'],
    ['x = 1\nx()', 'invalid call of non-function (int)'],
    ['def f():\n  print(x)\n  x = 1\nf()', 'local variable x referenced before assignment'],
    ['def f():\n  def g(): print(x)\n  g()\n  x = 1\nf()', 'local variable x referenced before assignment'],
    ['def f(): print(y)\nf()\ny = 1', 'global variable y referenced before assignment'],
    ['x += 1', 'global variable x referenced before assignment'],
  ]);
});

describe('load', () => {
  const member = new List([1]);
  freeze(member);
  const load = (module: string) => (module === 'm.star' ? new Map<string, Value>([['a', member]]) : undefined);
  const run = (script: string) => runStarlark(script, { name: 'test.star', load });

  test('binds members, which do not change', () => {
    expect(run('load("m.star", "a", b="a")\nx = a[0] + b[0]').get('x')).toBe(2);
    expect(() => run('load("m.star", "a")\na.append(2)')).toThrow('cannot append to frozen list');
  });

  test('fails for missing members', () => {
    expect(() => run('load("m.star", "z")')).toThrow('test.star:1:1: load: name z not found in module m.star');
    expect(() => run('load("../../etc/passwd", "z")')).toThrow('cannot load ../../etc/passwd: unknown module');
  });
});

test('returns the global variables', () => {
  expect([...runStarlark('x = 1\ndef f(): pass\nif False: y = 2', { name: 'test.star' }).keys()]).toEqual(['x', 'f']);
});

test('runs of a script are isolated', () => {
  runStarlark('len = 5\nx = 1', { name: 'test.star' });
  expect(linesOf('print(len("ab"))')).toEqual(['2']);
  expect(reasonOf('print(x)')).toBe('undefined: x');
});

test('an error names its place and the calls that led to it', () => {
  const script = 'def f(x):\n  return [y["nope"] for y in x]\ndef g(x):\n  f(x)\nsorted([1], key=lambda x: g([{}]))';
  const error = errorOf(script);
  expect(isSluiceError(error, 'InvalidInput')).toBe(true);
  expect(error.message).toBe('test.star:2:12: key "nope" not in dict');
  expect(error.details).toEqual({
    phase: 'evaluation',
    reason: 'key "nope" not in dict',
    line: 2,
    column: 12,
    backtrace: [
      'Traceback (most recent call last):',
      '  test.star:5:7: in <toplevel>',
      '  test.star:5:28: in lambda',
      '  test.star:4:4: in g',
      '  test.star:2:12: in f',
    ].join('\n'),
  });
});
