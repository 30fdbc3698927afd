import fc from 'fast-check';
import { expect, test } from 'vitest';
import { runs } from '../../../test/support/runs.ts';
import { hashObject } from './object-id.ts';
import { encodeTree, parseTree, pickEntries, type RawTreeEntry, rawEntry, spliceTree } from './tree-codec.ts';

const ID = hashObject('blob', Buffer.from('a'));
/** Few letters, some of which sort around the slash, so that names begin with each other. */
const name = fc.string({ unit: fc.constantFrom('a', 'b', '-', '.', '0', '\xff'), minLength: 1, maxLength: 4 });
const mode = fc.constantFrom('100644' as const, '040000' as const, '120000' as const);
const entries = fc
  .uniqueArray(fc.record({ name, mode }), { selector: (entry) => entry.name, maxLength: 12 })
  .map((all) => all.map((entry) => rawEntry(entry.mode, entry.name, ID)));

test('a tree with entries spliced in and out is the tree of the entries that it then has', () => {
  fc.assert(
    fc.property(entries, entries, fc.array(name), (before, changed, removed) => {
      const changes = new Map<string, RawTreeEntry | undefined>(removed.map((deleted) => [deleted, undefined]));
      for (const entry of changed) changes.set(entry.rawName, entry);
      const wanted = new Map<string, RawTreeEntry>(before.map((entry) => [entry.rawName, entry]));
      for (const [key, entry] of changes) {
        if (entry === undefined) wanted.delete(key);
        else wanted.set(key, entry);
      }
      const sorted = [...wanted.values()].sort((a, b) => Buffer.compare(sortBytes(a), sortBytes(b)));
      const spliced = spliceTree(encodeTree(before), '', changes);
      expect(spliced).toEqual(Buffer.concat(sorted.map(({ bytes }) => bytes)));
      expect(parseTree(spliced, '')).toEqual(sorted);
      const picked = pickEntries(spliced, '', new Set(removed));
      expect(new Set(picked.keys())).toEqual(new Set(removed.filter((key) => wanted.has(key))));
    }),
    { numRuns: runs(100) },
  );
});

test('a file and a folder of one name are refused at any distance', () => {
  const between = ['a!', 'a-', 'a-b', 'a.'].map((other) => rawEntry('100644', other, ID));
  const data = Buffer.concat(
    [rawEntry('100644', 'a', ID), ...between, rawEntry('040000', 'a', ID)].map((e) => e.bytes),
  );
  expect(() => parseTree(data, ID)).toThrow('"a" occurs twice');
});

function sortBytes(entry: RawTreeEntry): Buffer {
  return Buffer.from(entry.mode === '040000' ? `${entry.rawName}/` : entry.rawName, 'latin1');
}
