import { expect, test } from 'vitest';
import { Catalog } from '../catalog/catalog.ts';
import type { FunctionRules } from '../model/function-rules.ts';
import { readsStatus } from './reads-status.ts';
import { kptfile, testFunction } from './testing.ts';

const blind = testFunction('blind', () => undefined);
const catalog = new Catalog([blind, { ...blind, name: 'curious', readsStatus: true }]);
const asks = (entry: string, rules: FunctionRules = []) =>
  readsStatus({ files: new Map([['a/Kptfile', kptfile(`  validators:\n    - ${entry}\n`)]]), rules }, catalog);

test('a package is rendered again for a new condition if one of its functions could read it', () => {
  expect(asks('{image: blind}')).toBe(false);
  expect(asks('{image: curious}')).toBe(true);
  expect(asks('{image: unknown}')).toBe(true);
  expect(asks('{exec: ./run}')).toBe(true);
  expect(asks('{image: blind, when: "resources.size() > 1"}')).toBe(true);
  expect(asks('{image: unknown}', [{ image: 'unknown', action: { type: 'builtIn', name: 'blind' } }])).toBe(false);
  expect(asks('{image: blind}', [{ image: 'blind', action: { type: 'container' } }])).toBe(true);
  expect(readsStatus({ files: new Map([['Kptfile', 'broken']]), rules: [] }, catalog)).toBe(false);
});
