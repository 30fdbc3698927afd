import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { loadModule } from '../../function/starlark/load-module.ts';
import { runStarlark } from '../run-starlark.ts';

const NAMES: Readonly<Record<string, string>> = {
  base64: 'encoding/base64.star',
  csv: 'encoding/csv.star',
  hash: 'hash.star',
  http: 'http.star',
  json: 'encoding/json.star',
  krmfn: 'krmfn.star',
  math: 'math.star',
  re: 're.star',
  time: 'time.star',
  yaml: 'encoding/yaml.star',
  ZipFile: 'zipfile.star',
};

/** `repr` of an expression in which the modules are known. */
function evaluate(expression: string): string {
  const lines: string[] = [];
  const loads = Object.entries(NAMES).map(
    ([name, module]) => `load(${JSON.stringify(module)}, ${JSON.stringify(name)})`,
  );
  const script = `${loads.join('\n')}\nprint(repr((${expression})))`;
  runStarlark(script, {
    name: 'test.star',
    load: loadModule,
    print: (text) => lines.push(text),
    limits: { memory: 8 * 1024 * 1024 },
  });
  return lines.join('\n');
}

function reasonOf(expression: string): unknown {
  try {
    evaluate(expression);
  } catch (error) {
    if (error instanceof SluiceError) return (error.details as { reason: string }).reason;
    throw error;
  }
  return undefined;
}

describe('returns', () => {
  test.each([
    ['base64.encode("hi é"), base64.decode("aGkgw6k=")', '("aGkgw6k=", "hi é")'],
    [
      'base64.encode("a?>", "url"), base64.encode("a", "standard_raw"), base64.encode("a", "url")',
      '("YT8-", "YQ", "YQ==")',
    ],
    ['base64.decode("YT8-", "url_raw"), base64.decode("YQ", encoding="standard_raw")', '("a?>", "a")'],
    [
      'hash.md5("a"), hash.sha1("a")',
      '("0cc175b9c0f1b6a831c399e269772661", "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8")',
    ],
    ['hash.sha256("")', '"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"'],
    [
      'json.encode({"b": [1, 2.5, None, True], "a": ("x", "é\\n")})',
      '"{\\"a\\":[\\"x\\",\\"é\\\\n\\"],\\"b\\":[1,2.5,null,true]}"',
    ],
    [
      `json.decode('{"b": [1, 2.0, 1e2, 99999999999999999999], "a": null, "__proto__": {}}')`,
      '{"b": [1, 2.0, 100.0, 99999999999999999999], "a": None, "__proto__": {}}',
    ],
    ['json.decode("nope", None), json.decode("nope", default=1)', '(None, 1)'],
    [
      `json.indent('{"a":[1,{}],"b":"x,[y"}', indent=" ")`,
      '"{\\n \\"a\\": [\\n  1,\\n  {}\\n ],\\n \\"b\\": \\"x,[y\\"\\n}"',
    ],
    ['krmfn.match_gvk({"apiVersion": "apps/v1", "kind": "Deployment"}, "apps/v1", "Deployment")', 'True'],
    ['krmfn.match_gvk({"apiVersion": "apps/v1", "kind": "Deployment"}, "v1", "Deployment")', 'False'],
    [
      '[f({"metadata": {"name": "a", "namespace": "b"}}, x) for f, x in [(krmfn.match_name, "a"), (krmfn.match_namespace, "b"), (krmfn.match_name, "b")]]',
      '[True, True, False]',
    ],
    ['krmfn.match_name({}, ""), krmfn.match_namespace({"metadata": None}, "x")', '(True, False)'],
    [
      'math.ceil(1.2), math.floor(-1.2), math.floor(3), math.round(-2.5), math.sqrt(4), math.pow(2, 3), math.mod(-7, 3)',
      '(2, -2, 3, -3.0, 2.0, 8.0, -1.0)',
    ],
    ['math.pi > 3.14, math.log(8, 2) > 2.99, math.copysign(1, -2.0), math.fabs(-1)', '(True, True, -1.0, 1.0)'],
    ['re.findall("[a-z]+", "ab 1 cd"), re.findall("x", "y")', '(("ab", "cd"), ())'],
    ['re.match("(a)(b)?", "a ab")', '[("a", "a", ""), ("ab", "a", "b")]'],
    [
      're.split(", *", "a, b,c"), re.split(",", "a,b,c", 2), re.split("", "abc")',
      '(("a", "b", "c"), ("a", "b,c"), ("a", "b", "c"))',
    ],
    [
      `re.sub("a(?P<x>b+)", "<$1|\${x}|$$|$9>", "abb c ab"), re.sub("a", "b", "aaa", 2)`,
      '("<bb|bb|$|> c <b|b|$|>", "bba")',
    ],
    [
      'yaml.loads("a: [1, x, 1.0, true, null]\\nb: &x {c: 0x10}\\nd: *x\\n")',
      '{"a": [1, "x", 1.0, True, None], "b": {"c": 16}, "d": {"c": 16}}',
    ],
    ['yaml.dumps({"b": [1, {"c": "yes"}], "a": "1"})', '"a: \\"1\\"\\nb:\\n- 1\\n- c: \\"yes\\"\\n"'],
    ['type(json), type(json.encode), json', '("module", "builtin_function_or_method", <module "json">)'],
  ])('%s', (expression, repr) => {
    expect(evaluate(expression)).toBe(repr);
  });
});

describe('fails', () => {
  test.each([
    ['base64.decode("a")', 'decode: illegal base64 data'],
    ['base64.decode("YQ")', 'decode: illegal base64 data'],
    ['base64.decode("Y Q=")', 'decode: illegal base64 data'],
    ['base64.encode("a", "nope")', 'unsupported encoding format: nope'],
    ['json.decode("{")', 'json.decode: the text is not JSON'],
    ['json.encode(lambda: 1)', 'json.encode: cannot encode function as JSON'],
    ['json.encode({1: 2})', 'json.encode: dict has int key, want string'],
    ['json.encode(float("inf"))', 'json.encode: cannot encode a float that is not finite'],
    ['krmfn.match_name("x", "y")', 'match_name: for parameter 1: got string, want dict'],
    ['math.floor("x")', 'floor: got string, want float or int'],
    ['math.floor(float("nan"))', 'floor: cannot convert NaN to integer'],
    ['math.log(0)', 'log: the logarithm of these numbers is not defined'],
    ['json.nope', 'module has no .nope field or method'],
    ['json.constructor', 'module has no .constructor field or method'],
    ['http.get("http://169.254.169.254/")', 'http cannot be used here: a package renders without the network'],
    ['time.now()', 'time cannot be used here: a package renders the same at any time'],
    ['csv.read_all("a")', 'csv cannot be used here: it is not part of Sluice; an external starlark function has it'],
    ['ZipFile("x")', 'invalid call of non-function (module)'],
  ])('%s', (expression, reason) => {
    expect(reasonOf(expression)).toBe(reason);
  });

  test('for invalid patterns and texts', () => {
    expect(reasonOf('re.findall("(", "x")')).toMatch(/^pattern: /);
    expect(reasonOf('re.findall("a" * 2000, "x")')).toMatch(/at most 2000 parts/);
    expect(reasonOf('yaml.loads("a: [")')).toMatch(/^loads: /);
    const bomb = Array.from({ length: 30 }, (_, at) => `a${at + 1}: &a${at + 1} [*a${at}, *a${at}]`).join('\\n');
    expect(reasonOf(`yaml.loads("a0: &a0 x\\n${bomb}")`)).toMatch(/was stopped/);
    expect(reasonOf('json.decode("[" * 100000 + "]" * 100000)')).toMatch(/nested too deep|levels deep|no JSON/);
  });
});

test('regular expressions take time in proportion to the text', () => {
  expect(evaluate('re.findall("^(a+)+$", "a" * 5000 + "!")')).toBe('()');
});

test('JSON is read as it was written', () => {
  const json = fc.json({ noUnicodeString: false } as never);
  fc.assert(
    fc.property(json, (text) => {
      const literal = JSON.stringify(text).replace(
        /[\u007f-\uffff]/g,
        (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
      );
      fc.pre(!/\\u(?:d[89a-f]|00[89a-f])/i.test(literal) && !/[eE.]/.test(text));
      expect(evaluate(`json.decode(json.encode(json.decode(${literal}))) == json.decode(${literal})`)).toBe('True');
    }),
    { numRuns: runs(100) },
  );
});
