import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../../test/support/runs.ts';
import { encodeTree, parseTree, rawEntry } from '../tree-codec.ts';
import { treeWindow } from './tree-window.ts';

const oid = fc.constantFrom('a', 'b', '3').map((digit) => digit.repeat(40));
/** Also names that hold what looks like an entry, and ids (of the digit 3) that are text. */
const name = fc.constantFrom('a', 'b', 'c', 'x100644 c', 'x40000 d', 'd', '3', '100644 3', 'long'.repeat(30));
const tree = fc
  .dictionary(name, fc.tuple(oid, fc.constantFrom('100644' as const, '040000' as const)), { maxKeys: 9 })
  .map((entries) => encodeTree(Object.entries(entries).map(([key, [id, mode]]) => rawEntry(mode, key, id))));

test('outside of the windows, two trees have the same entries', () => {
  fc.assert(
    fc.property(tree, tree, (base, target) => {
      const window = treeWindow(base, target);
      const keys = (data: Buffer) =>
        parseTree(data, '').map(({ mode, rawName, oid: id }) => `${mode} ${rawName} ${id}`);
      const rest = (all: Buffer, some: Buffer) => keys(all).filter((key) => !keys(some).includes(key));
      expect(rest(target, window.target)).toEqual(rest(base, window.base));
    }),
    { numRuns: runs(2000) },
  );
});

test('of a large tree with one change, the window is one entry', () => {
  const entries = Array.from({ length: 5000 }, (_, index) => rawEntry('040000', `package-${index}`, 'a'.repeat(40)));
  const base = encodeTree(entries);
  const target = encodeTree(entries.with(2500, rawEntry('040000', 'package-2500', 'b'.repeat(40))));
  const window = treeWindow(base, target);
  expect(parseTree(window.target, '')).toMatchObject([{ rawName: 'package-2500', oid: 'b'.repeat(40) }]);
  expect(parseTree(window.base, '')).toMatchObject([{ rawName: 'package-2500', oid: 'a'.repeat(40) }]);
});
