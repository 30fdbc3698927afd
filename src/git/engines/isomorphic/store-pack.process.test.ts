import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { deflateSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fsck, GIT_ENVIRONMENT, git, initBare, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import { PackedObjects } from '../../objects/files/packed-objects.ts';
import { openRepository } from '../../open/open-repository.ts';
import { storePack } from './store-pack.ts';

let folder: ReturnType<typeof temporaryFolder>;
let source: ReturnType<typeof temporaryFolder>;
let origin: string;
let target: string;
let tip: string;
/** All of `origin`, with deltas, as a server sends it. */
let pack: Buffer;

beforeAll(async () => {
  source = temporaryFolder();
  origin = initBare(join(source.path, 'origin.git'));
  const repository = await openRepository(origin);
  let tree: string | undefined;
  const parents: string[] = [];
  for (let version = 1; version <= 12; version += 1) {
    const large = `${'line of a long file\n'.repeat(400)}${version}\n${`end ${version % 3}\n`.repeat(300)}`;
    const edits = [
      ['large', large],
      [`folder/${version}`, `${version}`],
    ] as const;
    tree = await repository.editTree(tree, new Map(edits.map(([path, text]) => [path, { data: Buffer.from(text) }])));
    tip = await repository.writeCommit(commitOf(tree, parents.splice(0)));
    parents.push(tip);
  }
  const tag = { object: tip, type: 'commit', name: 'v1', tagger: commitOf('').author, message: 'v1\n' } as const;
  const tagged = await repository.writeTag(tag);
  await repository.transaction([
    { type: 'create', ref: 'refs/heads/main', new: tip },
    { type: 'create', ref: 'refs/tags/v1', new: tagged },
  ]);
  await repository.close();
  pack = packOf(['main', 'v1'], '--delta-base-offset');
});

afterAll(() => source.remove());

beforeEach(() => {
  folder = temporaryFolder();
  target = initBare(join(folder.path, 'target.git'));
});

afterEach(() => folder.remove());

function packOf(revisions: readonly string[], ...options: readonly string[]): Buffer {
  const words = [`--git-dir=${origin}`, 'pack-objects', '--revs', '--stdout', '--quiet', ...options];
  const input = revisions.map((revision) => `${revision}\n`).join('');
  return execFileSync('git', words, { input, env: GIT_ENVIRONMENT, stdio: ['pipe', 'pipe', 'pipe'] });
}

async function* inPieces(data: Buffer): AsyncGenerator<Buffer> {
  for (let at = 0; at < data.length; at += 1000) yield data.subarray(at, at + 1000);
}

function take(data: Buffer, more: { signal?: AbortSignal; maxBytes?: number } = {}): Promise<void> {
  const signal = new AbortController().signal;
  return storePack(inPieces(data), {
    gitDir: target,
    packed: new PackedObjects(target),
    durable: true,
    signal,
    ...more,
  });
}

function filesOf(gitDir: string): string[] {
  return readdirSync(join(gitDir, 'objects'), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}

/** A pack of entries that are given as bytes, with a right checksum. */
function handmade(count: number, ...entries: readonly Buffer[]): Buffer {
  const header = Buffer.from('PACK\0\0\0\x02\0\0\0\0', 'latin1');
  header.writeUInt32BE(count, 8);
  return signed(Buffer.concat([header, ...entries]));
}

function signed(body: Buffer): Buffer {
  return Buffer.concat([body, createHash('sha1').update(body).digest()]);
}

/** The head of an entry: its type, and how large it claims to be. */
function head(type: number, size: number): Buffer {
  const bytes = [(type << 4) | (size & 15)];
  for (let rest = Math.floor(size / 16); rest > 0; rest = Math.floor(rest / 128)) {
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) | 0x80;
    bytes.push(rest % 128);
  }
  return Buffer.from(bytes);
}

const BLOB = 3;

describe('a sound pack', () => {
  test.each([
    ['with deltas by offset', ['--delta-base-offset', '--depth=50']],
    ['with deltas by id', ['--depth=50']],
    ['without deltas', ['--depth=0']],
  ])('%s is placed with an index that git accepts, and can be read', async (_, options) => {
    await take(packOf(['main', 'v1'], ...options));
    git(target, ['update-ref', 'refs/heads/main', tip]);
    fsck(target);
    const [idx = ''] = filesOf(target).filter((name) => name.endsWith('.idx'));
    git(target, ['verify-pack', join(target, 'objects/pack', idx)]);
    expect(git(target, ['rev-list', '--objects', 'main'])).toBe(git(origin, ['rev-list', '--objects', 'main']));
    const repository = await openRepository(target, { engine: 'isomorphic-git' });
    expect((await repository.readObjects([`${tip}:large`]))[0]?.data.toString()).toBe(
      `${git(origin, ['cat-file', 'blob', `${tip}:large`])}\n`,
    );
    await repository.close();
  });

  test('may refer to what is here: in packs and in loose objects', async () => {
    await expect(take(packOf(['main', '^main~1']))).rejects.toMatchObject({ code: 'Unavailable' });
    await take(packOf(['main~1']));
    await take(packOf(['main', '^main~1']));
    git(target, ['update-ref', 'refs/heads/main', tip]);
    fsck(target);
    const loose = initBare(join(folder.path, 'loose.git'));
    execFileSync('git', [`--git-dir=${loose}`, 'unpack-objects', '-q'], {
      input: packOf(['main~1']),
      env: GIT_ENVIRONMENT,
    });
    target = loose;
    await take(packOf(['main', '^main~1']));
    git(target, ['update-ref', 'refs/heads/main', tip]);
    fsck(target);
  });

  test('without objects leaves nothing', async () => {
    await take(handmade(0));
    expect(filesOf(target)).toEqual([]);
  });
});

describe('nothing is written for', () => {
  const blob = Buffer.concat([head(BLOB, 3), deflateSync('abc')]);
  const bomb = Buffer.concat([head(BLOB, 3), deflateSync(Buffer.alloc(50_000_000))]);
  const delta = (bytes: readonly number[]) =>
    Buffer.concat([
      head(7, bytes.length),
      createHash('sha1').update('blob 3\0abc').digest(),
      deflateSync(Buffer.from(bytes)),
    ]);

  test.each<[string, () => Buffer, string]>([
    ['a pack that breaks off', () => pack.subarray(0, pack.length - 100), 'checksum'],
    ['a few bytes', () => Buffer.from('PACK'), 'cut off'],
    ['a pack of a later version', () => signed(Buffer.from('PACK\0\0\0\x03\0\0\0\0', 'latin1')), 'version 3'],
    [
      'a changed byte',
      () => Buffer.concat([pack.subarray(0, 100), Buffer.of((pack[100] ?? 0) ^ 1), pack.subarray(101)]),
      'checksum',
    ],
    [
      'a changed byte with a new checksum',
      () => signed(Buffer.concat([pack.subarray(0, 100), Buffer.of((pack[100] ?? 0) ^ 1), pack.subarray(101, -20)])),
      '',
    ],
    ['a thin pack', () => packOf(['main', '^main~1'], '--thin'), ''],
    ['more than was announced', () => handmade(1, blob, blob), 'more objects than it announces'],
    ['less than was announced', () => handmade(2, blob), 'ends in the middle'],
    ['the same object twice', () => handmade(2, blob, blob), 'twice'],
    ['an object that inflates to more than it claims', () => handmade(1, bomb), 'cannot be inflated'],
    ['an object that claims more than is allowed', () => handmade(1, head(BLOB, 2 ** 40)), 'more than'],
    ['more objects than are allowed', () => handmade(0xffff_ffff, blob), 'objects'],
    ['an unknown type', () => handmade(1, head(5, 3), deflateSync('abc')), 'unknown type'],
    ['a tree that is none', () => handmade(1, head(2, 3), deflateSync('abc')), 'tree'],
    ['a commit that is none', () => handmade(1, head(1, 3), deflateSync('abc')), 'commit'],
    ['a tag that is none', () => handmade(1, head(4, 3), deflateSync('abc')), 'tag'],
    ['a delta of what comes after it', () => handmade(1, head(6, 3), Buffer.of(1), deflateSync('abc')), 'base'],
    ['a delta of nothing', () => handmade(1, delta([3, 1, 1, 65])), 'base'],
    ['a delta for an object of another size', () => handmade(2, blob, delta([4, 1, 1, 65])), 'another size'],
    ['a delta that reads behind its base', () => handmade(2, blob, delta([3, 9, 0x91, 0, 9])), 'does not exist'],
    ['a delta that ends too early', () => handmade(2, blob, delta([3, 9, 1, 65])), 'too early'],
    [
      'a delta that makes too much',
      () => handmade(2, blob, delta([3, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 65])),
      'more than',
    ],
  ])('%s', async (_, make, words) => {
    const data = make();
    const error: unknown = await take(data).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'Unavailable', message: expect.stringContaining(words) });
    expect(filesOf(target)).toEqual([]);
  });

  test('a pack above the limit', async () => {
    await expect(take(pack, { maxBytes: 1500 })).rejects.toMatchObject({
      code: 'LimitExceeded',
      message: expect.stringContaining('install git'),
    });
    expect(filesOf(target)).toEqual([]);
  });

  test('a pack whose call was aborted', async () => {
    const controller = new AbortController();
    controller.abort(new Error('given up'));
    await expect(take(pack, { signal: controller.signal })).rejects.toThrow('given up');
    expect(filesOf(target)).toEqual([]);
  });
});
