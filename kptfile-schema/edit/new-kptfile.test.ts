import { expect, test } from 'vitest';
import { KptfileEditError, newKptfile, readKptfile } from '../index.ts';

test('writes what kpt writes at init', () => {
  expect(newKptfile({ name: 'my-package' })).toBe(`apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: my-package
  annotations:
    config.kubernetes.io/local-config: "true"
info:
  description: sample description
`);
});

test('writes site and keywords, and quotes what needs quotes', () => {
  const text = newKptfile({ name: 'true', description: 'a: b', keywords: ['one', '2'], site: 'https://example.com' });
  expect(text).toContain('  name: "true"\n');
  expect(text).toContain(
    'info:\n  site: https://example.com\n  description: "a: b"\n  keywords:\n    - one\n    - "2"\n',
  );
  const result = readKptfile(text);
  expect(result.ok && result.kptfile.info).toEqual({
    site: 'https://example.com',
    description: 'a: b',
    keywords: ['one', '2'],
  });
});

test('an empty name is refused', () => {
  expect(() => newKptfile({ name: '' })).toThrow(KptfileEditError);
});
