import { expect, test } from 'vitest';
import { hostRepository } from '../../../test/support/delivery-pull-request.ts';
import { eachProposals } from '../../../test/support/proposal-bench.ts';
import { protectMain } from '../../../test/support/protected-main.ts';
import { isMergeOfDecision } from '../../package/store/approve-by-merge.ts';
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
