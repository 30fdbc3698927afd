import { expect, test } from 'vitest';
import { streamOf } from './export.ts';
import { MAX_TRANSFER_CHARACTERS, MAX_TRANSFER_DOCUMENTS } from './transfer-limits.ts';

const object = (data: object = {}) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data });

test('what import would refuse is not exported', () => {
  const limit = expect.objectContaining({ code: 'LimitExceeded', message: expect.stringContaining('-n') });
  expect(() => streamOf(Array(MAX_TRANSFER_DOCUMENTS + 1).fill(object()))).toThrow(limit);
  const lines = object({ key: 'x\n'.repeat(512 * 1024) });
  expect(() => streamOf(Array(MAX_TRANSFER_CHARACTERS / 1024 / 1024).fill(lines))).toThrow(limit);
});

test('fields are in alphabetical order after the identity, at every level', () => {
  expect(streamOf([object({ b: { d: 1, c: [{ f: 1, e: 2 }] }, a: 'x: y' })])).toMatchInlineSnapshot(`
    "# Objects of Sluice. "sluice import" creates them on another server.
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: a
    data:
      a: 'x: y'
      b:
        c:
          - e: 2
            f: 1
        d: 1
    "
  `);
});
