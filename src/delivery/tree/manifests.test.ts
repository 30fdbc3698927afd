import { describe, expect, test } from 'vitest';
import { manifestsOf } from './manifests.ts';

function run(files: Record<string, string | Uint8Array>): Record<string, string> | string {
  const data = Object.entries(files).map(([path, text]): [string, Uint8Array] => [
    path,
    typeof text === 'string' ? new TextEncoder().encode(text) : text,
  ]);
  const { manifests, refused } = manifestsOf(new Map(data));
  if (manifests === undefined) return `${refused.reason}: ${refused.message}`;
  return Object.fromEntries([...manifests.files].map(([path, bytes]) => [path, new TextDecoder().decode(bytes)]));
}

const configMap = (name: string, more = ''): string =>
  `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n${more}`;

describe('the delivered objects', () => {
  test('one file for each source file, documents in order, without comments and empty documents', () => {
    const text = `# licence\n${configMap('b', 'data: {a: b} # why\n')}---\n---\n# nothing\n---\n${configMap('a')}`;
    expect(run({ 'x/y.yml': text, 'README.md': 'hello' })).toEqual({
      'x/y.yml': `${configMap('b', 'data:\n  a: b\n')}---\n${configMap('a')}`,
    });
  });

  test('local objects, configuration of kpt and functions, and plain YAML are left out', () => {
    const files = {
      Kptfile:
        'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: p}\npipeline:\n  mutators:\n' +
        '  - {image: a, configPath: ./labels.yaml}\n  validators:\n  - {image: b, configPath: sub/check.yaml}\n',
      'nested/Kptfile': 'pipeline: {mutators: [{image: a, configPath: fn.yaml}]}\n',
      'nested/fn.yaml': configMap('nested-config'),
      'nested/real.yaml': configMap('nested'),
      'labels.yaml': configMap('labels'),
      'sub/check.yaml': configMap('check'),
      'local.yaml': configMap('local', '  annotations: {config.kubernetes.io/local-config: "true"}\n'),
      'package-context.yaml': configMap('kptfile.kpt.dev'),
      'starlark.yaml': 'apiVersion: fn.kpt.dev/v1alpha1\nkind: StarlarkRun\nmetadata: {name: s}\n',
      'resourcegroup.yaml': 'apiVersion: kpt.dev/v1alpha1\nkind: ResourceGroup\nmetadata: {name: r}\n',
      'values.yaml': 'replicas: 3\n',
      'list.yaml': '- a\n- b\n',
      'package.json': '{"name": "x"}',
      'kustomization.yaml': 'metadata: {annotations: {config.kubernetes.io/local-config: "true"}}\nresources: [a]\n',
    };
    expect(run(files)).toEqual({ 'nested/real.yaml': configMap('nested') });
  });

  test('lists are replaced by their items, which are checked one by one', () => {
    const list = `apiVersion: v1\nkind: List\nitems:\n- ${configMap('a').trim().replaceAll('\n', '\n  ')}\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: b, annotations: {config.kubernetes.io/local-config: 'true'}}}\n`;
    expect(run({ 'l.yaml': list })).toEqual({ 'l.yaml': configMap('a') });
    expect(run({ 'l.yaml': 'apiVersion: v1\nkind: List\nitems: []\n' })).toEqual({});
  });

  test('JSON becomes YAML beside its name', () => {
    const json =
      '{"apiVersion": "v1", "kind": "ConfigMap",\n "metadata": {"name": "j"}, "data": {"d": "1", "u": "\\u00e9\\n"}}';
    expect(run({ 'j.json': json })).toEqual({ 'j.json.yaml': configMap('j', 'data:\n  d: "1"\n  u: |\n    é\n') });
    expect(run({ 'j.json': json, 'j.json.yaml': configMap('k') })).toContain('InvalidPath: j.json is delivered as');
  });
});

describe('the written form', () => {
  const data = (lines: string): unknown => run({ 'a.yaml': configMap('a', `data:\n${lines}`) });
  const same = (lines: string): void => expect(data(lines)).toEqual({ 'a.yaml': configMap('a', `data:\n${lines}`) });

  test('strings that some reader parses as another type stay quoted', () => {
    same(
      [
        'yes',
        'on',
        'y',
        'No',
        'null',
        '~',
        '010',
        '1e3',
        '1:30',
        '0x1f',
        '.inf',
        '2026-01-01',
        '',
        ' a',
        '=',
        '<<',
        '*a',
      ]
        .map((text, place) => `  k${place}: ${JSON.stringify(text)}\n`)
        .join(''),
    );
  });

  test('plain scalars keep their text, long numbers too', () => {
    same(
      ['yes', '010', '1e3', '12345678901234567890', '1.10', 'null', 'a b', '0o17', 'ghcr.io/a/b:1.2']
        .map((text, place) => `  k${place}: ${text}\n`)
        .join(''),
    );
    expect(data('  a: ~\n  b:\n  c: !!str 1\n  d: !!int 1\n  on: x\n  "off": x\n')).toEqual({
      'a.yaml': configMap('a', 'data:\n  a: ~\n  b: null\n  c: "1"\n  d: 1\n  on: x\n  "off": x\n'),
    });
  });

  test('texts of several lines keep every space and line feed', () => {
    same(
      '  a: |\n    x\n      y \n\n    z\n  b: |-\n    #!/bin/sh\n    echo\n  c: "x\\n\\n"\n  d: " x\\ny"\n  e: "x\\r\\ny"\n',
    );
    expect(data('  a: >\n    folded\n    text\n  b: plain\n    text\n')).toEqual({
      'a.yaml': configMap('a', 'data:\n  a: |\n    folded text\n  b: plain text\n'),
    });
  });

  test('line breaks that only some readers recognize cannot inject a key', () => {
    same('  a: "x\\u2028kind: Secret"\n  b: "\\u0085"\n');
    expect(data('  a: x # \u2028kind: Secret\n')).toEqual({ 'a.yaml': configMap('a', 'data:\n  a: x\n') });
    expect(data('  a: x\u0085kind: Secret\n')).toContain('InvalidManifest: a.yaml:6: ');
  });

  test('aliases and merge keys are expanded; sequences are indented like their key', () => {
    const text = 'base: &b\n  x: 1\n  y: [a, {b: c, d: []}, [e, f]]\nuse:\n  <<: *b\n  x: 2\nagain: *b\n';
    const y = 'y:\n  - a\n  - b: c\n    d: []\n  - - e\n    - f\n';
    expect(run({ 'a.yaml': configMap('a', text) })).toEqual({
      'a.yaml': configMap('a', `base:\n  x: 1\n  ${y}use:\n  x: 2\n  ${y}again:\n  x: 1\n  ${y}`),
    });
  });

  test('CRLF, a byte order mark and a missing final line feed make no difference', () => {
    const text = configMap('a', 'data:\n  a: |\n    x\n    y');
    const other = new TextEncoder().encode(`\ufeff${text.replaceAll('\n', '\r\n')}\r\n`);
    expect(run({ 'a.yaml': other })).toEqual({ 'a.yaml': configMap('a', 'data:\n  a: |\n    x\n    y\n') });
  });
});

describe('refusals', () => {
  test.each([
    ['a: [', 'a.yaml:1: '],
    [configMap('a', 'data:\n\tx: y\n'), 'a.yaml:6: Tabs'],
    [configMap('a', 'kind: Secret\n'), 'a.yaml:5: key "kind" is duplicated'],
    [configMap('a', 'data: *nowhere\n'), 'alias *nowhere'],
    [configMap('a', 'data: &x {y: *x}\n'), 'alias *x is used before its anchor or inside it'],
    [configMap('a', 'data: !!binary aGk=\n'), 'a.yaml:5: tag tag:yaml.org,2002:binary is not supported'],
    [configMap('a', 'data: {? [a] : b}\n'), 'a key is not a scalar'],
    [configMap('a', `${'k'.repeat(1001)}: b\n`), 'a key is longer than'],
    [configMap('a', '"\\ud800": b\n'), 'half of a surrogate'],
    [`%YAML 1.1\n---\n${configMap('a')}`, '%YAML 1.1 is not supported'],
    ['apiVersion: v1\nkind: ConfigMap\n', 'a.yaml:1: ConfigMap has no metadata.name'],
    ['kind: ConfigMap\nmetadata: {name: a}\n', 'the object has no apiVersion'],
    ['apiVersion: v1\nmetadata: {name: a}\n', 'the object has no kind'],
    ['apiVersion: v1\nkind: List\nitems: [{a: b}]\n', 'an item of the list has no apiVersion or kind'],
    [`${configMap('a')}---\n${configMap('a')}`, 'DuplicateObject: a.yaml:6: ConfigMap a is also at a.yaml:1'],
  ])('%j', (text, message) => {
    expect(run({ 'a.yaml': text })).toContain(message);
  });

  test('names package files by path', () => {
    expect(run({ 'x/a.yaml': new Uint8Array([0xff]) })).toBe('InvalidManifest: x/a.yaml: is not valid UTF-8');
    expect(run({ 'a.yaml': configMap('a'), 'b/a.yaml': configMap('a', '  namespace: default\n') })).toContain(
      'ConfigMap default/a is also at a.yaml:1',
    );
  });

  test.each(['kustomization.yaml', 'kustomization.yml', 'base/Kustomization', 'chart/Chart.yaml'])('%s', (path) => {
    expect(run({ [path]: 'resources: [a.yaml]\n', 'a.yaml': configMap('a') })).toContain(`OwnBuildFile: ${path}: `);
  });

  test.each([
    '../a.yaml',
    '/etc/a.yaml',
    'x/../a.yaml',
    'a//b.yaml',
    '.git/config',
    'x/.GIT/hooks/a',
    '.git./a',
    '.g\u200cit/a',
    'GIT~1/a',
    '.git::$INDEX_ALLOCATION/a',
    'a\nb.yaml',
    'a\u001b[31m.yaml',
    'a\\b.yaml',
  ])('path %j', (path) => {
    expect(run({ [path]: configMap('a') })).toContain('InvalidPath: path ');
  });

  test.each([
    ['aliases of aliases', bomb(), 'more than 4194304 characters'],
    ['lists of lists by alias', listBomb(), 'too many objects in one package'],
    ['lists in lists', `---\n${deepList(9)}\n`, 'lists nested too deeply'],
    ['deep nesting', `a: ${'['.repeat(100_000)}`, 'nested too deeply'],
    ['deep mappings', `a: ${'{a: '.repeat(300)}x${'}'.repeat(300)}`, 'nested deeper than 200 levels'],
    ['depth by aliases', deepAliases(), 'nested too deeply'],
    ['size', `a: "${'x'.repeat(5 * 1024 * 1024)}"`, 'the YAML of the package is larger'],
  ])('bombs: %s', (_name, text, message) => {
    const result = run({ 'a.yaml': configMap('a', text) });
    expect(result).toMatch(/^(?:TooLarge|InvalidManifest): a\.yaml/);
    expect(result).toContain(message);
  });

  function bomb(): string {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let n = 1; n < 20; n++) lines.push(`a${n}: &a${n} [${new Array(10).fill(`*a${n - 1}`).join(', ')}]`);
    return `${lines.join('\n')}\n`;
  }

  function deepAliases(): string {
    const lines = [`a0: &a0 ${'['.repeat(150)}x${']'.repeat(150)}`];
    for (let n = 1; n < 100; n++) lines.push(`a${n}: &a${n} ${'['.repeat(150)}*a${n - 1}${']'.repeat(150)}`);
    return `${lines.join('\n')}\n`;
  }

  function listBomb(): string {
    const lines = ['anchors:', '- &l0 {apiVersion: v1, kind: List, items: []}'];
    for (let n = 1; n < 7; n++)
      lines.push(`- &l${n} {apiVersion: v1, kind: List, items: [${new Array(10).fill(`*l${n - 1}`).join(', ')}]}`);
    return `---\napiVersion: v1\nkind: List\n${lines.join('\n')}\nitems: [*l6, *l6]\n`;
  }

  function deepList(depth: number): string {
    return depth === 0 ? '' : `{apiVersion: v1, kind: List, items: [${deepList(depth - 1)}]}`;
  }
});

/** As sops 3.9 writes them. */
const ENCRYPTED =
  'ENC[AES256_GCM,data:3Yz2XA==,iv:Nm0yVjVpc2Nyc1R2VnV5S1ZqQ2R0c2h6c0hQeXJ5aXo=,tag:Gb4KrXL7pW4mPq0wQm0x2Q==,type:str]';
const SOPS = `sops:
  age: [{recipient: age1q, enc: "-----BEGIN AGE ENCRYPTED FILE-----"}]
  lastmodified: "2026-11-01T00:00:00Z"
  mac: ${ENCRYPTED}
  version: 3.9.0
`;

describe('Secrets', () => {
  const secrets = (text: string): readonly string[] | undefined =>
    manifestsOf(new Map([['s.yaml', new TextEncoder().encode(text)]])).manifests?.openSecrets;
  const secret = (more: string): string =>
    `apiVersion: v1\nkind: Secret\nmetadata:\n  name: s\n  namespace: n\n${more}`;

  test.each([
    ['data', secret('data: {a: aGk=}\n'), true],
    ['stringData', secret('stringData: {a: hi}\n'), true],
    [
      'in a list',
      `apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: n}, data: {a: b}}\n`,
      true,
    ],
    ['half encrypted', secret(`data: {a: "${ENCRYPTED}", b: open}\n${SOPS}`), true],
    ['encrypted without a sops block', secret(`data: {a: "${ENCRYPTED}"}\n`), true],
    ['plain text in brackets', secret(`data: {a: "ENC[plain]"}\n${SOPS}`), true],
    ['an unknown cipher', secret(`data: {a: "${ENCRYPTED.replace('AES256_GCM', 'ROT13')}"}\n${SOPS}`), true],
    ['a tag that is too short', secret(`data: {a: "${ENCRYPTED.replace(/tag:[^,]+/, 'tag:AAAA')}"}\n${SOPS}`), true],
    ['text around it', secret(`stringData: {a: "password ${ENCRYPTED}"}\n${SOPS}`), true],
    ['an empty block', secret(`data: {a: "${ENCRYPTED}"}\nsops: {mac: x}\n`), true],
    [
      'a block without recipients',
      secret(`data: {a: "${ENCRYPTED}"}\n${SOPS.replace(/age: .*\n/, 'age: []\n')}`),
      true,
    ],
    ['a block with a plain code', secret(`data: {a: "${ENCRYPTED}"}\n${SOPS.replace(/mac: .*\n/, 'mac: x\n')}`), true],
    ['data that is no mapping', secret('data: hi\n'), true],
    ['merged in', `x: &x {data: {a: b}}\n<<: *x\n${secret('')}`, true],
    ['encrypted', secret(`data: {a: "${ENCRYPTED}", b: ""}\n${SOPS}`), false],
    [
      'encrypted for groups',
      secret(`data: {a: "${ENCRYPTED}"}\n${SOPS.replace(/age: .*\n/, `key_groups: [{pgp: [{fp: A, enc: B}]}]\n`)}`),
      false,
    ],
    ['empty', secret('type: kubernetes.io/service-account-token\ndata: {}\n'), false],
    ['sealed', 'apiVersion: bitnami.com/v1alpha1\nkind: SealedSecret\nmetadata: {name: s}\nspec: {}\n', false],
    ['external', 'apiVersion: external-secrets.io/v1\nkind: ExternalSecret\nmetadata: {name: s}\nspec: {}\n', false],
  ])('%s', (_name, text, isOpen) => {
    expect(secrets(text)).toEqual(isOpen ? [expect.stringMatching(/^Secret n\/s at s\.yaml:\d+$/)] : []);
  });
});

test('merge keys cost what their distinct sources have, and beyond a budget the package is refused', () => {
  const keys = Array.from({ length: 1000 }, (_, index) => `  k${index}: v`).join('\n');
  const sources = (count: number) => Array.from({ length: count }, () => '*a').join(',');
  const map = (count: number) =>
    `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: &a\n${keys}\nx: {<<: [${sources(count)}]}\n`;
  expect(run({ 'a.yaml': map(1000) })).toHaveProperty(['a.yaml']);
  const distinct = `${map(1)}${Array.from({ length: 110 }, (_, index) => `x${index}: {<<: *a}`).join('\n')}\n`;
  expect(run({ 'a.yaml': distinct })).toBe(
    'InvalidManifest: a.yaml:1104: merge keys "<<" copy more than 100000 entries',
  );
});

test('an unexpected error is a refusal of this package alone', () => {
  class Broken extends Map<string, Uint8Array> {
    override get(): never {
      throw new RangeError('Maximum call stack size exceeded');
    }
  }
  expect(manifestsOf(new Broken([['a.yaml', new Uint8Array()]])).refused).toEqual({
    reason: 'InvalidManifest',
    message: 'cannot make manifests of the package: Maximum call stack size exceeded',
  });
});
