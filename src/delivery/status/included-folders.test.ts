import { expect, test } from 'vitest';
import { includesFolder, listedPaths } from './included-folders.ts';

/** Kustomizations by folder, with the entries that they list. */
const tree = (files: Readonly<Record<string, readonly string[]>>) => (folder: string) => {
  const entries = files[folder];
  return entries === undefined
    ? null
    : listedPaths(folder, `kind: Kustomization\nresources: ${JSON.stringify(entries)}\n`);
};

test('a kustomization deploys the folders that it lists, also by others, and no other one', () => {
  const listed = tree({ edge: ['web', './apps/', '../base'], 'edge/apps': ['net/upf'], 'edge/db': ['cm.yaml'] });
  const includes = (folder: string) => includesFolder(listed, 'edge', folder, false);
  expect(['edge/web', 'edge/apps/net/upf'].map(includes)).toEqual([true, true]);
  expect(['edge/db', 'edge/apps/net', 'edge/apps/smf', 'edge/we', 'edge/web/sub'].map(includes)).toEqual(
    Array(5).fill(false),
  );
  expect(includesFolder(tree({ '': ['a'] }), '', 'a', false)).toBe(true);
  expect(includesFolder(tree({ a: ['b'], 'a/b': ['../b', '.'] }), 'a', 'a/b/c', false)).toBe(false);
});

test('without a kustomization only a search deploys folders, up to the first that has one', () => {
  const listed = tree({ 'edge/net': ['cm.yaml', 'upf'], 'edge/web': [] });
  const found = (folder: string) => includesFolder(listed, 'edge', folder, true);
  expect(['edge/web', 'edge/db', 'edge/a/b/c', 'edge/net/upf'].map(found)).toEqual(Array(4).fill(true));
  expect(found('edge/net/smf')).toBe(false);
  expect(includesFolder(listed, 'edge', 'edge/web', false)).toBe(false);
  // A generated kustomization is for the path only.
  expect(includesFolder(tree({ edge: ['web'] }), 'edge', 'edge/db', true)).toBe(false);
});

test('what is not read yet is named, and texts that are no kustomization list nothing', () => {
  expect(includesFolder(() => undefined, 'edge', 'edge/web', true)).toEqual({ unread: 'edge' });
  for (const text of ['', '[', 'resources: web', 'resources: [{a: 1}, ../../../x, null]', '\u0000'])
    expect(includesFolder((folder) => listedPaths(folder, text), 'edge', 'edge/web', false)).toBe(false);
});
