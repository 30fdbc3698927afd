import { expect, test } from 'vitest';
import { ChangedPackages } from './changed-packages.ts';

test('a reader gets each package that changed after its version once, and all without a version', () => {
  const changed = new ChangedPackages();
  expect(changed.since(undefined)).toEqual({ version: 0, packages: undefined });
  for (const name of ['a', 'b', 'a']) changed.note(name);
  expect(changed.since(0)).toEqual({ version: 3, packages: ['b', 'a'] });
  expect(changed.since(2)).toEqual({ version: 3, packages: ['a'] });
  expect(changed.since(3)).toEqual({ version: 3, packages: [] });
});

test('a copy continues with the versions, apart from the original', () => {
  const changed = new ChangedPackages();
  changed.note('a');
  const copy = new ChangedPackages(changed);
  copy.note('b');
  expect(copy.since(1)).toEqual({ version: 2, packages: ['b'] });
  expect(changed.since(1)).toEqual({ version: 1, packages: [] });
});

test('a reader that missed more changes than are known reads everything', () => {
  const changed = new ChangedPackages();
  changed.note('first');
  for (let index = 0; index < 2_000; index += 1) changed.note(`p${index}`);
  expect(changed.since(0).packages).toBeUndefined();
  expect(changed.since(1).packages).toHaveLength(2_000);
});
