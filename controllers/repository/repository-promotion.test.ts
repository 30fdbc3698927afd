import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { verdictOf } from '../../src/package/model/record/record.ts';
import { AUTO_LIFECYCLE_ANNOTATION } from '../../src/package/model/revision/lifecycle-annotations.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';
import { proposalController } from '../proposal/proposal-controller.ts';
import { claimText, ipamBench } from '../revision/resolvers/ipam/testing.ts';
import { revisionController } from '../revision/revision-controller.ts';
import { resolverOf } from '../revision/testing.ts';
import { conditionResolution } from '../revision/testing-bench.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };
const FIRST = { namespace: 'team-a', name: 'origin' };
const SECOND = { namespace: 'team-b', name: 'apps' };
const DRAFT = 'team-b/apps.app.w1';

let clock: ManualClock;
let world: Fixture;
let controller: ControllerOptions;
beforeEach(async () => {
  clock = new ManualClock();
  world = await fixture(clock);
  controller = repositoryControllerOf(world);
  const repo = await world.bare('apps');
  for (const metadata of [FIRST, SECOND]) {
    await world.client.create(repositoryKind, { metadata, spec: { git: { repo } } });
    clock.advance(5000);
  }
});
afterEach(() => world[Symbol.asyncDispose]());

const createDraft = (marks = {}) =>
  world.store.create(
    'team-b/apps',
    { package: 'app', workspace: 'w1', source: { type: 'init', files: new Map() }, metadata: marks },
    ANNA,
  );

test('a namespace that deletes its registration does not interrupt another one of the same address', async () => {
  for (const key of [FIRST, SECOND]) await controller.reconcile(key, CONTEXT);
  await createDraft();
  const before = world.store.repository('team-b/apps');
  const { resourceVersion } = (
    await world.client.get(packageRevisionKind, { namespace: 'team-b', name: 'apps.app.w1' })
  ).metadata;
  const removed: string[] = [];
  world.store.subscribe((changes) => {
    for (const { before, after } of changes)
      if (after === undefined && before?.namespace === 'team-b') removed.push(before.name);
  });
  await world.client.delete(repositoryKind, FIRST);
  await controller.reconcile(FIRST, CONTEXT);
  await controller.reconcile(SECOND, CONTEXT);
  expect(removed).toEqual([]);
  expect(world.store.repository('team-b/apps')).toBe(before);
  expect(before.follows).toBe(false);
  // What its clients have read is still current.
  const after = await world.client.get(packageRevisionKind, { namespace: 'team-b', name: 'apps.app.w1' });
  expect(after.metadata.resourceVersion).toBe(resourceVersion);
  await world.store.change(DRAFT, { metadata: { labels: { a: 'b' } } }, ANNA);
});

test('a registration keeps following while an older one of another namespace is left', async () => {
  const { repo } = (await world.client.get(repositoryKind, FIRST)).spec.git ?? { repo: '' };
  const third = { namespace: 'team-c', name: 'apps' };
  await world.client.create(repositoryKind, { metadata: third, spec: { git: { repo } } });
  for (const key of [FIRST, SECOND, third]) await controller.reconcile(key, CONTEXT);
  await world.client.delete(repositoryKind, FIRST);
  for (const key of [FIRST, SECOND, third]) await controller.reconcile(key, CONTEXT);
  const follows = [SECOND, third].map(({ namespace }) => world.store.repository(`${namespace}/apps`).follows);
  expect(follows).toEqual([false, true]);
});

test('controllers act for its drafts from then on, without a change of these', async () => {
  const { client, store, manager } = world;
  await controller.reconcile(SECOND, CONTEXT);
  await createDraft({ annotations: { [AUTO_LIFECYCLE_ANNOTATION]: 'true' } });
  const resolvers = [resolverOf('probe', () => conditionResolution('probe'))];
  manager.addController(revisionController({ client, store, clock, resolvers }));
  manager.addController(proposalController({ client, store, clock, applicableResolvers: () => ['probe'] }));
  await manager.start();
  await manager.idle();
  // Events on the other registration wake the controllers too, and have to find that this one still follows.
  await client.delete(repositoryKind, FIRST);
  await manager.idle();
  const { record, lifecycle } = store.get(DRAFT);
  expect([verdictOf(record, 'test.dev/probe'), lifecycle]).toEqual([undefined, 'Draft']);
  await controller.reconcile(SECOND, CONTEXT);
  await manager.idle();
  expect(store.get(DRAFT).lifecycle).toBe('Proposed');
});

test('addresses that its packages hold stay allocated', async () => {
  for (const key of [FIRST, SECOND]) await controller.reconcile(key, CONTEXT);
  await world.register('edge');
  const at = ipamBench({ ...world, clock, recorder: world.recorder('controller:revision') });
  await at.pool('n3', '10.0.0.1/24');
  const { reconcile } = at.controller({ gracePeriod: 0 });
  const files = new Map([['claim.yaml', Buffer.from(claimText('a'))]]);
  await world.store.create('team-a/origin', { package: 'app', workspace: 'w1', source: { type: 'init', files } }, ANNA);
  await reconcile({ namespace: 'team-a', name: 'origin.app.w1' }, CONTEXT);
  clock.advance(1000);
  await controller.reconcile(SECOND, CONTEXT);
  expect(await at.addresses(DRAFT)).toEqual({ a: '10.0.0.2/24' });
  const claim = { 'claim.yaml': claimText('b') };
  const { name: before } = await world.draft('edge/before/w1', claim);
  await reconcile({ namespace: 'default', name: before }, CONTEXT);
  expect(await at.addresses(before)).toEqual({ b: '10.0.0.3/24' });

  await world.client.delete(repositoryKind, FIRST);
  for (const key of [FIRST, SECOND]) await controller.reconcile(key, CONTEXT);
  clock.advance(3_600_000);
  const { name: after } = await world.draft('edge/after/w1', claim);
  await reconcile({ namespace: 'default', name: after }, CONTEXT);
  expect(await at.addresses(after)).toEqual({ b: '10.0.0.4/24' });
});
