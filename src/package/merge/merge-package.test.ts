import { describe, expect, test } from 'vitest';
import { mergePackage } from './merge-package.ts';
import { overwrittenTexts } from './overwritten.ts';
import type { PackageFiles } from './package-files.ts';

type Texts = Readonly<Record<string, string>>;

function files(texts: Texts): PackageFiles {
  return new Map(Object.entries(texts).map(([path, text]) => [path, { data: Buffer.from(text) }]));
}

function merge(local: Texts, original: Texts, updated: Texts): Texts {
  return Object.fromEntries(
    [...mergePackage(files(local), files(original), files(updated)).files].map(([path, { data }]) => [
      path,
      data.toString('utf8'),
    ]),
  );
}

/** Merges one resource of which only `spec` is given. */
function mergeSpec(
  local: string,
  original: string,
  updated: string,
  head = 'apiVersion: apps/v1\nkind: Deployment',
): string {
  const file = (spec: string) => ({ 'a.yaml': `${head}\nmetadata:\n  name: a\nspec:\n${spec}` });
  const merged = merge(file(local), file(original), file(updated))['a.yaml'] ?? '';
  return merged.slice(merged.indexOf('spec:\n') + 'spec:\n'.length);
}

function configMap(name: string, value: string, more = ''): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:${more}\n  name: ${name}\ndata:\n  key: ${value}\n`;
}

describe('overwritten fields', () => {
  const lost = (local: Texts, original: Texts, updated: Texts) =>
    mergePackage(files(local), files(original), files(updated)).overwritten;
  const resource = (kind: string, data: string): Texts => ({
    'a.yaml': `apiVersion: v1\nkind: ${kind}\nmetadata:\n  name: a\ndata:\n${data}`,
  });

  test('have the local value, in one line and short', () => {
    const sides = [' 1\n', ' x\n  c: 1\n', ' 2\n'].map((rest) => resource('ConfigMap', `  a.b/c:${rest}`)) as [
      Texts,
      Texts,
      Texts,
    ];
    const [first, original, updated] = sides;
    const common = { file: 'a.yaml', resource: 'ConfigMap/a', field: 'data["a.b/c"]' };
    expect(lost(first, original, updated)).toEqual({ fields: [{ ...common, value: '1' }], total: 1 });
    const long = resource('ConfigMap', `  a.b/c: |\n    two\n    ${'lines '.repeat(20)}\n`);
    expect(lost(long, original, updated).fields[0]?.value).toBe(`"two\\n${'lines '.repeat(8)}lin...`.slice(0, 60));
    const removed = resource('ConfigMap', '  c: 1\n');
    expect(lost(removed, original, updated).fields).toEqual([{ ...common, isRemoved: true }]);
  });

  test('have no value of a Secret, nor one that looks like a secret', () => {
    const side = (kind: string, key: string, value: string) => resource(kind, `  ${key}: ${value}\n`);
    const shownOf = (kind: string, key: string, value: string) => {
      const { fields } = lost(side(kind, key, value), side(kind, key, 'one'), side(kind, key, 'two'));
      expect(fields).toMatchObject([{ field: `data.${key}` }]);
      return fields[0]?.value;
    };
    expect(shownOf('ConfigMap', 'key', 'mine')).toBe('mine');
    expect(shownOf('Secret', 'key', 'mine')).toBeUndefined();
    expect(shownOf('SecretList', 'key', 'mine')).toBeUndefined();
    expect(shownOf('ConfigMap', 'db-password', 'mine')).toBeUndefined();
    expect(shownOf('ConfigMap', 'key', '-----BEGIN PRIVATE KEY-----')).toBeUndefined();
    expect(shownOf('ConfigMap', 'key', '{password: mine}')).toBeUndefined();
  });

  test('are bounded, and all counted', () => {
    const side = (value: string) =>
      resource('ConfigMap', Array.from({ length: 150 }, (_, at) => `  k${at}: ${value}\n`).join(''));
    const overwritten = lost(side('mine'), side('one'), side('two'));
    expect([overwritten.fields.length, overwritten.total]).toEqual([100, 150]);
    const texts = overwrittenTexts(overwritten);
    expect(texts).toHaveLength(11);
    expect(texts[0]).toBe('ConfigMap/a data.k0 (was mine) in a.yaml');
    expect(texts.at(-1)).toBe('140 more fields');
    // Of a resource that stays as it is locally, nothing is overwritten.
    const large = `  large: ${'x'.repeat(256 * 1024)}\n`;
    const [local, original, updated] = ['mine', 'one', 'two'].map((value) =>
      resource('ConfigMap', `${large}  a: ${value}\n`),
    ) as [Texts, Texts, Texts];
    expect(lost(local, original, updated)).toEqual({ fields: [], total: 0 });
  });
});

describe('fields', () => {
  const cases: [what: string, local: string, original: string, updated: string, merged: string][] = [
    ['changed upstream', '  a: 1\n', '  a: 1\n', '  a: 2\n', '  a: 2\n'],
    ['changed locally', '  a: 3\n', '  a: 1\n', '  a: 1\n', '  a: 3\n'],
    ['changed on both sides: upstream wins', '  a: 3\n', '  a: 1\n', '  a: 2\n', '  a: 2\n'],
    ['added on both sides', '  a: 1\n  x: 1\n', '  a: 1\n', '  a: 1\n  y: 1\n', '  a: 1\n  y: 1\n  x: 1\n'],
    ['deleted upstream, changed locally', '  a: 3\n  b: 1\n', '  a: 1\n  b: 1\n', '  b: 1\n', '  b: 1\n'],
    ['deleted locally, not changed upstream', '  b: 1\n', '  a: 1\n  b: 1\n', '  a: 1\n  b: 2\n', '  b: 2\n'],
    [
      'a mapping deleted upstream keeps what was added',
      '  m:\n    l: 1\n    a: 1\n',
      '  m:\n    a: 1\n',
      '  b: 1\n',
      '  m:\n    l: 1\n  b: 1\n',
    ],
    [
      'comments, order, blanks and quotes are local',
      '  # why\n  b: "x" # here\n\n  a: 1\n',
      '  a: 1\n  b: x\n',
      '  a: 2\n  b: x\n',
      '  # why\n  b: "x" # here\n\n  a: 2\n',
    ],
    [
      'texts that look like numbers are not read as such',
      '  a: 0755\n  b: 1.10\n  c: on\n  l: 1\n',
      '  a: 0755\n  b: 1.1\n  c: on\n',
      '  a: 0644\n  b: 1.1\n  c: off\n',
      '  a: 0644\n  b: 1.10\n  c: off\n  l: 1\n',
    ],
    ['a text is not the number that it looks like', '  a: "1"\n  l: 1\n', '  a: "1"\n', '  a: 1\n', '  a: 1\n  l: 1\n'],
    ['another kind of value', '  a:\n    b: 1\n    l: 1\n', '  a:\n    b: 1\n', '  a: 2\n', '  a: 2\n'],
    ['a list without keys is replaced', '  l: [x, mine]\n', '  l: [x]\n', '  l: [x, y]\n', '  l: [x, y]\n'],
    ['or stays', '  a: 1\n  l: [x, mine]\n', '  a: 1\n  l: [x]\n', '  a: 2\n  l: [x]\n', '  a: 2\n  l: [x, mine]\n'],
    [
      'a key that names the prototype',
      '  a: 1\n  __proto__: 1\n',
      '  a: 1\n',
      '  a: 2\n  constructor: 1\n',
      '  a: 2\n  constructor: 1\n  __proto__: 1\n',
    ],
  ];
  test.each(cases)('%s', (_what, local, original, updated, merged) => {
    expect(mergeSpec(local, original, updated)).toBe(merged);
  });
});

describe('lists with keys', () => {
  const container = (name: string, image: string, more = '') => `    - name: ${name}\n      image: ${image}\n${more}`;
  const list = (...items: string[]) => `  containers:\n${items.join('')}`;

  test('merge entry by entry: changed, added on both sides in upstream order, deleted on either side', () => {
    const merged = mergeSpec(
      list(container('mine', 'm:1'), container('app', 'a:1', '      tty: true\n'), container('log', 'l:1')),
      list(container('app', 'a:1'), container('log', 'l:1'), container('gone', 'g:1')),
      list(container('app', 'a:2'), container('new', 'n:1'), container('gone', 'g:2')),
    );
    expect(merged).toBe(
      list(container('mine', 'm:1'), container('app', 'a:2', '      tty: true\n'), container('new', 'n:1')),
    );
  });

  test('an entry that upstream deleted stays with local additions', () => {
    const merged = mergeSpec(
      list(container('app', 'a:1'), container('log', 'l:1', '      tty: true\n')),
      list(container('app', 'a:1'), container('log', 'l:1')),
      list(container('app', 'a:1')),
    );
    expect(merged).toBe(list(container('app', 'a:1'), '    - name: log\n      tty: true\n'));
  });

  test('ports by number and protocol, which is TCP by default', () => {
    const service = 'apiVersion: v1\nkind: Service';
    const merged = mergeSpec(
      '  ports:\n    - port: 80\n      protocol: TCP\n      nodePort: 30080\n    - port: 80\n      protocol: UDP\n',
      '  ports:\n    - port: 80\n      targetPort: 1\n    - port: 80\n      protocol: UDP\n',
      '  ports:\n    - port: 80\n      targetPort: 2\n    - port: 80\n      protocol: UDP\n',
      service,
    );
    expect(merged).toContain('nodePort: 30080');
    expect(merged).toContain('targetPort: 2');
    expect(merged.match(/port: 80/g)).toHaveLength(2);
  });

  test('two entries of one name, and lists of custom resources, are replaced as a whole', () => {
    const twice = list(container('app', 'a:1'), container('app', 'a:1'));
    const updated = list(container('app', 'a:2'));
    expect(mergeSpec(`  x: 1\n${twice}`, twice, updated)).toBe(`  x: 1\n${updated}`);
    const own = list(container('app', 'a:1'), container('mine', 'm:1'));
    expect(mergeSpec(own, list(container('app', 'a:1')), updated, 'apiVersion: example.com/v1\nkind: Shop')).toBe(
      updated,
    );
  });
});

describe('resources', () => {
  test('added, deleted and moved on either side', () => {
    const original = {
      'a.yaml': [configMap('one', '1'), configMap('two', '1'), configMap('three', '1')].join('---\n'),
    };
    const updated = {
      'a.yaml': configMap('one', '2'),
      'b.yaml': configMap('three', '1'),
      'new.yaml': configMap('new', '1'),
    };
    const local = {
      'a.yaml': [configMap('one', '1'), configMap('two', 'mine'), configMap('three', '1')].join('---\n'),
      'own.yaml': configMap('own', '1'),
    };
    expect(merge(local, original, updated)).toEqual({
      'a.yaml': [configMap('one', '2'), configMap('two', 'mine')].join('---\n'),
      'b.yaml': configMap('three', '1'),
      'new.yaml': configMap('new', '1'),
      'own.yaml': configMap('own', '1'),
    });
    expect(mergePackage(files(local), files(original), files(updated)).keptLocal).toEqual(['a.yaml']);
    // Deleted locally stays deleted; moved locally is found.
    const moved = { 'mine.yaml': configMap('one', '1', ' # kpt-merge: /one').replace('name: one', 'name: renamed') };
    expect(merge(moved, original, updated)).toEqual({
      'mine.yaml': moved['mine.yaml'].replace('key: 1', 'key: 2'),
      'new.yaml': configMap('new', '1'),
    });
  });

  test('of one name in packages within the package, or in several files, are distinguished', () => {
    const tree = (one: string, two: string, three: string) => ({
      'a.yaml': configMap('x', one),
      'b.yaml': configMap('x', two),
      'sub/Kptfile': 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: sub\n',
      'sub/a.yaml': configMap('x', three),
    });
    expect(merge(tree('mine', '1', '1'), tree('1', '1', '1'), tree('1', '2', '3'))).toEqual(tree('mine', '2', '3'));
  });

  test('files that hold none merge as a whole, whatever they hold', () => {
    const bomb = `a: &a [x]\nb: &b [${'*a,'.repeat(9)}*a]\n`;
    const deep = `a: ${'['.repeat(5000)}${']'.repeat(5000)}\n`;
    for (const text of ['{{ template }}: {\n', 'a: 1\na: 2\n', '- 1\n', bomb, deep, 'key: value\n', '\u0000']) {
      const other = `${text}# more\n`;
      expect(merge({ 'a.yaml': text }, { 'a.yaml': text }, { 'a.yaml': other })).toEqual({ 'a.yaml': other });
      expect(merge({ 'a.yaml': other }, { 'a.yaml': text }, { 'a.yaml': configMap('a', '1') })).toEqual({
        'a.yaml': other,
      });
      expect(merge({}, { 'a.yaml': text }, { 'a.yaml': other })).toEqual({});
      expect(merge({ 'a.yaml': text }, { 'a.yaml': text }, {})).toEqual({});
    }
  });

  test('line ends stay', () => {
    const crlf = (text: string) => text.replaceAll('\n', '\r\n');
    const local = crlf(`${configMap('a', '1')}  own: 1\n`);
    const merged = merge({ 'a.yaml': local }, { 'a.yaml': configMap('a', '1') }, { 'a.yaml': configMap('a', '2') });
    expect(merged).toEqual({ 'a.yaml': local.replace('key: 1', 'key: 2') });
  });
});

test('a Kptfile merges functions by name and gates by type; name, upstream and status are its own', () => {
  const kptfile = (name: string, image: string, more: { gate?: string; own?: string; status?: string } = {}) =>
    `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: ${name}
info:
  readinessGates:
    - conditionType: tested
${more.gate ?? ''}pipeline:
  mutators:
    - image: set-labels:v1
      name: labels
${more.own ?? ''}    - image: ${image}
      name: namespace
status:
  conditions:
    - type: tested
      status: "${more.status ?? 'True'}"
`;
  const own = '    - image: mine:v1\n      name: mine\n';
  const mine = '    - conditionType: mine\n';
  const merged = merge(
    { Kptfile: kptfile('edge', 'ns:v1', { own, gate: mine, status: 'False' }) },
    { Kptfile: kptfile('upf', 'ns:v1') },
    { Kptfile: kptfile('upf-new', 'ns:v2', { gate: '    - conditionType: scanned\n' }) },
  );
  const gates = `    - conditionType: scanned\n${mine}`;
  expect(merged).toEqual({ Kptfile: kptfile('edge', 'ns:v2', { own, gate: gates, status: 'False' }) });
  expect(merge(merged, {}, {})).toEqual(merged);
});
