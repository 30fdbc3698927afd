import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { GIT_ENVIRONMENT, git, initBare, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { runs } from '../../../../test/support/runs.ts';
import { hashObject } from '../object-id.ts';
import { writePack } from './pack-writer.ts';

let folder: ReturnType<typeof temporaryFolder>;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  path = initBare(join(folder.path, 'r.git'));
});
afterEach(() => folder.remove());

const indexPack = (pack: Buffer) => git(path, ['index-pack', '--stdin', '--fix-thin', '--strict'], pack);
/** Byte for byte. */
const blob = (oid: string) =>
  execFileSync('git', [`--git-dir=${path}`, 'cat-file', 'blob', oid], { env: GIT_ENVIRONMENT, maxBuffer: 1 << 28 });

test('git reads every object of any pack, also deltas against what it has', async () => {
  const stretch = fc.tuple(fc.constantFrom(0, 1, 126, 127, 128, 4095, 4096, 4097, 20_000), fc.nat(255));
  const bytes = fc
    .array(stretch, { maxLength: 4 })
    .map((parts) => Buffer.concat(parts.map(([size, fill]) => Buffer.alloc(size, fill))));
  await fc.assert(
    fc.asyncProperty(bytes, bytes, bytes, bytes, async (start, old, next, end) => {
      const base = Buffer.concat([start, old, end]);
      const data = Buffer.concat([start, next, end]);
      fc.pre(!base.equals(data));
      const oid = git(path, ['hash-object', '-w', '--stdin'], base);
      indexPack((await writePack([{ type: 'blob', data, base: { oid, data: base } }])).bytes);
      expect(blob(hashObject('blob', data)).equals(data)).toBe(true);
    }),
    { numRuns: runs(40, 4) },
  );
});

test('a change in a large object takes a few bytes, wherever it is', async () => {
  // More than one copy instruction can name.
  const base = Buffer.alloc(17_000_000, 'some text that is repeated');
  const oid = git(path, ['hash-object', '-w', '--stdin'], base);
  for (const at of [0, 10_000_000, base.length - 1]) {
    const data = Buffer.from(base);
    data[at] = 0;
    const { bytes: pack } = await writePack([{ type: 'blob', data, base: { oid, data: base } }]);
    expect(pack.length).toBeLessThan(150);
    indexPack(pack);
    expect(blob(hashObject('blob', data)).equals(data)).toBe(true);
  }
});

test('a pack may be empty, and may hold a base and what is made from it', async () => {
  expect((await writePack([])).bytes.length).toBe(32);
  const data = Buffer.alloc(10_000, 'a');
  const next = Buffer.concat([data, Buffer.from('b')]);
  const { bytes } = await writePack([
    { type: 'blob', data },
    { type: 'blob', data: next, base: { oid: hashObject('blob', data), data } },
  ]);
  indexPack(bytes);
  expect(blob(hashObject('blob', next)).equals(next)).toBe(true);
});
