import { describe, expect, test } from 'vitest';
import { type KptfileErrorCode, MAX_CONDITIONS, MAX_GATES, readKptfile } from '../index.ts';

const HEAD = 'apiVersion: kpt.dev/v1\nkind: Kptfile\n';
const MEBIBYTE = 1024 * 1024;

function errorOf(text: string | Uint8Array) {
  const result = readKptfile(text);
  if (result.ok) throw new Error('was read');
  return result.error;
}

function read(text: string | Uint8Array) {
  const result = readKptfile(text);
  if (!result.ok) throw new Error(result.error.message);
  return result.kptfile;
}

describe('what is refused, and where', () => {
  const cases: readonly (readonly [KptfileErrorCode, number | undefined, number | undefined, string, string])[] = [
    ['Syntax', 3, 8, `${HEAD}info: a: b\n`, 'Not valid YAML'],
    // Where nothing closes it: in the last line that has text.
    ['Syntax', 4, 14, `${HEAD}info:\n  keywords: [a\n`, 'Not valid YAML'],
    ['Shape', 3, 8, `${HEAD}info: {{ .Values }}\n`, 'field name'],
    ['MergeConflict', 3, 1, `${HEAD}<<<<<<< HEAD\ninfo: {}\n=======\n>>>>>>> other\n`, 'merge conflict'],
    [
      'MergeConflict',
      3,
      1,
      `${HEAD}<<<<<<< HEAD\ninfo: {}\n=======\n>>>>>>> other\n`.replaceAll('\n', '\r\n'),
      'markers',
    ],
    ['DuplicateKey', 5, 3, `${HEAD}info:\n  site: a\n  site: b\n`, 'the first is on line 4'],
    ['DuplicateKey', 3, 1, `${HEAD}"kind": Kptfile\n`, '"kind"'],
    ['Anchor', 3, 7, `${HEAD}info: &info {}\n`, 'not supported'],
    ['Anchor', 3, 7, `${HEAD}info: *info\n`, 'not supported'],
    ['Anchor', 3, 1, `${HEAD}<<: {a: b}\n`, 'Merge keys'],
    ['Tab', 4, 1, `${HEAD}info:\n\tsite: a\n`, 'spaces only'],
    ['SeveralDocuments', 4, 1, `${HEAD}---\nkind: ConfigMap\n`, 'second YAML document'],
    ['TooLarge', undefined, undefined, `${HEAD}# ${'x'.repeat(MEBIBYTE)}\n`, '262144 bytes'],
    ['TooDeep', 3, 103, `${HEAD}x: ${'['.repeat(200_000)}`, '100 levels'],
    ['Encoding', 3, 7, `${HEAD}info: \u0000`, 'control character'],
    ['NotAKptfile', undefined, undefined, '', 'empty'],
    ['NotAKptfile', undefined, undefined, '# only a comment\n---\n', 'empty'],
    ['NotAKptfile', 1, 1, '- a\n', 'not a mapping'],
    ['NotAKptfile', 1, 1, 'kind: ConfigMap\n', 'kind is ConfigMap'],
    ['NotAKptfile', 2, 1, 'apiVersion: kpt.dev/v1\nkind: KptFile\n', 'must be Kptfile'],
    ['NotAKptfile', 1, 1, 'kind: Kptfile\n', 'apiVersion is missing'],
    ['NotAKptfile', 1, 1, 'apiVersion: krm.dev/v1alpha1\nkind: Kptfile\n', 'apiVersion is krm.dev/v1alpha1'],
    ['UnknownVersion', 1, 1, 'apiVersion: kpt.dev/v2\nkind: Kptfile\n', 'kpt.dev/v2, an unknown version'],
    ['DeprecatedVersion', 2, 1, 'kind: KptFile\napiVersion: kpt.dev/v1alpha1\n', 'kpt fix was removed'],
    ['Shape', 4, 3, `${HEAD}info:\n  keywords: one\n`, 'info.keywords must be a list, but is the text "one"'],
    ['Shape', 3, 1, `${HEAD}pipeline: []\n`, 'pipeline must be a mapping, but is a list'],
    [
      'Shape',
      6,
      9,
      `${HEAD}pipeline:\n  mutators:\n    - configMap:\n        a: {b: c}\n`,
      'configMap["a"] must be text',
    ],
    ['Shape', 5, 7, `${HEAD}info:\n  emails:\n    - [a]\n`, 'info.emails[0] must be text, but is a list'],
    ['Shape', 3, 1, `${HEAD}[a]: b\n`, 'field name'],
    ['Shape', 4, 3, `${HEAD}x:\n  __proto__: {}\n`, '__proto__'],
  ];
  test.each(cases)('%s at %s:%s', (code, line, column, text, message) => {
    const error = errorOf(text);
    expect([error.code, error.line, error.column]).toEqual([code, line, column]);
    expect(error.message).toContain(message);
    const bytes = errorOf(new TextEncoder().encode(text));
    expect(bytes).toEqual(error);
  });

  test('bytes that are not UTF-8', () => {
    expect(errorOf(Uint8Array.of(0x61, 0xff, 0xfe))).toMatchObject({ code: 'Encoding' });
    expect(errorOf(Buffer.from(HEAD, 'utf16le'))).toMatchObject({ code: 'Encoding' });
  });

  test('an old version names the fields of the file that move', () => {
    const { message } = errorOf('apiVersion: kpt.dev/v1alpha1\nkind: Kptfile\npackageMetadata: {}\nopenAPI: {}\n');
    expect(message).toContain('packageMetadata becomes info');
    expect(message).toContain('apply-setters');
    expect(message).not.toContain('dependencies');
    expect(errorOf('apiVersion: kpt.dev/v1alpha2\nkind: Kptfile\n').message).toContain('configPath');
  });
});

describe('hostile input ends in an answer', () => {
  const large = 10 * MEBIBYTE;
  const bomb = `${HEAD}a: &a [x, x]\n${Array.from({ length: 30 }, (_, i) => `b${i}: &b${i} [*a, *a, *a]\n`).join('')}`;
  test.each([
    ['10 MiB in one text', `${HEAD}x: "${'a'.repeat(large)}"`, 'ok'],
    ['10 MiB of blank lines', `${HEAD}x: a${'\n'.repeat(large)}`, 'ok'],
    ['10 MiB in an open quote', `${HEAD}x: "${'a'.repeat(large)}`, 'Syntax'],
    ['a million open brackets', `${HEAD}x: ${'['.repeat(MEBIBYTE)}`, 'TooDeep'],
    ['a million dashes', `${HEAD}x:\n ${'- '.repeat(MEBIBYTE)}`, 'TooDeep'],
    ['a million tags', `${HEAD}x: ${'!t '.repeat(MEBIBYTE)}`, 'Syntax'],
    ['nested tags', `${HEAD}x:\n${Array.from({ length: 80 }, (_, i) => `${' '.repeat(i + 1)}- !t\n`).join('')}`, 'ok'],
    ['aliases that would expand to 2^30 items', bomb, 'Anchor'],
    ['many thousand documents', 'a: b\n---\n'.repeat(MEBIBYTE / 32), 'SeveralDocuments'],
  ] as const)('%s', (_, text, expected) => {
    const result = readKptfile(text, { maxSize: 2 * large });
    expect(result.ok ? 'ok' : result.error.code).toBe(expected);
  });

  test('10 MiB are refused unread unless the limit is raised', () => {
    expect(errorOf(`${HEAD}# ${'a'.repeat(large)}`).code).toBe('TooLarge');
    expect(readKptfile(HEAD, { maxSize: 10 })).toMatchObject({ ok: false, error: { code: 'TooLarge' } });
  });
});

describe('gates and conditions beyond what is allowed', () => {
  const gates = (count: number) =>
    `info:\n  readinessGates:\n${Array.from({ length: count }, (_, i) => `  - conditionType: t${i}\n`).join('')}`;
  const conditions = (count: number) =>
    `status:\n  conditions:\n${Array.from({ length: count }, (_, i) => `  - type: t${i}\n`).join('')}`;

  test('are a problem with a place', () => {
    expect(read(HEAD + gates(MAX_GATES) + conditions(MAX_CONDITIONS)).status?.conditions).toHaveLength(500);
    expect(errorOf(HEAD + gates(501))).toEqual({
      ...{ code: 'TooMany', path: 'info.readinessGates', line: 4, column: 3 },
      message:
        'info.readinessGates has 501 readiness gates; at most 500 are allowed. Remove those that are not needed.',
    });
    expect(errorOf(HEAD + conditions(9000))).toMatchObject({ code: 'TooMany', path: 'status.conditions', line: 4 });
    const labels = Array.from({ length: 6000 }, (_, i) => `  l${i}: a\n`).join('');
    expect(errorOf(`${HEAD}metadata:\n labels:\n${labels}`).message).toContain('values and field names, at most 10000');
  });
});

describe('what is accepted', () => {
  test('scalars in text fields are read as their text, as by kpt', () => {
    const { pipeline } = read(
      `${HEAD}pipeline:\n  mutators:\n  - configMap: {a: 080, b: true, c: 1.10, d: 2020-01-01, e: ~, f: "null", g: yes, 5: x}\n`,
    );
    expect(pipeline?.mutators?.[0]?.configMap).toEqual({
      a: '080',
      b: 'true',
      c: '1.10',
      d: '2020-01-01',
      e: '',
      f: 'null',
      g: 'yes',
      5: 'x',
    });
  });

  test('an empty field counts as absent, empty braces do not', () => {
    expect(read(`${HEAD}info:\nstatus: {}\npipeline: ~\nmetadata: # kpt-merge: /name\n  name: a\n`)).toEqual({
      apiVersion: 'kpt.dev/v1',
      kind: 'Kptfile',
      status: {},
      metadata: { name: 'a' },
    });
  });

  test('unknown fields are kept, and numbers that JavaScript would change stay text', () => {
    const text = `${HEAD}extra: {a: 1, b: 1.10, c: 12345678901234567890, d: true, e: null, f: [x, {g: 0x1F}], h: -0}\n`;
    expect(read(text)).toMatchObject({
      extra: { a: 1, b: '1.10', c: '12345678901234567890', d: true, e: null, f: ['x', { g: '0x1F' }], h: '-0' },
    });
  });

  test('CRLF, a byte order mark, document markers, JSON and tags', () => {
    expect(read(`\uFEFF---\r\n${HEAD.replaceAll('\n', '\r\n')}...\r\n`).kind).toBe('Kptfile');
    expect(read(`${HEAD}---\n`).kind).toBe('Kptfile');
    expect(read('{"apiVersion": "kpt.dev/v1", "kind": "Kptfile", "metadata": {"name": "a"}}').metadata?.name).toBe('a');
    expect(read(`${HEAD}metadata: {name: !!str 1}\n`).metadata?.name).toBe('1');
    expect(errorOf(`\uFEFF${HEAD}\n\uFEFFx`).code).toBe('Syntax');
  });

  test('a mapping with names of object methods', () => {
    const labels = read(`${HEAD}metadata:\n  labels: {constructor: a, toString: b}\n`).metadata?.labels;
    expect(Object.entries(labels ?? {})).toEqual([
      ['constructor', 'a'],
      ['toString', 'b'],
    ]);
  });
});
