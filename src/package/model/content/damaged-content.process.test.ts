import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { git } from '../../../../test/support/git/git-cli.ts';
import { initRepository, openRepository } from '../../../git/open/open-repository.ts';
import { readPackage } from './content.ts';
import { ContentCache } from './content-cache.ts';
import { unreadableReason } from './unreadable-content.ts';

const AUTHOR = { name: 'a', email: 'a@b', time: 1_700_000_000_000 };
const FILES = new Map([
  ['app/Kptfile', { data: Buffer.from('kind: Kptfile') }],
  ['app/sub/large', { data: Buffer.from(Array.from({ length: 20_000 }, (_, n) => (n * 7919) % 256)) }],
]);

const engines = ['native', 'isomorphic-git'] as const;
const damages = ['blob', 'tree', 'pack', 'idx'] as const;

test.each(engines.flatMap((engine) => damages.map((damaged) => [engine, damaged] as const)))(
  'damage of the repository is no fault of a package, and forgotten once it is repaired: %s, %s',
  async (engine, damaged) => {
    const folder = mkdtempSync(join(tmpdir(), 'damaged-content-'));
    const path = join(folder, 'r.git');
    const writer = await initRepository(path, { engine });
    const tree = await writer.editTree(undefined, FILES);
    const commit = await writer.writeCommit({ tree, parents: [], author: AUTHOR, committer: AUTHOR, message: 'x\n' });
    await writer.transaction([{ type: 'create', ref: 'refs/heads/main', new: commit }]);
    const stats = await writer.statObjects(['app', 'app/sub', 'app/sub/large'].map((name) => `${commit}:${name}`));
    const [app = '', sub = '', blob = ''] = stats.map((stat) => stat?.oid ?? '');
    await writer.close();
    const isPacked = damaged === 'pack' || damaged === 'idx';
    if (isPacked) git(path, ['-c', 'pack.writeReverseIndex=false', 'repack', '-a', '-d', '-q']);
    const packs = join(path, 'objects/pack');
    const oid = damaged === 'blob' ? blob : sub;
    const file = isPacked
      ? join(packs, readdirSync(packs).find((name) => name.endsWith(`.${damaged}`)) ?? '')
      : join(path, 'objects', oid.slice(0, 2), oid.slice(2));
    const whole = readFileSync(file);
    const write = (data: Buffer) => {
      rmSync(file);
      writeFileSync(file, data);
    };
    write(isPacked ? whole.subarray(0, 200) : Buffer.from('garbage'));

    const cache = new ContentCache();
    const reader = await openRepository(path, { engine });
    const error = await cache
      .get('app', () => readPackage(reader, app, undefined))
      .then(
        () => expect.fail('was read'),
        (reason: unknown) => reason,
      );
    expect(error).toMatchObject({ name: 'DamageError', code: 'Corrupt' });
    expect(unreadableReason(error)).toBeUndefined();
    expect(reader.damage).toBe(error);
    await reader.close();

    write(whole);
    const repaired = await openRepository(path, { engine });
    const { files } = await cache.get('app', () => readPackage(repaired, app, undefined));
    expect([...files.keys()].sort()).toEqual(['Kptfile', 'sub/large']);
    await repaired.close();
    rmSync(folder, { recursive: true });
  },
);
