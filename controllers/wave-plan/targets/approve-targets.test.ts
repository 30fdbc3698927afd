import { expect, test } from 'vitest';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE } from '../../../src/package/model/policy/review-policy.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, fixture } from '../../../test/support/fixture.ts';
import { protectMain } from '../../../test/support/protected-main.ts';
import { BY_CONDITION, waveBench } from '../../../test/support/wave-bench.ts';

test('where the Git host reserves the main branch for merges, a target waits for the merge of its approved revision', async () => {
  await using world = await fixture(new ManualClock());
  const bench = await waveBench(world);
  const forge = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } } as const;
  await world.client.create(packagePolicyKind, { metadata: { name: 'review' }, spec: { review: { forge } } });
  await bench.propose('a');
  const name = 'apps.a.w1';
  await expect.poll(() => world.policyFor(world.store.get(name)).review).toBeDefined();
  const reviewer = { actor: { name: REVIEW_ACTOR }, face: 'controller' } as const;
  await world.store.change(name, { conditions: [{ type: REVIEWED_TYPE, status: 'True' }] }, reviewer);
  protectMain(world.store.repository('apps'));
  await bench.plan({ waves: [{ name: 'all', percent: 100 }], ...BY_CONDITION });
  await bench.settle();
  const reason = async () => (await bench.targets())[0]?.record?.reason;
  expect(await reason()).toMatch(
    /^WaitsForMerge: it is approved by controller:wave-plan since .* waits until the Git host/,
  );
  await bench.settle();
  expect(await reason()).toMatch(/WaitsForMerge/);
  expect(bench.published()).toEqual([]);
  // It is approved, whatever the plan selects now.
  await bench.change({ selector: { packages: ['b'] } });
  await bench.settle();
  expect(await bench.phases()).toEqual(['a Approving']);
});

test('a target whose approval would undo a later publication waits, and is approved once that is merged into it', async () => {
  await using world = await fixture(new ManualClock());
  const bench = await waveBench(world);
  const { store } = world;
  await bench.propose('a');
  await store.update('apps.a.w1', { action: 'approve' }, ANNA);
  const name = await bench.proposeNext('a');
  const source = { type: 'copy', source: 'apps.a.w1' } as const;
  const hotfix = await store.create('apps', { package: 'a', workspace: 'hotfix', source }, ANNA);
  await store.change(hotfix.name, { files: new Map([['hotfix.txt', Buffer.from('1')]]) }, ANNA);
  await bench.propose('b');
  await bench.plan({ waves: [{ name: 'all', percent: 100 }], ...BY_CONDITION });
  await world.publish(hotfix.name);
  await bench.settle();
  expect(store.get(name).lifecycle).toBe('Proposed');
  expect((await bench.targets())[0]?.record).toMatchObject({
    phase: 'Approving',
    reason: expect.stringContaining(
      `apps.a.hotfix was published as v2 after ${name} was made, and an approval of ${name} would undo what it changed in 1 file (hotfix.txt)`,
    ),
  });
  // Another target keeps the plan from its end meanwhile.
  await store.update(name, { action: 'reject' }, ANNA);
  await bench.settle();
  expect(await bench.phases()).toEqual(['a Skipped', 'b Approved']);
  await store.change(name, { rebase: 'merge' }, ANNA);
  await world.settle(name);
  await store.update(name, { action: 'propose' }, ANNA);
  await bench.settle();
  expect(store.get(name)).toMatchObject({ lifecycle: 'Published', revision: 3 });
  expect((await store.content(name)).files.has('hotfix.txt')).toBe(true);
});
