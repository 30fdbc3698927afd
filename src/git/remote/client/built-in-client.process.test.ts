import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fsck, GIT_ENVIRONMENT, git, initBare, refsOf, temporaryFolder } from '../../../../test/support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../../../../test/support/git/git-server.ts';
import { isUnknownOutcome } from '../../errors.ts';
import { commitOf } from '../../git-repository.conformance.ts';
import type { GitRemote, GitRepository, Oid, RefUpdate } from '../../git-repository.ts';
import { openRepository } from '../../open/open-repository.ts';

const REFSPECS = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/tags/*'];

describe('the own client over HTTP', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let server: GitServer;
  let origin: string;
  let path: string;
  let repository: GitRepository;
  let remote: GitRemote;
  let first: Oid;

  beforeEach(async () => {
    folder = temporaryFolder();
    origin = initBare(join(folder.path, 'origin.git'));
    server = await startGitServer({ root: folder.path });
    remote = { url: `${server.url}/origin.git` };
    path = initBare(join(folder.path, 'local.git'));
    repository = await openRepository(path);
    first = await commit({ a: 'a' });
    await repository.push(remote, [create('refs/heads/main', first)]);
    await repository.transaction([create('refs/heads/main', first)]);
  });

  afterEach(async () => {
    await repository.close();
    await server.close();
    folder.remove();
  });

  const create = (ref: string, oid: Oid): RefUpdate => ({ type: 'create', ref, new: oid });

  async function commit(files: Readonly<Record<string, string | Buffer>>, parents: readonly Oid[] = [], message = 'm') {
    const edits = new Map(Object.entries(files).map(([name, data]) => [name, { data: Buffer.from(data) }]));
    return repository.writeCommit(commitOf(await repository.editTree(parents[0], edits), parents, message));
  }

  const posts = (service: string) =>
    server.requests.filter(({ method, url }) => method === 'POST' && url.endsWith(`/git-${service}`)).length;
  const gets = () => server.requests.filter(({ method }) => method === 'GET').map(({ url }) => url.split('=')[1]);

  async function failure(work: Promise<unknown>): Promise<Error & { code: string; details: object }> {
    return (await work.then(
      () => expect.unreachable('it should have failed'),
      (error: unknown) => error,
    )) as Error & { code: string; details: object };
  }

  test('a push is one request, after one for the capabilities of the server', async () => {
    expect(gets()).toEqual(['git-receive-pack']);
    expect(posts('receive-pack')).toBe(1);
    for (const name of ['x', 'y'])
      await repository.push(remote, [create(`refs/heads/${name}`, await commit({ [name]: name }, [first]))]);
    expect(posts('receive-pack')).toBe(3);
    expect(server.requests).toHaveLength(4);
    expect(repository.remoteNote?.message).toBe(`${remote.url}: push by own client`);
    await repository.fetch(remote, { refspecs: REFSPECS });
    expect(gets()).toEqual(['git-receive-pack', 'git-upload-pack']);
    expect(repository.remoteNote?.message).toBe(`${remote.url}: fetch by own client; push by own client`);
    fsck(origin);
  });

  test('commits with the empty tree, annotated tags and refs to anything arrive whole', async () => {
    const empty = await commit({});
    const blob = await repository.writeBlob(Buffer.from('alone'));
    await repository.transaction([create('refs/x/empty', empty)]);
    const text = `object ${first}\ntype commit\ntag v1\ntagger A <a@example.com> 1700000000 +0000\n\nm\n`;
    const tag = git(path, ['hash-object', '-t', 'tag', '-w', '--stdin'], text);
    await repository.push(remote, [
      create('refs/x/empty', empty),
      create('refs/x/blob', blob),
      create('refs/tags/v1', tag),
    ]);
    expect(git(origin, ['rev-parse', 'refs/tags/v1^{commit}'])).toBe(first);
    fsck(origin);
  });

  test('a push of more than is made in memory is a stream of git', async () => {
    const COMMITS = 1001;
    const lines = Array.from({ length: COMMITS }, (_, n) => [
      'commit refs/heads/large',
      `mark :${n + 2}`,
      'committer T <t@example.com> 1700000000 +0000\ndata 1\nm',
      `from ${n === 0 ? first : `:${n + 1}`}`,
    ]);
    git(path, ['fast-import', '--quiet'], `${lines.flat().join('\n')}\n`);
    const large = refsOf(path).get('refs/heads/large') ?? '';
    await repository.push(remote, [create('refs/heads/large', large)]);
    expect(repository.remoteNote?.message).toContain('push by own client');
    expect(refsOf(origin).get('refs/heads/large')).toBe(large);
    expect(git(origin, ['rev-list', '--count', 'refs/heads/large'])).toBe(`${COMMITS + 1}`);
    fsck(origin);
  });

  test('objects that the remote has lost since are sent again', async () => {
    const second = await commit({ b: 'b' }, [first]);
    await repository.push(remote, [create('refs/heads/x', second)]);
    git(origin, ['update-ref', '-d', 'refs/heads/x']);
    git(origin, ['gc', '--quiet', '--prune=now']);
    const third = await commit({ c: 'c' }, [second]);
    await repository.push(remote, [create('refs/heads/y', third)]);
    expect(refsOf(origin).get('refs/heads/y')).toBe(third);
    fsck(origin);
    const fourth = await commit({ d: 'd' }, [third]);
    await repository.push(remote, [create('refs/heads/z', fourth)]);
    expect(repository.remoteNote?.message).toContain('push by own client');
  });

  describe('a remote that was restored to an older state', () => {
    let lost: Oid;
    /** Builds on what the remote lost, and is sent without anything that would show that when it is unpacked. */
    let onTop: Oid;

    beforeEach(async () => {
      lost = await commit({ b: 'b' }, [first]);
      onTop = await commit({}, [lost]);
      await repository.push(remote, [create('refs/heads/draft', first), create('refs/heads/x', lost)]);
      await repository.push(remote, [{ type: 'update', ref: 'refs/heads/draft', old: first, new: lost }]);
      git(origin, ['update-ref', '-d', 'refs/heads/x']);
      git(origin, ['update-ref', 'refs/heads/draft', first]);
      git(origin, ['gc', '--quiet', '--prune=now']);
    });

    test('keeps a ref that is to be removed and has another value now', async () => {
      const before = refsOf(origin);
      for (const more of [[], [create('refs/heads/y', onTop)], [create('refs/heads/y', first)]]) {
        const removal: RefUpdate = { type: 'delete', ref: 'refs/heads/draft', old: lost };
        expect(await failure(repository.push(remote, [...more, removal]))).toMatchObject({
          details: { kind: 'moved', ref: 'refs/heads/draft' },
        });
        expect(refsOf(origin)).toEqual(before);
      }
      // The same where the refs can only be read by git.
      server.behaviour.oldProtocol = true;
      const other = await openRepository(path);
      expect(await failure(other.push(remote, [{ type: 'delete', ref: 'refs/heads/draft', old: lost }]))).toMatchObject(
        {
          details: { kind: 'moved', ref: 'refs/heads/draft' },
        },
      );
      expect(other.remoteNote?.message).toContain('push by git');
      await other.close();
      expect(refsOf(origin)).toEqual(before);
    });

    test('without git, a lost race whose refs cannot be listed is an error that may pass', async () => {
      server.behaviour.oldProtocol = true;
      const other = await openRepository(path, { engine: 'isomorphic-git' });
      const removal: RefUpdate = { type: 'delete', ref: 'refs/heads/draft', old: lost };
      const error = await failure(other.push(remote, [removal]));
      expect(error).toMatchObject({ code: 'Unavailable' });
      expect(error.message).toContain('Try again, or install git');
      await other.close();
    });

    test('removes nothing before it has the replacement', async () => {
      const before = posts('receive-pack');
      await repository.push(remote, [
        create('refs/heads/y', onTop),
        { type: 'delete', ref: 'refs/heads/draft', old: first },
      ]);
      expect(posts('receive-pack')).toBe(before + 1);
      expect([...refsOf(origin)]).toEqual([
        ['refs/heads/main', first],
        ['refs/heads/y', onTop],
      ]);
      fsck(origin);
    });

    test('gets the rest of a push that it applied in part', async () => {
      await repository.push(remote, [create('refs/heads/y', onTop), create('refs/heads/z', first)]);
      expect(refsOf(origin).get('refs/heads/y')).toBe(onTop);
      expect(refsOf(origin).get('refs/heads/z')).toBe(first);
      expect(repository.remoteNote?.message).toContain('push by own client');
      fsck(origin);
    });

    test('is reported as having applied a part if it rejects the rest', async () => {
      await server.close();
      server = await startGitServer({
        root: folder.path,
        hooks: { update: '#!/bin/sh\ntest "$1" != refs/heads/y\n' },
      });
      remote = { url: `${server.url}/origin.git` };
      const other = await openRepository(path);
      await other.fetch(remote, { refspecs: ['+refs/heads/main:refs/heads/main'] });
      await other.transaction([create('refs/heads/seen', lost)]);
      expect(
        await failure(other.push(remote, [create('refs/heads/y', onTop), create('refs/heads/z', first)])),
      ).toMatchObject({ code: 'Unsupported', details: { changed: ['refs/heads/z'] } });
      expect(refsOf(origin).has('refs/heads/y')).toBe(false);
      await other.close();
    });
  });

  test('the outcome of a push whose answer was lost can be read', async () => {
    const second = await commit({ b: 'b' }, [first]);
    const draft = create('refs/heads/draft', second);
    await repository.push(remote, [draft]);
    const publish: RefUpdate[] = [
      { type: 'update', ref: 'refs/heads/main', old: first, new: second },
      create('refs/tags/v1', second),
      { type: 'delete', ref: 'refs/heads/draft', old: second },
    ];
    server.behaviour.dropPush = 'before';
    const before = await failure(repository.push(remote, publish));
    expect([before.code, isUnknownOutcome(before)]).toEqual(['Unavailable', true]);
    expect(await repository.pushOutcome(remote, publish)).toBe('not done');
    server.behaviour.dropPush = 'after';
    expect(isUnknownOutcome(await failure(repository.push(remote, publish)))).toBe(true);
    expect(await repository.pushOutcome(remote, publish)).toBe('done');
    server.behaviour.dropPush = undefined;
    const refs = refsOf(origin);
    // Sent again it is refused by its own expectations, and counts as done.
    await repository.push(remote, publish);
    expect(refsOf(origin)).toEqual(refs);
    // Also when others have gone on since.
    const third = await commit({ c: 'c' }, [second]);
    await repository.push(remote, [{ type: 'update', ref: 'refs/heads/main', old: second, new: third }]);
    expect(await repository.pushOutcome(remote, publish)).toBe('done');
    expect(await failure(repository.push(remote, publish))).toMatchObject({
      details: { kind: 'moved', ref: 'refs/heads/main' },
    });
    // Removals only: that nothing is there any more is what was wanted, whatever stands beside them.
    const removal: RefUpdate[] = [
      { type: 'delete', ref: 'refs/heads/draft', old: second },
      { type: 'verify', ref: 'refs/heads/main', old: third },
    ];
    expect(await repository.pushOutcome(remote, removal)).toBe('done');
    expect(await repository.pushOutcome(remote, [{ type: 'delete', ref: 'refs/heads/draft', old: second }])).toBe(
      'done',
    );
  });

  test('a push may hold updates that are done already', async () => {
    const second = await commit({ b: 'b' }, [first]);
    await repository.push(remote, [create('refs/heads/a', second)]);
    await repository.push(remote, [create('refs/heads/a', second), create('refs/heads/b', second)]);
    expect([...refsOf(origin).keys()]).toEqual(['refs/heads/a', 'refs/heads/b', 'refs/heads/main']);
  });

  test('a ref that another writer holds on the server is reported as locked', async () => {
    const second = await commit({ b: 'b' }, [first]);
    writeFileSync(join(origin, 'refs/heads/main.lock'), '');
    const update = { type: 'update', ref: 'refs/heads/main', old: first, new: second } as const;
    const error = await failure(repository.push(remote, [create('refs/heads/x', second), update]));
    expect(error).toMatchObject({ code: 'Conflict', details: { kind: 'locked', ref: 'refs/heads/main' } });
    rmSync(join(origin, 'refs/heads/main.lock'));
    await repository.push(remote, [create('refs/heads/x', second), update]);
  });

  test('later refs are listed only on request', async () => {
    await repository.fetch(remote, { refspecs: REFSPECS });
    const second = await commit({ b: 'b' }, [first]);
    await repository.push(remote, [create('refs/tags/v1', second), create('refs/heads/draft', second)]);
    const poll = (isNeeded: (names: readonly string[]) => boolean) =>
      repository.fetch(remote, {
        refspecs: REFSPECS.slice(0, 1),
        later: { refspecs: REFSPECS.slice(1), isNeeded: (changes) => isNeeded(changes.map(({ name }) => name)) },
        prune: true,
      });
    expect((await poll(() => false)).map(({ name }) => name)).toEqual(['refs/heads/draft']);
    expect(refsOf(path).has('refs/tags/v1')).toBe(false);
    await repository.push(remote, [{ type: 'delete', ref: 'refs/heads/draft', old: second }]);
    const changes = await poll((names) => names.includes('refs/heads/draft'));
    expect(changes.map(({ name }) => name)).toEqual(['refs/heads/draft', 'refs/tags/v1']);
  });

  describe('servers', () => {
    test('one that requires a listing of its refs before each push gets it, and no other', async () => {
      server.behaviour.wantsGetFirst = true;
      await repository.push(remote, [create('refs/heads/w', first)]);
      for (const name of ['x', 'y']) await repository.push(remote, [create(`refs/heads/${name}`, first)]);
      expect(refsOf(origin).size).toBe(4);
      expect(repository.remoteNote?.message).toContain('listing the refs before each push');
      // One to find out what the server can do, and one for each of the three.
      expect(gets()).toHaveLength(4);
      expect(server.requests.filter(({ status }) => status === 400)).toHaveLength(1);
    });

    test('one with an old protocol is read by git, and one without atomic pushes is not written to', async () => {
      git(origin, ['config', 'receive.advertiseAtomic', 'false']);
      server.behaviour.oldProtocol = true;
      const other = await openRepository(initBare(join(folder.path, 'other.git')));
      expect(await other.fetch(remote, { refspecs: REFSPECS })).toHaveLength(1);
      expect(await other.listRemoteRefs(remote)).toHaveLength(1);
      expect(other.remoteNote?.message).toContain('fetch by git, because the server does not support version 2');
      const byGit = await openRepository(other.path, { transport: 'git' });
      for (const one of [other, byGit]) {
        const error = await failure(one.push(remote, [create('refs/heads/x', first)]));
        expect(error).toMatchObject({ code: 'Unsupported', message: expect.stringContaining('atomic') });
        expect(one.remoteNote).toMatchObject({
          way: 'ReadOnly',
          message: expect.stringContaining('push not possible: '),
        });
      }
      expect(refsOf(origin).size).toBe(1);
      git(origin, ['config', 'receive.advertiseAtomic', 'true']);
      await other.probeRemote(remote);
      expect(other.remoteNote).toMatchObject({ way: 'Git', message: expect.stringContaining('push by own client') });
      await byGit.close();
      await other.close();
    });

    test('a repository with SHA-256 ids is refused with that reason', async () => {
      const sha256 = join(folder.path, 'sha256.git');
      execFileSync('git', ['init', '--quiet', '--bare', '--object-format=sha256', sha256], { env: GIT_ENVIRONMENT });
      const target = { url: `${server.url}/sha256.git` };
      for (const call of [
        () => repository.push(target, [create('refs/heads/x', first)]),
        () => repository.listRemoteRefs(target),
        () => repository.fetch(target, { refspecs: REFSPECS }),
      ])
        expect(await failure(call())).toMatchObject({ code: 'Unsupported', message: expect.stringContaining('SHA-1') });
    });

    test('a busy server returns Retry-After, and has changed nothing', async () => {
      Object.assign(server.behaviour, { refuse: 429, retryAfter: 17, words: 'slow down' });
      const error = await failure(repository.push(remote, [create('refs/heads/x', first)]));
      expect(error).toMatchObject({ code: 'Unavailable', details: { retryAfter: 17, mayBeApplied: false } });
      expect(error.message).toContain('retry after 17 s');
      server.behaviour.refuse = 500;
      expect(isUnknownOutcome(await failure(repository.push(remote, [create('refs/heads/x', first)])))).toBe(true);
    });
  });

  describe('credentials', () => {
    const old = { username: 'robot', password: 'old-secret' };
    const renewed = { username: 'robot', password: 'new-secret' };

    test('are read again once when the server rejects them', async () => {
      let current = old;
      let asked = 0;
      const target = {
        ...remote,
        credentials: async () => {
          asked += 1;
          return { basic: current };
        },
      };
      server.behaviour.auth = old;
      await repository.push(target, [create('refs/heads/x', first)]);
      expect(asked).toBe(1);
      server.behaviour.auth = renewed;
      // Renewed between the two times that it is asked.
      const late = { ...remote, credentials: async () => ({ basic: asked++ === 1 ? old : renewed }) };
      await repository.push(late, [create('refs/heads/y', first)]);
      expect(asked).toBe(3);
      current = old;
      const error = await failure(repository.push(target, [create('refs/heads/z', first)]));
      expect(error).toMatchObject({ code: 'Refused', details: { status: 401 } });
      expect(asked).toBe(5);
    });

    test('are in no message, nor is any text of the server, even if it returns them', async () => {
      const encoded = Buffer.from(`${old.username}:${old.password}`).toString('base64');
      Object.assign(server.behaviour, { refuse: 403, words: `no: ${old.password} ${encoded}` });
      const error = await failure(repository.listRemoteRefs({ ...remote, credentials: async () => ({ basic: old }) }));
      expect(error).toMatchObject({ code: 'Refused', message: expect.not.stringContaining('no:') });
      expect(error.message).not.toContain(old.password);
    });
  });
});
