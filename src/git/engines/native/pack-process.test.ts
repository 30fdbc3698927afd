import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fsck, git, initBare, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { systemClock } from '../../../foundation/time/clock.ts';
import { hashObject } from '../../objects/object-id.ts';
import { type PackedObject, writePack } from '../../objects/pack/pack-writer.ts';
import { encodeTree, rawEntry } from '../../objects/tree-codec.ts';
import { indexPack, streamPack } from './pack-process.ts';

let folder: ReturnType<typeof temporaryFolder>;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  path = initBare(join(folder.path, 'r.git'));
});
afterEach(() => folder.remove());

const blob = Buffer.from('data');
const tree = encodeTree([rawEntry('100644', 'a', hashObject('blob', blob))]);

async function* pieces(pack: Buffer, size = 7): AsyncGenerator<Buffer> {
  for (let at = 0; at < pack.length; at += size) yield pack.subarray(at, at + size);
}
const index = (pack: AsyncIterable<Uint8Array>, signal = new AbortController().signal) =>
  indexPack(path, pack, systemClock, signal);
const packOf = async (objects: readonly PackedObject[]) => (await writePack(objects)).bytes;
const files = () => readdirSync(join(path, 'objects'), { recursive: true }).filter((name) => /pack/.test(`${name}`));

test('a pack is stored as a whole, also one that refers to objects of the repository', async () => {
  await index(pieces(await packOf([{ type: 'blob', data: blob }])));
  await index(pieces(await packOf([{ type: 'tree', data: tree }])));
  expect(git(path, ['cat-file', '-t', hashObject('tree', tree)])).toBe('tree');
  // Once more: what is there is the same.
  await index(pieces(await packOf([{ type: 'tree', data: tree }])));
  fsck(path);
});

test('a pack that refers to missing objects, is damaged or breaks off leaves nothing', async () => {
  const damaged = await packOf([{ type: 'blob', data: blob }]);
  damaged[15] = (damaged[15] ?? 0) ^ 0xff;
  for (const pack of [await packOf([{ type: 'tree', data: tree }]), damaged, damaged.subarray(0, 20), Buffer.from('x')])
    await expect(index(pieces(pack))).rejects.toMatchObject({ code: 'Unavailable' });
  const broken = async function* () {
    yield* pieces((await packOf([{ type: 'blob', data: blob }])).subarray(0, 25));
    throw new Error('the connection broke');
  };
  await expect(index(broken())).rejects.toThrow('the connection broke');
  expect(files()).toEqual(['pack']);
});

test('storing a pack ends when it is aborted', async () => {
  const end = new AbortController();
  const endless = async function* () {
    yield Buffer.from('PACK');
    end.abort(new Error('given up'));
    throw end.signal.reason;
  };
  await expect(index(endless(), end.signal)).rejects.toThrow('given up');
  expect(files()).toEqual(['pack']);
});

test('a pack is made from some objects down to others', async () => {
  const oids = ['one', 'two'].map((text) => git(path, ['hash-object', '-w', '--stdin'], text));
  const parts: Uint8Array[] = [];
  for await (const part of streamPack(path, oids, [])) parts.push(part);
  expect(Buffer.concat(parts).readUInt32BE(8)).toBe(2);
  const missing = async () => {
    for await (const _ of streamPack(path, ['1234567890123456789012345678901234567890'], []));
  };
  await expect(missing()).rejects.toMatchObject({ code: 'Internal' });
});
