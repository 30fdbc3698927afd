import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { isUnknownOutcome } from '../../src/git/errors.ts';
import { commitOf } from '../../src/git/git-repository.conformance.ts';
import type { GitRemote, GitRepository, Oid, RefUpdate } from '../../src/git/git-repository.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import { fsck, git, initBare, refsOf, temporaryFolder } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { processesWith } from '../support/git/processes.ts';
import { type Fault, type FaultyProxy, startFaultyProxy } from './faulty-proxy.ts';

const TIMEOUT = 1000;
const REFSPECS = ['+refs/heads/*:refs/heads/*'];
const HEADER = 4;

/** Where a response stops. The first four digits of a packet are its length. */
const PLACES: Readonly<Record<string, Partial<Fault>>> = {
  'before the server has the request': { swallowed: true, cut: () => 0 },
  'before the status line': { cut: () => 0 },
  'in the status line': { cut: () => 7 },
  'in the headers': { cut: (start) => Math.floor(start / 2) },
  'after the headers': { cut: (start) => start },
  'in the length of the first packet': { cut: (start) => start + 2 },
  'in a packet': { cut: (start) => start + HEADER + 3 },
  'between packets': { cut: (start, body) => start + Number.parseInt(body.toString('latin1', 0, HEADER), 16) },
  'before the flush': { cut: (start, body) => start + body.length - HEADER },
  'behind the last byte': { cut: (start, body) => start + body.length },
};

/** Requests by purpose. */
const isPush: Fault['matches'] = (method, url) => method === 'POST' && url.endsWith('/git-receive-pack');
const command =
  (name: string): Fault['matches'] =>
  (_method, _url, body) =>
    body.includes(`command=${name}`);

describe('the own client', () => {
  let folder: ReturnType<typeof temporaryFolder>;
  let server: GitServer;
  let proxy: FaultyProxy;
  let clock: ManualClock;
  let origin: string;
  let repository: GitRepository;
  let remote: GitRemote;
  let first: Oid;
  let count = 0;

  beforeEach(async () => {
    folder = temporaryFolder();
    origin = initBare(join(folder.path, 'origin.git'));
    server = await startGitServer({ root: folder.path });
    proxy = await startFaultyProxy(server.url);
    clock = new ManualClock();
    const timeouts = { push: TIMEOUT, fetch: TIMEOUT, listRemote: TIMEOUT };
    repository = await openRepository(initBare(join(folder.path, 'local.git')), { clock, timeouts });
    remote = { url: `${proxy.url}/origin.git` };
    first = await commit();
    await repository.push(remote, [create('refs/heads/main', first)]);
    await repository.fetch(remote, { refspecs: REFSPECS });
  });

  afterEach(async () => {
    await repository.close();
    await proxy.close();
    await server.close();
    fsck(origin);
    fsck(repository.path);
    folder.remove();
  });

  const create = (ref: string, oid: Oid): RefUpdate => ({ type: 'create', ref, new: oid });

  async function commit(): Promise<Oid> {
    count += 1;
    const tree = await repository.editTree(undefined, new Map([['a', { data: Buffer.from(`${count}`) }]]));
    return await repository.writeCommit(commitOf(tree));
  }

  /** The result of a job that meets a fault; the clock is advanced when it hangs. */
  async function meet(fault: Fault, job: () => Promise<unknown>): Promise<Error & { code: string }> {
    proxy.fault = fault;
    const outcome = job().then(
      () => new Error('it succeeded'),
      (error: unknown) => error,
    );
    await proxy.struck();
    if (fault.after === 'hang') clock.advance(TIMEOUT);
    const error = (await outcome) as Error & { code: string };
    proxy.fault = undefined;
    await expect.poll(() => proxy.hanging()).toBe(0);
    const left = readdirSync(repository.path, { recursive: true }).filter((name) => /tmp_|\.lock$/.test(`${name}`));
    expect(left).toEqual([]);
    const helpers = () => processesWith(repository.path).filter(({ arguments: words }) => words.includes('index-pack'));
    await expect.poll(helpers).toEqual([]);
    return error;
  }

  describe.each(['hang', 'close'] as const)('a response that stops, and then: %s', (after) => {
    const code = after === 'hang' ? 'Timeout' : 'Unavailable';

    test('a push reports an unknown outcome, which can be determined', async () => {
      for (const [place, fault] of Object.entries(PLACES)) {
        const next = await commit();
        const updates = [create(`refs/heads/d${count}`, next), create(`refs/tags/d${count}`, next)];
        const error = await meet({ matches: isPush, after, ...fault }, () => repository.push(remote, updates));
        expect([error.code, isUnknownOutcome(error)], `${place}: ${error.message}`).toEqual([code, true]);
        const done = fault.swallowed !== true;
        expect(await repository.pushOutcome(remote, updates), place).toBe(done ? 'done' : 'not done');
        const before = refsOf(origin);
        await repository.push(remote, updates);
        if (done) expect(refsOf(origin)).toEqual(before);
        expect(refsOf(origin).get(`refs/tags/d${count}`)).toBe(next);
      }
      expect(repository.remoteNote?.message).toContain('push by own client');
    });

    test('a listing fails, and succeeds the next time', async () => {
      for (const [place, fault] of Object.entries(PLACES)) {
        const error = await meet({ matches: command('ls-refs'), after, ...fault }, () =>
          repository.listRemoteRefs(remote),
        );
        expect([error.code, isUnknownOutcome(error)], `${place}: ${error.message}`).toEqual([code, false]);
        expect(await repository.listRemoteRefs(remote)).toEqual([{ name: 'refs/heads/main', oid: first }]);
      }
    });

    test('a fetch changes nothing, and succeeds the next time', async () => {
      const writer = await openRepository(initBare(join(folder.path, 'writer.git')));
      for (const [place, fault] of Object.entries(PLACES)) {
        const tree = await writer.editTree(undefined, new Map([['b', { data: Buffer.from(place) }]]));
        const name = `refs/heads/w${count++}`;
        await writer.push({ url: `${server.url}/origin.git` }, [
          create(name, await writer.writeCommit(commitOf(tree))),
        ]);
        const before = refsOf(repository.path);
        const fetch = () => repository.fetch(remote, { refspecs: REFSPECS });
        const error = await meet({ matches: command('fetch'), after, ...fault }, fetch);
        expect(error.code, `${place}: ${error.message}`).toBe(code);
        expect(refsOf(repository.path)).toEqual(before);
        expect((await fetch()).map((change) => change.name)).toEqual([name]);
      }
      expect(repository.remoteNote?.message).toContain('fetch by own client');
      await writer.close();
    });
  });

  test('the timeout also applies to the provider of credentials', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const credentials = () => {
      resolve();
      return new Promise<never>(() => undefined);
    };
    const push = repository.push({ ...remote, credentials }, [create('refs/heads/x', first)]);
    const failed = expect(push).rejects.toMatchObject({ code: 'Timeout' });
    await promise;
    clock.advance(TIMEOUT);
    await failed;
  });

  describe('reports about a push', () => {
    const pkt = (text: string) => `${(text.length + HEADER).toString(16).padStart(HEADER, '0')}${text}`;
    const report = (...lines: readonly string[]) =>
      Buffer.from(`${pkt(`\x01${lines.map((line) => pkt(`${line}\n`)).join('')}0000`)}0000`);

    const WRONG: Readonly<Record<string, Buffer>> = {
      nothing: Buffer.alloc(0),
      'a flush only': Buffer.from('0000'),
      garbage: Buffer.from('<html>it works</html>'),
      'a packet of garbage': Buffer.from(`${pkt('\x01garbage')}0000`),
      'a channel that there is not': Buffer.from(`${pkt('\x09unpack ok')}0000`),
      'an end by the server': Buffer.from(`${pkt('\x03out of memory')}0000`),
      'an error before all': Buffer.from(`${pkt('ERR try later')}0000`),
      'no line for a ref': report('unpack ok', 'ok refs/heads/a'),
      'no line for the pack': report('ok refs/heads/a', 'ok refs/heads/b'),
      'a line for another ref': report('unpack ok', 'ok refs/heads/a', 'ok refs/heads/b', 'ok refs/heads/c'),
      'a ref twice': report('unpack ok', 'ok refs/heads/a', 'ok refs/heads/a', 'ok refs/heads/b'),
      'an unknown verdict': report('unpack ok', 'ok refs/heads/a', 'maybe refs/heads/b'),
    };

    test('that are malformed never count as success or as refusal', async () => {
      for (const [index, [name, body]] of Object.entries(WRONG).entries()) {
        // The report is independent of what the server has done; each report is tested with one of both cases.
        const swallowed = index % 2 === 0;
        const next = await commit();
        const updates = [create('refs/heads/a', next), create('refs/heads/b', next)];
        const fault = { matches: isPush, swallowed, body, after: 'end' } as const;
        const error = await meet(fault, () => repository.push(remote, updates));
        expect([error.code, isUnknownOutcome(error)], `${name}: ${error.message}`).toEqual(['Unavailable', true]);
        expect(await repository.pushOutcome(remote, updates), name).toBe(swallowed ? 'not done' : 'done');
        await repository.push(remote, updates);
        git(origin, ['update-ref', '--stdin'], 'delete refs/heads/a\ndelete refs/heads/b\n');
      }
    });

    test('of a pack that could not be unpacked lead to another one, based on the objects of the remote, and then to a push by git', async () => {
      const body = report('unpack index-pack abnormal exit', 'ng refs/heads/a unpacker error');
      let pushes = 1;
      const matches: Fault['matches'] = (...request) => isPush(...request) && pushes-- > 0;
      proxy.fault = { matches, swallowed: true, body, after: 'end' };
      const [next, last] = [await commit(), await commit()];
      await repository.push(remote, [create('refs/heads/a', next)]);
      expect(repository.remoteNote?.message).toContain('push by own client');
      pushes = 2;
      await repository.push(remote, [{ type: 'update', ref: 'refs/heads/a', old: next, new: last }]);
      expect(repository.remoteNote?.message).toContain('push by git, because the server could not unpack the pack');
      expect(refsOf(origin).get('refs/heads/a')).toBe(last);
      // With a stopped clock the files of the transfer by git would stay.
      proxy.fault = undefined;
    });

    test('that accept one ref of several and refuse another are no conflict, since a ref changed', async () => {
      const body = report('unpack ok', 'ok refs/heads/a', 'ng refs/heads/b not today');
      const updates = [create('refs/heads/a', first), create('refs/heads/b', first)];
      const error = await meet({ matches: isPush, swallowed: true, body, after: 'end' }, () =>
        repository.push(remote, updates),
      );
      expect(error).toMatchObject({ code: 'Unsupported', details: { changed: ['refs/heads/a'] } });
      // This is what git does with refs that are hidden for pushes.
      git(origin, ['config', 'receive.hideRefs', 'refs/hidden']);
      const hidden = [create('refs/heads/c', first), create('refs/hidden/d', first)];
      await expect(repository.push(remote, hidden)).rejects.toMatchObject({
        code: 'Unsupported',
        message: expect.stringContaining('rejected refs/hidden/d (deny updating a hidden ref)'),
      });
      expect([...refsOf(origin).keys()]).toEqual(['refs/heads/c', 'refs/heads/main']);
    });
  });

  describe('a server that is busy', () => {
    const posts = () => server.requests.filter(({ method }) => method === 'POST').length;

    test.each([429, 503])('is retried after its Retry-After, twice (%i)', async (status) => {
      const direct = { url: `${server.url}/origin.git` };
      const patient = await openRepository(repository.path, { clock, timeouts: { push: 10_000, listRemote: 10_000 } });
      await patient.probeRemote(direct);
      const before = posts();
      const push = async (waits: number, behaviour: object) => {
        Object.assign(server.behaviour, { refuse: status, retryAfter: 2, words: 'slow down' });
        const outcome = Promise.allSettled([patient.push(direct, [create('refs/heads/x', first)])]);
        for (let wait = 0; wait < waits; wait += 1) {
          await expect.poll(() => server.requests.at(-1)?.status).toBe(status);
          await expect.poll(() => clock.nextDelay).toBe(2000);
          if (wait === waits - 1) Object.assign(server.behaviour, behaviour);
          clock.advance(2000);
          await expect.poll(() => clock.nextDelay ?? 0).not.toBe(0);
        }
        return (await outcome)[0];
      };
      expect(await push(2, {})).toMatchObject({
        reason: { code: 'Unavailable', details: { retryAfter: 2, status, mayBeApplied: false } },
      });
      expect(posts() - before).toBe(3);
      expect(await push(1, { refuse: undefined })).toMatchObject({ status: 'fulfilled' });
      expect(refsOf(origin).get('refs/heads/x')).toBe(first);
      await patient.close();
    });

    test('is reported when Retry-After exceeds the timeout', async () => {
      const direct = { url: `${server.url}/origin.git` };
      Object.assign(server.behaviour, { refuse: 503, retryAfter: 3600 });
      const push = repository.push(direct, [create('refs/heads/x', first)]);
      await expect(push).rejects.toMatchObject({ code: 'Unavailable', details: { retryAfter: 3600 } });
      await expect(push).rejects.toThrow('retry after 3600 s');
    });

    test('may have carried out a push without a Retry-After', async () => {
      const direct = { url: `${server.url}/origin.git` };
      await repository.probeRemote(direct);
      for (const refuse of [500, 502, 503, 504]) {
        server.behaviour.refuse = refuse;
        const error = await repository.push(direct, [create('refs/heads/x', first)]).catch((thrown: unknown) => thrown);
        expect(isUnknownOutcome(error), `${refuse}`).toBe(true);
        expect(isUnknownOutcome(await repository.listRemoteRefs(direct).catch((thrown: unknown) => thrown))).toBe(
          false,
        );
      }
    });
  });
});
