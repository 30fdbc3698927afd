import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test, vi } from 'vitest';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { WriteQueue } from '../../src/package/transaction/write-queue.ts';
import { type GitServer, type GitServerOptions, startGitServer } from '../support/git/git-server.ts';
import { openStore } from '../support/open-store.ts';
import { anna, type Scratch, scratchRepository } from '../support/scratch-repository.ts';
import { draft, outcomeOf } from '../support/shop.ts';

interface World extends AsyncDisposable {
  readonly scratch: Scratch;
  readonly server: GitServer;
  /** `push`: milliseconds that a push has. */
  connect(process: string, transport?: 'auto' | 'git', push?: number): Promise<RevisionStore>;
  /** Number of requests that pushed something. */
  pushes(): number;
}

/** A repository behind a server, and processes with mirrors of their own. */
async function start(options: Omit<GitServerOptions, 'root'> = {}): Promise<World> {
  const scratch = await scratchRepository();
  const server = await startGitServer({ root: scratch.folder, ...options });
  const stores: RevisionStore[] = [];
  return {
    scratch,
    server,
    async connect(process, transport = 'auto', push = 60_000) {
      const store = await openStore(`${server.url}/packages.git`, join(scratch.folder, process), {
        git: { transport, timeouts: { push, fetch: 60_000, listRemote: 60_000 } },
      });
      stores.push(store);
      return store;
    },
    pushes: () =>
      server.requests.filter(({ method, url }) => method === 'POST' && url.endsWith('/git-receive-pack')).length,
    async [Symbol.asyncDispose]() {
      await Promise.all(stores.map((store) => store.close()));
      await server.close();
      await scratch[Symbol.asyncDispose]();
    },
  };
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, number) => `p${number}`);
}

/** The same step on many revisions at once; returns the outcome of each. */
function step(store: RevisionStore, revisions: readonly string[], action: 'propose' | 'approve'): Promise<string[]> {
  return Promise.all(revisions.map((name) => outcomeOf(store.update(name, { action }, anna))));
}

async function expectSame(store: RevisionStore, { scratch }: World): Promise<void> {
  const fresh = await scratch.open();
  const rows = (of: RevisionStore) => of.list().map(({ name, etag }) => [name, etag]);
  expect(rows(store)).toEqual(rows(fresh.store));
  await store.repository('packages').sync();
  expect(rows(store)).toEqual(rows(fresh.store));
  expect(await scratch.git('fsck', '--strict', '--no-dangling')).toBe('');
}

for (const transport of ['auto', 'git'] as const)
  test(`operations that are ready together share a push, and publications follow each other on main, transport ${transport}`, async () => {
    await using world = await start();
    const store = await world.connect('one', transport);
    const before = world.pushes();
    const drafts = await Promise.all(names(100).map((name) => draft(store, name)));
    expect(world.pushes() - before).toBeLessThanOrEqual(20);
    const half = drafts.slice(0, 50);
    expect(new Set(await step(store, half, 'propose'))).toEqual(new Set(['succeeded']));
    const proposed = world.pushes();
    expect(new Set(await step(store, half, 'approve'))).toEqual(new Set(['succeeded']));
    expect(world.pushes() - proposed).toBeLessThanOrEqual(5);
    expect(half.map((name) => store.get(name).lifecycle)).toEqual(half.map(() => 'Published'));
    // Each publication is on top of the previous one.
    const line = (await world.scratch.git('log', '--first-parent', '--format=%s', 'main')).split('\n');
    expect(line).toHaveLength(51);
    expect(new Set(line.slice(0, 50))).toEqual(
      new Set(names(50).map((name) => `Approving package revision ${name}/1`)),
    );
    await expectSame(store, world);
  });

test('two approvals of one package at once get two numbers', async () => {
  await using world = await start();
  const store = await world.connect('one');
  const first = await draft(store, 'shop');
  await step(store, [first], 'propose');
  await step(store, [first], 'approve');
  const copies = await Promise.all(
    ['v2', 'v3', 'v4'].map(async (workspace) => {
      const source = { type: 'copy', source: first } as const;
      return (await store.create('packages', { package: 'shop', workspace, source }, anna)).name;
    }),
  );
  await step(store, copies, 'propose');
  expect(await step(store, copies, 'approve')).toEqual(['succeeded', 'succeeded', 'succeeded']);
  expect(copies.map((name) => store.get(name).revision).sort()).toEqual([2, 3, 4]);
  await expectSame(store, world);
});

for (const [hook, script] of [
  ['update', 'case "$1" in *drafts/p7/*) exit 1 ;; esac'],
  ['pre-receive', 'while read old new ref; do case "$ref" in *drafts/p7/*) exit 1 ;; esac; done'],
] as const)
  test(`of twenty drafts one is refused by the hook ${hook}, the others succeed`, async () => {
    await using world = await start({ hooks: { [hook]: `#!/bin/sh\n${script}\nexit 0\n` } });
    const store = await world.connect('one');
    const before = world.pushes();
    const results = await Promise.all(names(20).map((name) => outcomeOf(draft(store, name))));
    expect(results[7]).toMatch(/^PushRefused: the remote rejected/);
    expect(results.filter((result) => result === 'succeeded')).toHaveLength(19);
    expect(world.pushes() - before).toBeLessThanOrEqual(16);
    await expectSame(store, world);
  });

test('a connection that breaks after the push was carried out loses no result', async () => {
  await using world = await start();
  const store = await world.connect('one');
  const drafts = await Promise.all(names(10).map((name) => draft(store, name)));
  await step(store, drafts, 'propose');
  world.server.behaviour.dropPush = 'after';
  expect(new Set(await step(store, drafts, 'approve'))).toEqual(new Set(['succeeded']));
  world.server.behaviour.dropPush = undefined;
  const line = await world.scratch.git('log', '--first-parent', '--format=%s', 'main');
  expect(line.split('\n')).toHaveLength(11);
  await expectSame(store, world);
});

test('the same step by another process does not count as the request whose response was lost', async () => {
  await using world = await start();
  const one = await world.connect('one', 'auto', 10_000);
  const [gone, moved] = await Promise.all(names(2).map((name) => draft(one, name)));
  if (gone === undefined || moved === undefined) throw new Error('no drafts');
  const two = await world.connect('two');
  const { behaviour } = world.server;
  const nextPush = async (before: number) => {
    while (world.pushes() === before) await delay(5);
  };
  // Both queue behind this one, and share a push.
  const hold = Promise.withResolvers<void>();
  behaviour.holdPush = hold.promise;
  let before = world.pushes();
  const first = draft(one, 'first');
  await nextPush(before);
  behaviour.holdPush = undefined;
  const queued = vi.spyOn(WriteQueue.prototype, 'add');
  onTestFinished(() => queued.mockRestore());
  const results = Promise.all([
    outcomeOf(one.update(gone, { action: 'delete' }, anna)),
    outcomeOf(one.update(moved, { action: 'propose' }, anna)),
  ]);
  await expect.poll(() => queued.mock.calls.length).toBe(2);
  before = world.pushes();
  behaviour.hang = 'push';
  hold.resolve();
  await first;
  await nextPush(before);
  behaviour.hang = undefined;
  await two.repository('packages').sync();
  await two.update(moved, { action: 'propose' }, anna);
  expect((await results).map((result) => result.slice(0, 7))).toEqual(['Timeout', 'Timeout']);
  await one.repository('packages').sync();
  expect(one.get(gone).lifecycle).toBe('Draft');
  expect(one.get(moved).lifecycle).toBe('Proposed');
  await expectSame(one, world);
});

test('writes to a repository that is being closed succeed, or fail with an error', async () => {
  await using world = await start();
  const store = await world.connect('one');
  const before = world.pushes();
  world.server.behaviour.delayMs = 300;
  const results = Promise.all(names(300).map((name) => outcomeOf(draft(store, name))));
  while (world.pushes() < before + 2) await delay(5);
  await store.close();
  world.server.behaviour.delayMs = undefined;
  const outcomes = await results;
  const fresh = await world.scratch.open();
  for (const [position, name] of names(300).entries()) {
    const there = fresh.store.find(`packages.${name}.v1`) !== undefined;
    // The close does not wait for a long one.
    const words = there
      ? /^succeeded$|was carried out|was committed|is not known/
      : /the repository is being closed|is not known/;
    expect(outcomes[position]).toMatch(words);
  }
  expect(outcomes).toContain('succeeded');
});

test('two processes that publish at once both get all their publications onto main', async () => {
  await using world = await start();
  const one = await world.connect('one');
  const drafts = await Promise.all(names(16).map((name) => draft(one, name)));
  await step(one, drafts, 'propose');
  const two = await world.connect('two');
  const results = await Promise.all([
    step(one, drafts.slice(0, 8), 'approve'),
    step(two, drafts.slice(8), 'approve'),
    one.repository('packages').sync(),
    two.repository('packages').sync(),
  ]);
  expect(new Set([...results[0], ...results[1]])).toEqual(new Set(['succeeded']));
  expect((await world.scratch.git('log', '--first-parent', '--format=%s', 'main')).split('\n')).toHaveLength(17);
  await two.repository('packages').sync();
  await one.repository('packages').sync();
  await expectSame(one, world);
  await expectSame(two, world);
});

test('while a fetch hangs, writes continue', async () => {
  await using world = await start();
  const store = await world.connect('one');
  const stop = new AbortController();
  world.server.behaviour.hang = 'fetch';
  const before = world.server.requests.length;
  const hanging = outcomeOf(store.repository('packages').sync(stop.signal));
  while (!world.server.requests.slice(before).some(({ url }) => url.includes('git-upload-pack'))) await delay(5);
  world.server.behaviour.hang = undefined;
  const name = await draft(store, 'shop');
  await step(store, [name], 'propose');
  expect(await step(store, [name], 'approve')).toEqual(['succeeded']);
  stop.abort();
  expect(await hanging).not.toBe('succeeded');
  await expectSame(store, world);
});

for (const transport of ['auto', 'git'] as const)
  test(`a fetch that read the remote before a write reverts nothing, transport ${transport}`, async () => {
    await using world = await start();
    const store = await world.connect('one', transport);
    const gone: unknown[] = [];
    store.subscribe((changes) => gone.push(...changes.filter(({ after }) => after === undefined)));
    const hold = Promise.withResolvers<void>();
    const before = world.server.requests.length;
    world.server.behaviour.holdFetch = hold.promise;
    const sync = store.repository('packages').sync();
    while (!world.server.requests.slice(before).some(({ url }) => url.endsWith('/git-upload-pack'))) await delay(5);
    // Long enough for the server to have read the refs, and for operations that do not wait for the fetch.
    const made = draft(store);
    await (transport === 'auto' ? made : Promise.race([made, delay(500)]));
    world.server.behaviour.holdFetch = undefined;
    hold.resolve();
    await Promise.all([sync, made]);
    expect(gone).toEqual([]);
    await expectSame(store, world);
  });

test('concurrent writes and fetches: no fetch reverts a write', async () => {
  for (const transport of ['auto', 'git'] as const) {
    await using world = await start();
    const store = await world.connect('one', transport);
    const repository = store.repository('packages');
    let over = false;
    const seen: string[] = [];
    store.subscribe((changes) => {
      for (const { before, after } of changes) if (after === undefined) seen.push(`${before?.name} went`);
    });
    const syncs = (async () => {
      while (!over) await repository.sync();
    })();
    for (let round = 0; round < 2; round += 1) {
      const drafts = await Promise.all(names(6).map((name) => draft(store, `${name}-${round}`)));
      await step(store, drafts, 'propose');
      expect(new Set(await step(store, drafts, 'approve'))).toEqual(new Set(['succeeded']));
      expect(drafts.map((name) => store.get(name).lifecycle)).toEqual(drafts.map(() => 'Published'));
    }
    over = true;
    await syncs;
    expect(seen).toEqual([]);
    await expectSame(store, world);
  }
});
