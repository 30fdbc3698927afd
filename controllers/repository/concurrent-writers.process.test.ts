import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { initRepository } from '../../src/git/open/open-repository.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { DELETED } from '../../src/package/trust/ledger/trust-ledger.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import { anna, type Scratch, scratchRepository } from '../../test/support/scratch-repository.ts';
import { OpenRepository } from './open-repository.ts';
import { steady } from './sync-pace.ts';

/*
 * Two processes with one trust ledger, which is faster than Git: marks count at once, refs from the next fetch on.
 */

const DRAFT = 'packages.shop.v1';
const RECORD = 'refs/sluice/records/shop/v1';
const OBJECT = { metadata: { name: 'packages', namespace: 'default' }, spec: { type: 'git' } } as unknown as Repository;

let scratch: Scratch;
/** Writes, and is not looked at. */
let writer: RevisionStore;
let reader: PackageRepository;
/** Runs once, after the next fetch of the reader and before it uses what it has fetched. */
let afterFetch: (() => Promise<unknown>) | undefined;

beforeEach(async () => {
  scratch = await scratchRepository();
  ({ store: writer } = await scratch.open());
  const git = await initRepository(join(scratch.folder, 'mirror.git'));
  const fetch = git.fetch.bind(git);
  git.fetch = async (...given) => {
    const fetched = await fetch(...given);
    const next = afterFetch;
    afterFetch = undefined;
    await next?.();
    return fetched;
  };
  ({ repository: reader } = await scratch.open({ git, remote: { url: `file://${scratch.path}` } }));
});
afterEach(() => scratch[Symbol.asyncDispose]());

/** What the reader reports from now on, in one sync each. */
async function reading(hasPeer = true) {
  const intervals = steady(1000);
  const open = new OpenRepository(OBJECT, reader, {
    ...{ store: writer, clock: scratch.clock, intervals, random: () => 0, hasPeer },
  });
  const sync = async () => {
    const found = await open.sync(OBJECT, new AbortController().signal);
    return found.map(({ kind, message }) => `${kind}: ${message}`);
  };
  await sync();
  return sync;
}

const create = () => writer.create('packages', { package: 'shop', workspace: 'v1', source: { type: 'init' } }, anna);
const label = (value: string) => writer.change(DRAFT, { metadata: { labels: { step: value } } }, anna);
const step = (action: 'propose' | 'approve' | 'reject' | 'propose-deletion' | 'delete') =>
  writer.update(DRAFT, { action }, anna);

test('steps of another process are no pushes, also if it continues between a fetch and its evaluation', async () => {
  const sync = await reading();
  await create();
  expect(await sync()).toEqual([]);
  await step('propose');
  afterFetch = () => step('reject');
  expect(await sync()).toEqual([]);
  expect(reader.index.get(DRAFT)?.lifecycle).toBe('Draft');
  await step('propose');
  afterFetch = () => label('one');
  expect(await sync()).toEqual([]);
  await label('two');
  afterFetch = () => step('approve');
  expect(await sync()).toEqual([]);
  expect(reader.index.get(DRAFT)?.lifecycle).toBe('Published');
  await step('propose-deletion');
  await step('delete');
  expect(await sync()).toEqual([]);
  expect(reader.index.get(DRAFT)).toBeUndefined();
});

test('a publication whose deletion is known before its tag is gone was not brought back', async () => {
  const sync = await reading();
  await create();
  await step('propose');
  await step('approve');
  await step('propose-deletion');
  afterFetch = () => step('delete');
  expect(await sync()).toEqual([]);
  expect(reader.index.get(DRAFT)).toBeUndefined();
});

test('a record that was set back is reported by the same sync, also to what this process knows', async () => {
  const sync = await reading();
  await create();
  const first = await scratch.git('rev-parse', RECORD);
  await label('one');
  await sync();
  await scratch.git('update-ref', RECORD, first);
  expect(await sync()).toEqual([
    expect.stringMatching(/^RecordChanged: the record of shop\/v1 does not count \(RolledBack\)/),
  ]);
  expect(await sync()).toEqual([]);
});

test('a record that was set back before this process saw the later one is reported', async () => {
  const sync = await reading();
  await create();
  await sync();
  const first = await scratch.git('rev-parse', RECORD);
  await label('one');
  await scratch.git('update-ref', RECORD, first);
  expect(await sync()).toEqual([
    expect.stringMatching(/^TrustLost: the record of .* does not count any more \(RolledBack\)/),
  ]);
  expect(reader.index.get(DRAFT)?.recordDistrust?.reason).toBe('RolledBack');
});

test('so is one that was found while this process wrote another revision', async () => {
  const sync = await reading();
  await create();
  await sync();
  const first = await scratch.git('rev-parse', RECORD);
  await label('one');
  await scratch.git('update-ref', RECORD, first);
  await reader.writes.create({ package: 'cart', workspace: 'v1', source: { type: 'init' } }, anna);
  expect(reader.index.get(DRAFT)?.recordDistrust?.reason).toBe('RolledBack');
  expect(await sync()).toEqual([expect.stringMatching(/^TrustLost: the record of .* does not count any more/)]);
  expect(await sync()).toEqual([]);
});

test('a draft that another process deleted is reported by that process, and one that a push removed by this one', async () => {
  const sync = await reading();
  await create();
  await sync();
  await step('delete');
  expect(await sync()).toEqual([]);
  await create();
  await sync();
  await scratch.git('update-ref', '-d', 'refs/heads/drafts/shop/v1');
  // A deletion by the other process would be in the ledger soon.
  expect(await sync()).toEqual([]);
  scratch.clock.advance(5000);
  expect(await sync()).toEqual([expect.stringMatching(/^DraftRemoved: the draft shop\/v1 was removed/)]);
});

test('a deletion that another process notes in the ledger after it has written to Git is no push', async () => {
  const sync = await reading();
  await create();
  await sync();
  for (const ref of ['refs/heads/drafts/shop/v1', RECORD]) await scratch.git('update-ref', '-d', ref);
  expect(await sync()).toEqual([]);
  const { trust } = reader;
  const scope = { repository: trust.repository, package: 'shop', workspace: 'v1' };
  trust.raise([{ scope, sequence: (trust.mark(scope)?.sequence ?? 0) + 1, digest: DELETED, proven: true }], false);
  scratch.clock.advance(5000);
  expect(await sync()).toEqual([]);
});

test('alone on its ledger a process reports drafts that a command of the same user deleted', async () => {
  const sync = await reading(false);
  await create();
  await sync();
  await step('delete');
  expect(await sync()).toEqual([expect.stringMatching(/^DraftRemoved: the draft shop\/v1 was removed/)]);
});
