import { expect, test } from 'vitest';
import { checkLocalPackage } from './check-local-package.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\ninfo:\n  readinesGates: []\n';
const files = (texts: Record<string, string>) =>
  new Map(Object.entries(texts).map(([path, text]) => [path, Buffer.from(text)]));

test('each problem names its file, line and field', () => {
  expect(checkLocalPackage('web', files({ Kptfile: KPTFILE, 'a/b.yaml': 'a: [\nb', 'c.txt': 'a: [' }))).toEqual([
    expect.stringMatching(/^web\/a\/b\.yaml:2:1: not valid YAML: /),
  ]);
});

test('a Kptfile that cannot be read is an error with its place', () => {
  expect(() => checkLocalPackage('web', files({ Kptfile: 'x\n  y: [' }))).toThrow(/^web\/Kptfile:2:4: /);
});

test('the warning about a folder of templates has a bounded number of lines', () => {
  const many = Object.fromEntries(Array.from({ length: 50 }, (_unused, at) => [`${at}.yaml`, '{{ if']));
  const problems = checkLocalPackage('web', files(many));
  expect(problems).toHaveLength(21);
  expect(problems.at(-1)).toBe('and 30 more problems in web');
});
