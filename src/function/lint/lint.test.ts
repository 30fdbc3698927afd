import { describe, expect, test } from 'vitest';
import type { ResultItem } from '../../../kptfile-schema/index.ts';
import { lintFiles } from './lint-files.ts';
import { locateResults, placeIn } from './locate-results.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\n';
const FILE = `# two resources
apiVersion: v1
kind: ConfigMap
metadata:
  name: first
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 200
  template:
    spec:
      containers:
        - name: a
        - name: b
          image: b:latest
`;
const FILES = new Map([
  ['Kptfile', KPTFILE],
  ['app/web.yaml', FILE],
]);

describe('locateResults', () => {
  const place = (result: ResultItem) => {
    const [found] = locateResults([{ image: 'example.com/fn/check:v1.2@sha256:ab', results: [result] }], FILES, 10);
    return `${found?.file}:${found?.line}:${found?.column} ${found?.severity} ${found?.code}: ${found?.message}`;
  };
  const file = { path: 'app/web.yaml', index: 1 };

  test.each([
    ['spec.replicas', '12:3'],
    ['spec.template.spec.containers[1].image', '18:11'],
    ['spec.template.spec.containers.1.image', '18:11'],
    ['spec.template.nowhere', '13:3'],
    ['nowhere', '7:1'],
    ['', '7:1'],
  ])('of the field %j it is %s', (path, at) => {
    const field = path === '' ? {} : { field: { path } };
    const prefix = path === '' ? '' : `${path}: `;
    expect(place({ message: 'm', severity: 'error', file, ...field })).toBe(
      `app/web.yaml:${at} error check: ${prefix}m`,
    );
  });

  test('is found by the resource where no file is named, and is the Kptfile where nothing is', () => {
    const resourceRef = { kind: 'Deployment', name: 'web' };
    expect(place({ message: 'm', severity: 'warning', resourceRef })).toBe('app/web.yaml:7:1 warning check: m');
    expect(place({ message: 'm' })).toBe('Kptfile:1:1 notice check: m');
    expect(place({ message: 'm', file: { path: '../../etc/passwd' } })).toBe('Kptfile:1:1 notice check: m');
  });

  test('is bounded, and reads no file above its bound', () => {
    const results = Array.from({ length: 50 }, () => ({ message: 'm', file, field: { path: 'spec.replicas' } }));
    expect(locateResults([{ results }], FILES, 7)).toHaveLength(7);
    const large = new Map([['app/web.yaml', `${FILE}# ${'x'.repeat(600_000)}`]]);
    expect(locateResults([{ results }], large, 1)).toMatchObject([{ file: 'app/web.yaml', line: 1 }]);
  });

  test('placeIn finds the place in a message, of a file of the package only', () => {
    expect(placeIn('check: app/web.yaml:14: too many', FILES)).toEqual({ file: 'app/web.yaml', line: 14 });
    expect(placeIn('check: /etc/passwd:14: too many', FILES)).toBeUndefined();
  });
});

describe('lintFiles', () => {
  const codes = (files: Record<string, string>) =>
    lintFiles(new Map(Object.entries({ Kptfile: KPTFILE, ...files }))).map(
      ({ file, line, code }) => `${file}:${line} ${code}`,
    );

  test('names mistakes in Kptfiles, else in YAML', () => {
    expect(codes({ 'a.yaml': 'a: [1\n' })).toEqual(['a.yaml:1 InvalidYaml']);
    expect(codes({ 'nested/Kptfile': `${KPTFILE}foo: 1\n`, 'a.yaml': 'a: [1\n' })).toEqual([
      'nested/Kptfile:5 UnknownField',
    ]);
    expect(codes(Object.fromEntries(Array.from({ length: 30 }, (_, at) => [`${at}.yaml`, 'a: [1\n'])))).toHaveLength(
      21,
    );
  });

  test.each([
    ['greeting: [hello\n', 1, 'Flow sequence in block collection must be sufficiently indented and end with a ]'],
    ['a: {b: c\nd: e\n', 2, 'Flow map in block collection must be sufficiently indented and end with a }'],
    ['{', 1, 'Flow map must end with a }'],
    ['a: "x\nb: c\n', 2, 'Missing closing " quote'],
    ['a: b: c\n', 1, 'bad indentation of a mapping entry'],
    [`${'['.repeat(20_000)}\n`, expect.any(Number), expect.any(String)],
  ])('names what is not closed: %j', (text, line, message) => {
    const [finding] = lintFiles(new Map(Object.entries({ Kptfile: KPTFILE, 'a.yaml': text })));
    expect(finding).toMatchObject({ line, code: 'InvalidYaml' });
    const full = typeof message === 'string' ? `not valid YAML: ${message}` : message;
    expect(finding?.message).toEqual(full);
  });

  test('refuses aliases that expand without end, at the line of the first, and permits those that do not', () => {
    let bomb = 'kind: A\na: &a [x,x,x,x,x,x,x,x,x,x]\n';
    for (const [name, of] of ['ba', 'cb', 'dc', 'ed', 'fe', 'gf', 'hg', 'ih', 'ji'].map((pair) => [...pair]))
      bomb += `${name}: &${name} [${Array.from({ length: 10 }, () => `*${of}`).join(',')}]\n`;
    expect(codes({ 'bomb.yaml': bomb })).toEqual(['bomb.yaml:3 InvalidYaml']);
    expect(codes({ 'self.yaml': 'a: &a\n  - *a\n' })).toEqual(['self.yaml:2 InvalidYaml']);
    expect(codes({ 'alias.yaml': 'a: &a [1, 2]\nb: *a\nc: *a\n' })).toEqual([]);
  });
});
