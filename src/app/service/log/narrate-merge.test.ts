import { describe, expect, test } from 'vitest';
import { hostRepository } from '../../../../test/support/delivery-pull-request.ts';
import { eachProposals } from '../../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../../test/support/protected-main.ts';
import { isMergeOfDecision } from '../../../package/store/approve-by-merge.ts';
import { logChanges } from './log-changes.ts';
import type { LogEntry } from './log-entry.ts';
import { narrateChanges } from './narrate-changes.ts';

const open = eachProposals();

test('a merge that Sluice has the host make is no alarm; another change of the main branch is one', async () => {
  const at = open();
  const { store } = at.world;
  const repository = store.repository('apps');
  const alarms: string[] = [];
  store.subscribe((changes) => {
    const isMerge = (onMain: Parameters<typeof isMergeOfDecision>[0]) => isMergeOfDecision(onMain, repository);
    for (const { event, subject, message } of narrateChanges(changes, 0, { isMerge }))
      if (event === 'OutOfBand') alarms.push(`${subject}: ${message}`);
  });
  const first = await at.propose();
  await store.update(first, { action: 'approve' }, { actor: { name: 'carla' }, face: 'cli' });
  await at.policy();
  const source = { type: 'copy', source: first } as const;
  const by = { actor: { name: 'berta' }, face: 'cli' } as const;
  const { name } = await store.create('apps', { package: 'app', workspace: 'w2', source }, by);
  await store.change(name, { files: new Map([['a.yaml', Buffer.from('kind: B\n')]]) }, by);
  await at.world.settle(name);
  await store.update(name, { action: 'propose' }, by);
  protectMain(repository);
  hostRepository(at.forge, at.path);
  await at.reconcile(name);
  await at.review(1, 'bob', 'approved', at.revision(name).commit);
  for (let turn = 0; turn < 4; turn += 1) {
    await repository.sync();
    await at.reconcile('apps');
    await at.reconcile(name);
  }
  expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', revision: 2, outOfBand: undefined });
  expect(alarms).toEqual([]);

  await at.world.push(at.path, { 'app/a.yaml': 'kind: C\n' }, 'main');
  await repository.sync();
  expect(alarms).toEqual([expect.stringContaining('apps.app.main: did not come through the gates')]);
});

describe('a merge with the button', () => {
  /** A published package with a further proposal, whose merge publishes it, and the alarms. */
  async function proposed(userPullRequests: 'check' | 'ignore' = 'ignore') {
    const at = open();
    const alarms: string[] = [];
    const session = { clock: at.clock, store: at.world.store, note: () => undefined, wasKnown: () => false };
    const log = ({ event, subject, message }: LogEntry) =>
      void (event === 'OutOfBand' && alarms.push(`${subject}: ${message}`));
    const end = logChanges(session, log, () => undefined);
    const first = await at.propose();
    await at.world.store.update(first, { action: 'approve' }, { actor: { name: 'carla' }, face: 'cli' });
    await at.policy({ publishOn: 'merge', userPullRequests });
    const by = { actor: { name: 'berta' }, face: 'cli' } as const;
    const source = { type: 'copy', source: first } as const;
    const { name } = await at.world.store.create('apps', { package: 'app', workspace: 'w2', source }, by);
    await at.world.store.change(name, { files: new Map([['a.yaml', Buffer.from('kind: B\n')]]) }, by);
    await at.world.settle(name);
    await at.world.store.update(name, { action: 'propose' }, by);
    await at.reconcile(name);
    const merge = async (more: Readonly<Record<string, string>> = {}) => {
      const { files } = await at.world.store.content(name);
      const squashed = Object.fromEntries([...files].map(([file, data]) => [`app/${file}`, data.toString('utf8')]));
      const commit = await at.world.push(at.path, { ...squashed, ...more }, 'main');
      await at.world.store.repository('apps').sync();
      return commit;
    };
    return { at, alarms, name, merge, end };
  }
  const alarm = expect.stringContaining('apps.app.main: did not come through the gates');

  test('is no alarm, as it is published in a moment', async () => {
    const { at, alarms, name, merge, end } = await proposed();
    at.forge.change(1, { state: 'merged', merged: { commit: await merge(), by: 'bob' } });
    await at.reconcile('apps');
    await at.reconcile(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
    at.clock.advance(120_000);
    end();
    expect(alarms).toEqual([]);
  });

  test('is one if it stays for a minute', async () => {
    const { at, alarms, merge } = await proposed();
    await merge();
    at.clock.advance(50_000);
    expect(alarms).toEqual([]);
    at.clock.advance(20_000);
    expect(alarms).toEqual([alarm]);
  });

  test('is one if it is not published when the process ends', async () => {
    const { alarms, merge, end } = await proposed();
    await merge();
    expect(alarms).toEqual([]);
    end();
    expect(alarms).toEqual([alarm]);
  });

  test('is one when its proposal is rejected', async () => {
    const { at, alarms, name, merge } = await proposed();
    await merge();
    await at.world.store.update(name, { action: 'reject' }, { actor: { name: 'berta' }, face: 'cli' });
    expect(alarms).toEqual([alarm]);
  });

  test('is one at once where it brings other content', async () => {
    const { alarms, merge } = await proposed();
    await merge({ 'app/a.yaml': 'kind: C\n' });
    expect(alarms).toEqual([alarm]);
  });

  test('of a user is one after a minute where merges of users publish', async () => {
    const { at, alarms, merge } = await proposed('check');
    await merge({ 'app/a.yaml': 'kind: C\n' });
    expect(alarms).toEqual([]);
    at.clock.advance(60_000);
    expect(alarms).toEqual([alarm]);
  });
});
