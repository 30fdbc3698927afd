import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { fsck, git, initBare, refsOf, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { commitOf } from '../git-repository.conformance.ts';
import { gitVersion, initRepository, openRepository } from './open-repository.ts';

describe('opening a repository', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let path: string;
  const searchPath = process.env.PATH;

  beforeEach(() => {
    folder = temporaryFolder();
    path = join(folder.path, 'repository.git');
  });

  afterEach(() => {
    process.env.PATH = searchPath;
    folder.remove();
  });

  test('init creates a bare repository that git accepts, and leaves an existing one', async () => {
    const repository = await initRepository(path);
    expect(repository).toMatchObject({ engine: 'native', path });
    expect(repository.engineNote).toBeUndefined();
    expect(git(path, ['rev-parse', '--is-bare-repository'])).toBe('true');
    expect(git(path, ['symbolic-ref', 'HEAD'])).toBe('refs/heads/main');
    const tree = await repository.editTree(undefined, new Map());
    const commit = await repository.writeCommit(commitOf(tree));
    await repository.transaction([{ type: 'create', ref: 'refs/heads/main', new: commit }]);
    await repository.close();
    await (await initRepository(path)).close();
    expect(refsOf(path).size).toBe(1);
    fsck(path);
  });

  test('init resumes an interrupted creation, and refuses a folder with other files', async () => {
    await (await initRepository(path)).close();
    rmSync(join(path, 'HEAD'));
    writeFileSync(join(path, 'HEAD.1.new'), '');
    await (await initRepository(path)).close();
    expect(git(path, ['symbolic-ref', 'HEAD'])).toBe('refs/heads/main');
    const other = join(folder.path, 'documents');
    mkdirSync(other);
    writeFileSync(join(other, 'letter.txt'), 'x');
    await expect(initRepository(other)).rejects.toMatchObject({ code: 'InvalidInput' });
    expect(readdirSync(other)).toEqual(['letter.txt']);
  });

  test('what is no bare SHA-1 repository with ref files is refused with the reason', async () => {
    await expect(openRepository(path)).rejects.toMatchObject({ code: 'NotFound' });
    const workTree = join(folder.path, 'work');
    execFileSync('git', ['init', '--quiet', workTree], { stdio: 'ignore' });
    await expect(openRepository(workTree)).rejects.toThrow('make a bare clone');
    await expect(openRepository(join(workTree, '.git'))).rejects.toMatchObject({ code: 'Unsupported' });
    const sha256 = join(folder.path, 'sha256.git');
    execFileSync('git', ['init', '--quiet', '--bare', '--object-format=sha256', sha256], { stdio: 'ignore' });
    await expect(openRepository(sha256)).rejects.toThrow('SHA-1');
    for (const [key, value, words] of [
      ['extensions.refStorage', 'reftable', 'reftable'],
      ['extensions.partialClone', 'origin', 'partial clone'],
      ['extensions.madeUp', 'true', 'madeup'],
      ['core.repositoryFormatVersion', '7', 'version 7'],
    ] as const) {
      rmSync(path, { recursive: true, force: true });
      initBare(path);
      execFileSync('git', ['config', '--file', join(path, 'config'), 'core.repositoryFormatVersion', '1']);
      execFileSync('git', ['config', '--file', join(path, 'config'), key, value]);
      await expect(openRepository(path), key).rejects.toMatchObject({ code: 'Unsupported' });
      await expect(openRepository(path), key).rejects.toThrow(words);
    }
  });

  test('without git, or with one that is too old, the other engine is used and its note names the limits', async () => {
    initBare(path);
    const bin = join(folder.path, 'bin');
    mkdirSync(bin);
    process.env.PATH = bin;
    expect(await gitVersion()).toBeUndefined();
    await expect(openRepository(path, { engine: 'native' })).rejects.toMatchObject({ code: 'Unavailable' });
    const fallback = await openRepository(path);
    expect(fallback).toMatchObject({ engine: 'isomorphic-git', capabilities: { fetch: true, maintain: false } });
    expect(fallback.engineNote).toContain('git is not installed');
    const remote = { url: 'ssh://git@example.com/x.git' };
    for (const call of [
      () => fallback.fetch(remote, { refspecs: ['+refs/heads/*:refs/heads/*'] }),
      () => fallback.push(remote, [{ type: 'verify', ref: 'refs/heads/main', old: null }]),
      () => fallback.listRemoteRefs(remote),
      () => fallback.probeRemote(remote),
      () => fallback.maintain(),
      () => fallback.repair(remote, { refspecs: [] }),
    ])
      await expect(call()).rejects.toMatchObject({
        code: 'Unsupported',
        message: expect.stringContaining('nstall git'),
      });
    writeFileSync(join(bin, 'git'), '#!/bin/sh\necho git version 2.38.1\n');
    chmodSync(join(bin, 'git'), 0o755);
    expect(await gitVersion()).toBe('2.38.1');
    expect((await openRepository(path)).engineNote).toContain('git 2.38.1 is older than 2.39');
    process.env.PATH = searchPath;
    expect(await gitVersion()).toMatch(/^\d+\.\d+/);
    expect((await openRepository(path, { engine: 'isomorphic-git' })).engine).toBe('isomorphic-git');
  });

  test('repositories that are opened at the same time start one process to check git', async () => {
    initBare(path);
    const bin = join(folder.path, 'bin');
    const calls = join(folder.path, 'calls');
    mkdirSync(bin);
    writeFileSync(join(bin, 'git'), `#!/bin/sh\necho called >> '${calls}'\necho git version 2.50.0\n`);
    chmodSync(join(bin, 'git'), 0o755);
    process.env.PATH = `${bin}:${searchPath}`;
    const open = () => openRepository(path);
    const repositories = [...(await Promise.all(Array.from({ length: 10 }, open))), await open()];
    expect(new Set(repositories.map(({ engine }) => engine))).toEqual(new Set(['native']));
    await Promise.all(repositories.map((repository) => repository.close()));
    expect(readFileSync(calls, 'utf8')).toBe('called\n');
  });

  test('SLUICE_GIT_ENGINE selects the engine', async () => {
    initBare(path);
    vi.stubEnv('SLUICE_GIT_ENGINE', 'isomorphic-git');
    expect((await openRepository(path)).engineNote).toContain('was selected');
    vi.stubEnv('SLUICE_GIT_ENGINE', 'libgit2');
    await expect(openRepository(path)).rejects.toMatchObject({ code: 'InvalidInput' });
    vi.unstubAllEnvs();
  });

  test('what needs git is refused without it, and is left as it is', async () => {
    initBare(path);
    const open = () => openRepository(path, { engine: 'isomorphic-git' });
    const refused = async (words: string) => {
      const message = expect.stringMatching(new RegExp(`${words}.*[Ii]nstall git`));
      await expect(open()).rejects.toMatchObject({ code: 'Unavailable', message });
    };
    writeFileSync(join(path, 'objects/info/alternates'), '/srv/other.git/objects\n');
    await refused('borrows objects');
    writeFileSync(join(path, 'objects/info/alternates'), '\n');
    writeFileSync(join(path, 'objects/pack/pack-1.promisor'), '');
    await refused('partial clone');
    rmSync(join(path, 'objects/pack/pack-1.promisor'));
    const pack = join(path, 'objects/pack/pack-1.pack');
    writeFileSync(pack, '');
    truncateSync(pack, 70 * 1024 ** 2);
    expect((await open()).engineNote).toContain('is slow without git');
    truncateSync(pack, 600 * 1024 ** 2);
    await refused('the maximum is 512 MiB');
  });
});
