import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { fsck, git, initBare, refsOf, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { DamageError } from '../errors.ts';
import type { GitRepository, Oid } from '../git-repository.ts';
import { initRepository, openRepository } from '../open/open-repository.ts';
import { DEFAULT_TIMEOUTS } from '../process/engine-options.ts';
import { repairMirror } from './repair-mirror.ts';

const SLOW_REPAIR = new URL('../../../test/support/git/slow-repair.ts', import.meta.url).pathname;
const SIGNATURE = { name: 'A', email: 'a@example.com', time: 0 };
const REFSPECS = { refspecs: ['+refs/*:refs/*'], prune: true };

describe('a damaged mirror', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let origin: string;
  let path: string;
  let mirror: GitRepository;
  let tips: Oid[];
  const remote = () => ({ url: `file://${origin}` });

  beforeEach(async () => {
    folder = temporaryFolder();
    origin = initBare(join(folder.path, 'origin.git'));
    path = join(folder.path, 'mirror.git');
    const source = await openRepository(origin);
    tips = [];
    let parents: Oid[] = [];
    for (let round = 0; round < 12; round += 1) {
      const tree = await source.editTree(undefined, new Map([[`a/f${round}`, { data: randomBytes(3000) }]]));
      const tip = await source.writeCommit({ tree, parents, author: SIGNATURE, committer: SIGNATURE, message: 'm' });
      await source.transaction([{ type: 'create', ref: `refs/tags/t${round}`, new: tip }]);
      parents = [tip];
      tips.push(tip);
    }
    await source.transaction([{ type: 'create', ref: 'refs/heads/main', new: parents[0] ?? '' }]);
    await source.close();
    mirror = await initRepository(path);
    await mirror.fetch(remote(), REFSPECS);
    // Some of it packed, some loose.
    await mirror.maintain();
    await mirror.transaction([{ type: 'create', ref: 'refs/heads/own', new: await ownCommit() }]);
    await mirror.close();
    mirror = await openRepository(path);
  });
  afterEach(async () => {
    await mirror.close();
    folder.remove();
  });

  /** What this process wrote and has not pushed yet. */
  const ownCommit = async () => {
    const tree = await mirror.editTree(undefined, new Map([['own', { data: Buffer.from('own') }]]));
    return mirror.writeCommit({ tree, parents: [], author: SIGNATURE, committer: SIGNATURE, message: 'own' });
  };
  const readAll = async () => {
    for (const { oid } of await mirror.listRefs()) {
      await mirror.expectObject(oid);
      for (const file of await mirror.listFiles(`${oid}:`)) await mirror.expectObject(file.oid);
      await mirror.readObjects((await mirror.listFiles(`${oid}:`)).map((file) => file.oid));
    }
  };
  const only = (suffix: string) => {
    const [name = ''] = readdirSync(join(path, 'objects/pack')).filter((one) => one.endsWith(suffix));
    const file = join(path, 'objects/pack', name);
    chmodSync(file, 0o644);
    return file;
  };
  const looseObject = (oid: Oid) => {
    const file = join(path, 'objects', oid.slice(0, 2), oid.slice(2));
    chmodSync(file, 0o644);
    return file;
  };

  test.each<[string, () => Promise<void> | void, string | undefined]>([
    [
      'a flipped byte in a pack',
      () => {
        const file = only('.pack');
        const bytes = readFileSync(file);
        bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 0x55;
        writeFileSync(file, bytes);
      },
      '.pack',
    ],
    ['a truncated pack', () => truncateSync(only('.pack'), statSync(only('.pack')).size >> 1), '.pack'],
    ['a pack without its index', () => rmSync(only('.idx')), '.pack'],
    ['an index without its pack', () => rmSync(only('.pack')), '.idx'],
    ['no folder for packs', () => rmSync(join(path, 'objects/pack'), { recursive: true }), undefined],
    ['no objects at all', () => rmSync(join(path, 'objects'), { recursive: true }), undefined],
    [
      'an object that is empty',
      async () => {
        // Brought loose, as fetches of few objects bring them.
        const pack = readFileSync(only('.pack'));
        rmSync(join(path, 'objects/pack'), { recursive: true });
        git(path, ['unpack-objects', '-q'], pack);
        truncateSync(looseObject(tips[3] ?? ''), 0);
      },
      'objects/',
    ],
    ['half a line in packed-refs', () => truncateSync(join(path, 'packed-refs'), 130), 'packed-refs'],
    ['a ref with nothing in it', () => truncateSync(join(path, 'refs/heads/main'), 0), 'refs/heads/main'],
  ])('with %s is made whole', async (_what, damage, aside) => {
    await damage();
    await expect(readAll()).rejects.toBeInstanceOf(DamageError);
    expect(mirror.damage?.code).toBe('Corrupt');
    const { damaged } = await mirror.repair(remote(), REFSPECS);
    expect(mirror.damage).toBeUndefined();
    if (aside === undefined) expect(damaged).toEqual([]);
    else expect(damaged.join()).toContain(aside);
    for (const file of damaged) expect(existsSync(join(path, 'sluice-damaged', file))).toBe(true);
    await readAll();
    fsck(path);
    await mirror.fetch(remote(), REFSPECS);
    expect(refsOf(path)).toEqual(refsOf(origin));
    await mirror.maintain();
    fsck(path);
  });

  test('that lost unsynced files in a crash of the machine is repaired', async () => {
    await mirror.close();
    const options = { durable: false, packRefsFrom: 3 };
    mirror = await openRepository(path, options);
    expect(mirror.capabilities.durable).toBe(false);
    const own = await ownCommit();
    await mirror.transaction([{ type: 'delete', ref: 'refs/heads/own', old: own }]);
    // By git, which makes files, and by a new packed-refs.
    await mirror.transaction([{ type: 'create', ref: 'refs/heads/one', new: own }]);
    await mirror.transaction([1, 2, 3].map((n) => ({ type: 'create', ref: `refs/heads/many/${n}`, new: own })));
    const written = [own, ...(await mirror.listFiles(`${own}:`)).map(({ oid }) => oid)];
    await mirror.close();
    truncateSync(join(path, 'refs/heads/one'), 0);
    writeFileSync(join(path, 'packed-refs'), Buffer.alloc(statSync(join(path, 'packed-refs')).size));
    for (const oid of written) truncateSync(looseObject(oid), 0);
    mirror = await openRepository(path, options);
    await expect(readAll()).rejects.toBeInstanceOf(DamageError);
    await mirror.repair(remote(), REFSPECS);
    await mirror.fetch(remote(), REFSPECS);
    await readAll();
    fsck(path);
    expect(refsOf(path)).toEqual(refsOf(origin));
    // What is written now is not taken for what was lost.
    await mirror.transaction([{ type: 'create', ref: 'refs/heads/own', new: await ownCommit() }]);
    await readAll();
  });

  test('keeps what waits to be pushed, and serves readers meanwhile', async () => {
    rmSync(only('.idx'));
    const own = await mirror.resolveRef('refs/heads/own');
    const waiting = await mirror.writeBlob(Buffer.from('staged'));
    const repair = mirror.repair(remote(), REFSPECS);
    let running = true;
    const readers = (async () => {
      while (running) expect((await mirror.readObjects([`${own}:own`]))[0]?.data.toString()).toBe('own');
    })();
    await repair;
    running = false;
    await readers;
    expect(await mirror.resolveRef('refs/heads/own')).toBe(own);
    await mirror.transaction([]);
    expect(git(path, ['cat-file', 'blob', waiting])).toBe('staged');
  });

  test('whose remote cannot be reached stays as it was', async () => {
    rmSync(only('.idx'));
    const before = readdirSync(path, { recursive: true }).sort();
    await expect(mirror.repair({ url: `file://${folder.path}/nowhere.git` }, REFSPECS)).rejects.toMatchObject({
      code: 'NotFound',
    });
    expect(readdirSync(path, { recursive: true }).sort()).toEqual(before);
  });

  test('is repaired once for all registrations that share it, with the credentials of any', async () => {
    rmSync(only('.idx'));
    const before = refsOf(path);
    const others = await Promise.all([openRepository(path), openRepository(path)]);
    const nowhere = mirror.repair({ url: `file://${folder.path}/nowhere.git` }, REFSPECS);
    const repairs = others.map((other) => other.repair(remote(), REFSPECS));
    await expect(nowhere).rejects.toMatchObject({ code: 'NotFound' });
    const [one, other] = await Promise.all(repairs);
    expect(one?.damaged.join()).toContain('.pack');
    expect(other).toBe(one);
    expect(refsOf(path)).toEqual(before);
    await readAll();
    fsck(path);
    for (const repository of others) await repository.close();
  });

  test('is not waited for by a registration whose request has ended', async () => {
    const common = { gitDir: path, clock: systemClock, timeouts: DEFAULT_TIMEOUTS };
    const { promise, resolve } = Promise.withResolvers<void>();
    const fetchInto = vi.fn(() => promise);
    const first = repairMirror({ ...common, signal: undefined, fetchInto });
    const end = new AbortController();
    const second = repairMirror({ ...common, signal: end.signal, fetchInto });
    end.abort();
    await expect(second).rejects.toMatchObject({ code: 'Timeout' });
    resolve();
    await first;
    expect(fetchInto).toHaveBeenCalledTimes(1);
  });

  test('is repaired by two processes at once, and what a killed one left is removed', async () => {
    const before = refsOf(path);
    const left = () => readdirSync(path).filter((name) => name.startsWith('sluice-fresh'));
    const begin = async () => {
      const child = spawn(process.execPath, [SLOW_REPAIR, path, origin], { stdio: ['pipe', 'pipe', 'inherit'] });
      onTestFinished(() => void child.kill('SIGKILL'));
      let output = '';
      child.stdout.setEncoding('utf8').on('data', (text: string) => {
        output += text;
      });
      await expect.poll(() => output, { timeout: 20_000 }).toBe('fetched\n');
      return { child, ended: once(child, 'close'), output: () => output };
    };
    const killed = await begin();
    killed.child.kill('SIGKILL');
    await killed.ended;
    expect(left()).toHaveLength(1);
    rmSync(only('.idx'));
    const { child, ended, output } = await begin();
    expect(left()).toHaveLength(1);
    const { damaged } = await mirror.repair(remote(), REFSPECS);
    expect(damaged.join()).toContain('.pack');
    expect(left()).toHaveLength(1);
    child.stdin.end();
    await ended;
    expect(output()).toBe('fetched\nrepaired\n');
    expect(left()).toEqual([]);
    expect(refsOf(path)).toEqual(before);
    await readAll();
    fsck(path);
  });

  test('of which nothing is left is fetched again', async () => {
    rmSync(path, { recursive: true });
    await mirror.repair(remote(), REFSPECS);
    await readAll();
    expect(refsOf(path)).toEqual(refsOf(origin));
  });
});
