import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fsck, git, initBare, refsOf, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../../../test/support/git/git-server.ts';
import { processesWith } from '../../../test/support/git/processes.ts';
import type { SluiceError } from '../../foundation/sluice-error.ts';
import { PushRefusedError, RefConflictError } from '../errors.ts';
import { commitOf } from '../git-repository.conformance.ts';
import type { GitRemote, GitRepository, Oid, RefUpdate } from '../git-repository.ts';
import { initRepository, openRepository } from '../open/open-repository.ts';

const USER = { username: 'sluice', password: 'hunter2-with-$(odd)\'"characters' };

const NEEDS_GIT = { code: 'Unsupported', message: expect.stringContaining('nstall git 2.39') };

/** Refuses refs with "bad" in their name, with a message in colour. */
const UPDATE_HOOK = `#!/bin/sh
case "$1" in *bad*) printf 'no \\033[31mbad\\033[0m\\007 names\\n' >&2; exit 1;; esac
`;

/**
 * Common behaviour of a remote over HTTP with the built-in client (`auto`), with git for everything (`git`), and
 * without git.
 */
export function testRemotes(by: 'auto' | 'git' | 'without git'): void {
  const transport = by === 'git' ? 'git' : 'auto';
  const engine = by === 'without git' ? 'isomorphic-git' : 'native';
  const options = { transport, engine } as const;
  describe(`remotes (${by})`, () => {
    let folder: ReturnType<typeof temporaryFolder>;
    let server: GitServer;
    let origin: string;
    let path: string;
    let repository: GitRepository;
    let remote: GitRemote;
    let first: Oid;
    let second: Oid;

    beforeEach(async () => {
      folder = temporaryFolder();
      origin = initBare(join(folder.path, 'origin.git'));
      server = await startGitServer({ root: folder.path, auth: USER, hooks: { update: UPDATE_HOOK } });
      remote = { url: `${server.url}/origin.git`, credentials: async () => ({ basic: USER }) };
      path = initBare(join(folder.path, 'local.git'));
      repository = await openRepository(path, options);
      const tree = await repository.editTree(undefined, new Map([['a', { data: Buffer.from('a') }]]));
      first = await repository.writeCommit(commitOf(tree));
      second = await repository.writeCommit(commitOf(tree, [first]));
    });

    afterEach(async () => {
      await repository.close();
      await server.close();
      folder.remove();
    });

    const create = (ref: string, oid = first): RefUpdate => ({ type: 'create', ref, new: oid });
    const remove = (ref: string, old = first): RefUpdate => ({ type: 'delete', ref, old });

    async function refused(
      updates: RefUpdate[],
      details: object,
      type: typeof RefConflictError | typeof PushRefusedError = RefConflictError,
    ): Promise<string> {
      const before = refsOf(origin);
      const error = await repository.push(remote, updates).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(type);
      expect(error).toMatchObject({ details });
      expect(refsOf(origin)).toEqual(before);
      return (error as Error).message;
    }

    describe('push', () => {
      test('creates, moves and deletes refs in one request', async () => {
        await repository.push(remote, [create('refs/heads/main'), create('refs/heads/drafts/p/w'), create('refs/x/1')]);
        expect([...refsOf(origin).keys()]).toEqual(['refs/heads/drafts/p/w', 'refs/heads/main', 'refs/x/1']);
        const before = server.requests.length;
        await repository.push(remote, [
          { type: 'update', ref: 'refs/heads/main', old: first, new: second },
          remove('refs/heads/drafts/p/w'),
          create('refs/tags/p/v1', second),
          { type: 'verify', ref: 'refs/x/1', old: first },
          { type: 'verify', ref: 'refs/x/2', old: null },
        ]);
        expect([...refsOf(origin)]).toEqual([
          ['refs/heads/main', second],
          ['refs/tags/p/v1', second],
          ['refs/x/1', first],
        ]);
        const posts = server.requests.slice(before).filter(({ url }) => url.endsWith('/git-receive-pack'));
        expect(posts).toHaveLength(1);
        await repository.push(remote, []);
        await repository.push(remote, [{ type: 'verify', ref: 'refs/x/1', old: first }]);
        // A rewrite is no matter: only the expected old value counts.
        await repository.push(remote, [{ type: 'update', ref: 'refs/heads/main', old: second, new: first }]);
        fsck(origin);
      });

      test('an expectation that does not hold changes nothing and names the ref', async () => {
        await repository.push(remote, [create('refs/heads/main'), create('refs/heads/other', second)]);
        const fine = create('refs/heads/fine');
        const moved = (ref: string) => ({ kind: 'moved', ref });
        await refused([fine, create('refs/heads/main', second)], moved('refs/heads/main'));
        await refused(
          [fine, { type: 'update', ref: 'refs/heads/other', old: first, new: first }],
          moved('refs/heads/other'),
        );
        await refused([remove('refs/heads/main', second), fine], moved('refs/heads/main'));
        await refused([fine, remove('refs/heads/none')], moved('refs/heads/none'));
        await refused([fine, { type: 'verify', ref: 'refs/heads/main', old: second }], moved('refs/heads/main'));
        await refused([fine, { type: 'verify', ref: 'refs/heads/main', old: null }], moved('refs/heads/main'));
        await refused([{ type: 'verify', ref: 'refs/heads/none', old: first }], moved('refs/heads/none'));
      });

      test('names that collide with folders are reported as such', async () => {
        await repository.push(remote, [create('refs/heads/drafts/a/b')]);
        const details = { kind: 'collision', ref: 'refs/heads/drafts/a/b/c' };
        const message = await refused([create('refs/heads/fine'), create('refs/heads/drafts/a/b/c')], details);
        expect(message).toContain('refs/heads/drafts/a/b ');
        await refused([create('refs/heads/drafts/a')], { kind: 'collision' });
      });

      test('a hook that refuses one ref refuses all, with its message', async () => {
        const bad = { ref: 'refs/heads/bad' };
        const message = await refused([create('refs/heads/ok'), create('refs/heads/bad')], bad, PushRefusedError);
        expect(message).toContain('no bad names');
        expect(message).not.toMatch(/[\x00-\x08\x0b-\x1f]/);
        if (by === 'without git') return;
        mkdirSync(join(origin, 'hooks'), { recursive: true });
        writeFileSync(join(origin, 'hooks/pre-receive'), './bin/sh\necho closed for today >&2\nexit 1\n');
        chmodSync(join(origin, 'hooks/pre-receive'), 0o755);
        remote = { url: `file://${origin}` };
        const whole = { ref: undefined };
        const all = await refused([create('refs/heads/a'), create('refs/heads/b')], whole, PushRefusedError);
        expect(all).toContain('closed for today');
      });

      test('an atomic push that a server applied in part is reported as that', async () => {
        git(origin, ['config', 'receive.hideRefs', 'refs/hidden']);
        const updates = [create('refs/heads/main'), create('refs/hidden/x')];
        const error = await repository.push(remote, updates).catch((thrown: unknown) => thrown);
        expect(error).toMatchObject({ code: 'Unsupported', details: { changed: ['refs/heads/main'] } });
        expect((error as Error).message).toContain('rejected refs/hidden/x (deny updating a hidden ref)');
        expect(refsOf(origin).size).toBe(1);
      });

      test('when the connection breaks, the outcome is unknown, and a second push confirms it', async () => {
        const updates = [create('refs/heads/main'), create('refs/tags/v1', second)];
        for (const moment of ['before', 'after'] as const) {
          server.behaviour.dropPush = moment;
          await expect(repository.push(remote, updates)).rejects.toMatchObject({
            code: 'Unavailable',
            message: expect.stringContaining('outcome is unknown'),
          });
          expect(refsOf(origin).size).toBe(moment === 'before' ? 0 : 2);
        }
        server.behaviour.dropPush = undefined;
        await repository.push(remote, updates);
        expect(refsOf(origin).size).toBe(2);
      });

      test('what cannot be pushed is reported before anything is sent', async () => {
        const missing = create('refs/heads/x', '1234567890123456789012345678901234567890');
        await expect(repository.push(remote, [missing])).rejects.toMatchObject({ code: 'NotFound' });
        await expect(repository.push(remote, [create('x')])).rejects.toMatchObject({ code: 'InvalidInput' });
        const double = [create('refs/heads/x'), create('refs/heads/x')];
        await expect(repository.push(remote, double)).rejects.toMatchObject({ code: 'InvalidInput' });
        const many = Array.from({ length: 1001 }, (_, n) => create(`refs/heads/n${n}`));
        await expect(repository.push(remote, many)).rejects.toMatchObject({ code: 'LimitExceeded' });
        expect(server.requests).toEqual([]);
      });

      test('of many writers one wins', async () => {
        await repository.push(remote, [create('refs/heads/main')]);
        const tree = await repository.editTree(undefined, new Map());
        const attempts = await Promise.allSettled(
          ['a', 'b', 'c', 'd'].map(async (name) => {
            const next = await repository.writeCommit(commitOf(tree, [first], name));
            await repository.push(remote, [
              { type: 'update', ref: 'refs/heads/main', old: first, new: next },
              create(`refs/tags/${name}`, next),
            ]);
          }),
        );
        const lost = attempts.filter(({ status }) => status === 'rejected');
        expect(lost).toHaveLength(3);
        for (const attempt of lost) expect(attempt).toMatchObject({ reason: { code: 'Conflict' } });
        expect(refsOf(origin).size).toBe(2);
      });
    });

    describe('fetch and listing', () => {
      beforeEach(async () => {
        await repository.push(remote, [
          create('refs/heads/main'),
          create('refs/heads/a/b', second),
          create('refs/tags/v1'),
        ]);
      });

      test('fetches the refs of the refspecs, and returns the changed ones', async () => {
        const refspecs = ['+refs/heads/*:refs/heads/*', '+refs/tags/*:refs/remote-tags/*'];
        expect(await repository.fetch(remote, { refspecs })).toEqual([
          { name: 'refs/heads/a/b', before: undefined, after: second },
          { name: 'refs/heads/main', before: undefined, after: first },
          { name: 'refs/remote-tags/v1', before: undefined, after: first },
        ]);
        expect([...refsOf(path).keys()]).toEqual(['refs/heads/a/b', 'refs/heads/main', 'refs/remote-tags/v1']);
        expect(await repository.fetch(remote, { refspecs })).toEqual([]);
        await repository.push(remote, [
          remove('refs/heads/a/b', second),
          { type: 'update', ref: 'refs/heads/main', old: first, new: second },
        ]);
        expect(await repository.fetch(remote, { refspecs: ['+refs/heads/main:refs/heads/main'], prune: true })).toEqual(
          [{ name: 'refs/heads/main', before: first, after: second }],
        );
        expect(await repository.fetch(remote, { refspecs, prune: true })).toEqual([
          { name: 'refs/heads/a/b', before: second, after: undefined },
        ]);
        fsck(path);
      });

      test('lists refs without fetching', async () => {
        expect(await repository.listRemoteRefs(remote)).toEqual([
          { name: 'refs/heads/a/b', oid: second },
          { name: 'refs/heads/main', oid: first },
          { name: 'refs/tags/v1', oid: first },
        ]);
        expect(await repository.listRemoteRefs(remote, ['refs/heads/m'])).toEqual([
          { name: 'refs/heads/main', oid: first },
        ]);
        expect(await repository.listRemoteRefs(remote, ['refs/tags/', 'refs/x'])).toEqual([
          { name: 'refs/tags/v1', oid: first },
        ]);
        expect(refsOf(path).size).toBe(0);
      });

      test('is all or nothing where one ref cannot be written', async () => {
        await repository.transaction([create('refs/heads/main/folder')]);
        const refspecs = ['+refs/heads/*:refs/heads/*'];
        await expect(repository.fetch(remote, { refspecs })).rejects.toMatchObject({
          details: { kind: 'collision', ref: 'refs/heads/main' },
        });
        expect([...refsOf(path).keys()]).toEqual(['refs/heads/main/folder']);
      });

      test('a ref that takes the place of a folder is fetched when its predecessors are pruned', async () => {
        const refspecs = ['+refs/heads/*:refs/heads/*'];
        await repository.fetch(remote, { refspecs });
        await repository.push(remote, [remove('refs/heads/a/b', second)]);
        await repository.push(remote, [create('refs/heads/a')]);
        await expect(repository.fetch(remote, { refspecs })).rejects.toMatchObject({ details: { kind: 'collision' } });
        expect(await repository.fetch(remote, { refspecs, prune: true })).toEqual([
          { name: 'refs/heads/a', before: undefined, after: first },
          { name: 'refs/heads/a/b', before: second, after: undefined },
        ]);
      });

      test('a history that was rewritten needs a refspec with "+"', async () => {
        await repository.transaction([create('refs/heads/main', second)]);
        const plain = { refspecs: ['refs/heads/main:refs/heads/main'] };
        await expect(repository.fetch(remote, plain)).rejects.toMatchObject(
          by === 'without git' ? NEEDS_GIT : { details: { kind: 'moved' } },
        );
        expect(await repository.fetch(remote, { refspecs: ['+refs/heads/main:refs/heads/main'] })).toHaveLength(1);
        const none = { refspecs: ['+refs/heads/none:refs/heads/none'] };
        await expect(repository.fetch(remote, none)).rejects.toMatchObject({ code: 'NotFound' });
      });

      test('refspecs must name where they write', async () => {
        for (const refspec of [
          '',
          'main',
          'refs/heads/main',
          'refs/heads/*:refs/heads/main',
          'refs/heads/*:refs/h/*/*',
          'a:b:c',
        ])
          await expect(repository.fetch(remote, { refspecs: [refspec] }), refspec).rejects.toMatchObject({
            code: 'InvalidInput',
          });
        await expect(repository.fetch(remote, { refspecs: [] })).rejects.toMatchObject({ code: 'InvalidInput' });
        const refspecs = [
          '+refs/heads/*:refs/heads/*',
          '^refs/heads/a/*',
          `${first}:refs/pins/one`,
          'HEAD:refs/pins/head',
        ];
        if (by === 'without git')
          return await expect(repository.fetch(remote, { refspecs })).rejects.toMatchObject(NEEDS_GIT);
        const names = (await repository.fetch(remote, { refspecs })).map(({ name }) => name);
        expect(names).toEqual(['refs/heads/main', 'refs/pins/head', 'refs/pins/one']);
      });

      test('an object that is written here and fetched too is one object', async () => {
        const tree = await repository.editTree(undefined, new Map([['twice', { data: Buffer.from('twice') }]]));
        const commit = await repository.writeCommit(commitOf(tree, [first]));
        const other = await initRepository(`${folder.path}/other.git`, options);
        await other.fetch(remote, { refspecs: ['+refs/heads/*:refs/heads/*'] });
        await other.editTree(undefined, new Map([['twice', { data: Buffer.from('twice') }]]));
        expect(await other.writeCommit(commitOf(tree, [first]))).toBe(commit);
        await other.push(remote, [create('refs/heads/twice', commit)]);
        await other.close();
        await repository.fetch(remote, { refspecs: ['+refs/heads/twice:refs/heads/twice'] });
        await repository.transaction([create('refs/heads/same', commit)]);
        expect(refsOf(path).get('refs/heads/twice')).toBe(refsOf(path).get('refs/heads/same'));
        fsck(path);
      });

      test('works with a repository on this machine', async () => {
        const file = { url: `file://${origin}` };
        if (by === 'without git') return await expect(repository.listRemoteRefs(file)).rejects.toMatchObject(NEEDS_GIT);
        expect(await repository.listRemoteRefs(file)).toHaveLength(3);
        expect(await repository.fetch(file, { refspecs: ['+refs/*:refs/origin/*'] })).toHaveLength(3);
        await repository.push(file, [create('refs/heads/by-path')]);
        expect(refsOf(origin).get('refs/heads/by-path')).toBe(first);
      });
    });

    describe('trouble', () => {
      test('a server that accepts the connection and never answers causes a timeout, which ends all processes', async () => {
        const silent = createServer((socket) => socket.on('error', () => undefined).resume());
        await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
        const address = silent.address();
        const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/x.git`;
        await repository.transaction([]);
        const hasty = await openRepository(path, { ...options, timeouts: { fetch: 50, push: 50, listRemote: 50 } });
        for (const call of [
          () => hasty.listRemoteRefs({ url }),
          () => hasty.fetch({ url }, { refspecs: ['+refs/heads/*:refs/heads/*'] }),
          () => hasty.push({ url }, [create('refs/heads/x')]),
        ])
          await expect(call()).rejects.toMatchObject({ code: 'Timeout' });
        await expect.poll(() => processesWith(url)).toEqual([]);
        const controller = new AbortController();
        const cancelled = repository.listRemoteRefs({ url }, [], controller.signal);
        const connections = () => new Promise<number>((resolve) => silent.getConnections((_, count) => resolve(count)));
        await expect.poll(connections).toBeGreaterThan(0);
        await expect.poll(() => processesWith(url).length > 1).toBe(transport === 'git');
        controller.abort();
        await expect(cancelled).rejects.toMatchObject({ code: 'Unavailable' });
        await expect.poll(() => processesWith(url)).toEqual([]);
        await expect.poll(connections).toBe(0);
        await hasty.close();
        silent.close();
      });

      test('what a server answers has a meaning', async () => {
        const list = (more: object = {}) => repository.listRemoteRefs({ ...remote, ...more });
        await expect(list({ credentials: undefined })).rejects.toMatchObject({ code: 'Refused' });
        const wrong = async () => ({ basic: { username: 'sluice', password: 'wrong' } });
        await expect(list({ credentials: wrong })).rejects.toMatchObject({ code: 'Refused' });
        await expect(list({ url: `${server.url}/none.git` })).rejects.toMatchObject({ code: 'NotFound' });
        if (by !== 'without git')
          await expect(list({ url: `file://${folder.path}/none.git` })).rejects.toMatchObject({ code: 'NotFound' });
        await expect(list({ url: 'http://127.0.0.1:1/x.git' })).rejects.toMatchObject({ code: 'Unavailable' });
        server.behaviour.redirectTo = 'http://127.0.0.1:1';
        await expect(list()).rejects.toMatchObject({ code: 'Refused', message: expect.stringContaining('redirects') });
        server.behaviour.redirectTo = undefined;
        server.behaviour.refuse = 503;
        await expect(list()).rejects.toMatchObject({ code: 'Unavailable' });
        server.behaviour.refuse = 403;
        await expect(list()).rejects.toMatchObject({ code: 'Refused' });
      });

      test('a refusal names where the credentials are, and none of them', async () => {
        const used = (basic?: typeof USER) => ({
          ...remote,
          credentials: async () => ({ source: 'Secret default/git', ...(basic === undefined ? {} : { basic }) }),
        });
        const wrong = used({ username: 'sluice', password: 'wr0ng-t0ken' });
        const fetch = { refspecs: ['+refs/heads/*:refs/heads/*'] };
        const refusalOf = async (call: Promise<unknown>) => {
          const { code, message } = (await call.catch((error: unknown) => error)) as SluiceError;
          expect(code).toBe('Refused');
          expect(message).not.toMatch(/wr0ng|hunter2/);
          return message;
        };
        const rejected = 'rejected the credentials of Secret default/git: renew them there';
        expect(await refusalOf(repository.listRemoteRefs(wrong))).toContain(rejected);
        expect(await refusalOf(repository.fetch(wrong, fetch))).toContain(rejected);
        expect(await refusalOf(repository.push(wrong, [create('refs/heads/main')]))).toContain(rejected);
        expect(await refusalOf(repository.listRemoteRefs(used()))).toContain(
          'requires credentials: Secret default/git has neither username and password nor a token, add them there',
        );
        server.behaviour.refuse = 403;
        expect(await refusalOf(repository.listRemoteRefs(used(USER)))).toContain(
          'denied the request: check the rights of the account whose credentials are in Secret default/git',
        );
        expect(await refusalOf(repository.listRemoteRefs(remote))).toMatch(/check the rights of the account(?! whose)/);
      });

      test('addresses that are not plain https, ssh, loopback http or file are refused, and secrets in them are not repeated', async () => {
        for (const url of [
          'https://user:topsecret@example.com/x.git',
          'http://topsecret@127.0.0.1/x.git',
          'http://example.com/x.git',
          'http://127.0.0.1.example.com/x.git',
          'ssh://git:topsecret@example.com/x.git',
          'ssh://-oProxyCommand=touch/x.git',
          'git@-oProxyCommand=touch:x.git',
          'example.com:x.git',
          'ext::sh -c "touch /tmp/x"',
          'file://host/x.git',
          '/plain/path',
          '--upload-pack=touch',
          'https://example.com/x.git?a=b',
          'https://example.com/\nx.git',
          '',
        ]) {
          const error = await repository.listRemoteRefs({ url }).catch((thrown: unknown) => thrown);
          expect(error, url).toMatchObject({ code: 'InvalidInput' });
          expect(String(error)).not.toContain('topsecret');
        }
        const broken = async () => ({ basic: { username: 'a\nhost=evil', password: 'b' } });
        await expect(repository.listRemoteRefs({ ...remote, credentials: broken })).rejects.toMatchObject({
          code: 'InvalidInput',
        });
      });

      test('the password is in no argument, no environment and no file', async () => {
        server.behaviour.hang = 'push';
        const controller = new AbortController();
        const push = repository.push(remote, [create('refs/heads/x')], controller.signal);
        const rejected = expect(push).rejects.toMatchObject({ code: 'Unavailable' });
        // The request that hangs has authenticated, so that the password is with git by now.
        const hanging = () => server.requests.some(({ method, user }) => method === 'POST' && user === USER.username);
        await expect.poll(hanging).toBe(true);
        const processes = processesWith(remote.url);
        expect(processes.length > 1).toBe(transport === 'git');
        for (const { arguments: words, environment } of processes) {
          expect(words.join(' ')).not.toContain('hunter2');
          expect(environment.join(' ')).not.toContain('hunter2');
        }
        for (const entry of readdirSync(folder.path, { recursive: true, withFileTypes: true }))
          if (entry.isFile())
            expect(readFileSync(join(entry.parentPath, entry.name), 'latin1')).not.toContain('hunter2');
        controller.abort();
        await rejected;
      });
    });
  });
}
