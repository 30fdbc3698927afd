import { afterEach, beforeEach, expect, test } from 'vitest';
import { DeliveredPackages } from '../../src/delivery/delivered/delivered-packages.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { AUTO_LIFECYCLE_ANNOTATION } from '../../src/package/model/revision/lifecycle-annotations.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { type Repository, repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { dependencyResolver } from '../revision/resolvers/dependency/dependency-resolver.ts';
import { revisionController } from '../revision/revision-controller.ts';
import { type DependencyRefreshOptions, dependencyRefreshController } from './dependency-refresh-controller.ts';

let world: Fixture;
const repository = repositoryKind.complete({
  metadata: { name: 'edge' },
  spec: { deployment: true, git: { repo: 'file:///edge.git' } },
});
const context = { signal: new AbortController().signal, failures: 0 };
beforeEach(async () => {
  world = await fixture();
  await world.register('edge', { deployment: true });
});
afterEach(() => world[Symbol.asyncDispose]());

/** The controllers, and the requests that their sources have enqueued. */
function bench(more: Partial<DependencyRefreshOptions> = {}) {
  const { client, store, clock } = world;
  const options = {
    ...{ store, clock, client, quietMs: 0, delivered: DeliveredPackages.from([]) },
    ...{ targets: () => [], unread: async () => [], repositoryOf: (): Repository => repository },
  };
  const recorder = world.recorder('controller:dependency-refresh');
  const refresh = dependencyRefreshController({ ...options, recorder, ...more });
  const { resolver } = dependencyResolver(options);
  const woken: string[] = [];
  for (const source of refresh.sources)
    source.start({
      enqueue: ({ name }: ObjectKey) => woken.push(name),
      prioritize: () => undefined,
      track: () => undefined,
      release: () => undefined,
      informer: (() => ({
        addHandler: () => () => undefined,
        addIndex: () => undefined,
        byIndex: () => [],
        get: () => undefined,
      })) as never,
    });
  return {
    ...{ woken, recorder },
    refresh: (name: string) => refresh.reconcile({ namespace: 'default', name }, context),
    resolve: (name: string) =>
      revisionController({ client, store, clock, recorder, resolvers: [resolver] }).reconcile(
        { namespace: 'default', name },
        context,
      ),
  };
}

function dependency(part: string): string {
  return `apiVersion: req.nephio.org/v1alpha1\nkind: Dependency\nmetadata:\n  name: db\nspec:\n  packageName: db\n${part}`;
}

async function publishedPair(part = '') {
  const one = await world.publish((await world.draft('edge/db/w1')).name);
  const draft = await world.draft('edge/web/w1', { 'dependency.yaml': dependency(part) });
  const b = bench();
  await b.resolve(draft.name);
  await world.settle(draft.name);
  const web = await world.publish(draft.name);
  return { ...b, one, web };
}

async function next(before: PackageRevision, workspace: string): Promise<PackageRevision> {
  const draft = await world.store.create(
    'edge',
    { package: before.key.package, workspace, source: { type: 'copy', source: before.name } },
    ANNA,
  );
  await world.store.change(draft.name, { files: new Map([['n.txt', Buffer.from(workspace)]]) }, ANNA);
  return world.publish(draft.name);
}

const revisionsOfWeb = () => world.store.list({ package: 'web' }).filter(({ revision }) => revision >= 0);

test('a change of a provider opens one draft of its consumer, which locks it', async () => {
  const { refresh, resolve, woken, one, web } = await publishedPair();
  await refresh(web.name);
  expect(revisionsOfWeb()).toHaveLength(1);
  woken.length = 0;
  const two = await next(one, 'w2');
  expect(woken).toEqual(expect.arrayContaining([web.name]));
  await refresh(web.name);
  await refresh(web.name);
  const [draft] = revisionsOfWeb().filter(({ lifecycle }) => lifecycle === 'Draft');
  expect(revisionsOfWeb()).toHaveLength(2);
  expect(draft?.record?.annotations?.[AUTO_LIFECYCLE_ANNOTATION]).toBe('true');
  await resolve(draft?.name ?? '');
  const text = (await world.store.content(draft?.name ?? '')).files.get('dependency.yaml')?.toString('utf8');
  expect(text).toContain(`revision: 2\n      commit: ${two.commit}`);
  // A third revision gets into the same draft.
  await next(two, 'w3');
  await refresh(web.name);
  expect(revisionsOfWeb()).toHaveLength(2);
  await resolve(draft?.name ?? '');
  await world.settle(draft?.name ?? '');
  const published = await world.publish(draft?.name ?? '');
  expect(woken).toContain(published.name);
  await refresh(published.name);
  expect(revisionsOfWeb()).toHaveLength(2);
  expect((await world.events(web.name)).join()).toContain('Refreshed: created edge.web.providers-2-');
});

test('Draft leaves the proposal to users', async () => {
  const { refresh, one, web } = await publishedPair('  onProviderChange: Draft\n');
  await next(one, 'w2');
  await refresh(web.name);
  const [draft] = revisionsOfWeb().filter(({ lifecycle }) => lifecycle === 'Draft');
  expect(draft).toBeDefined();
  expect(draft?.record?.annotations?.[AUTO_LIFECYCLE_ANNOTATION]).toBeUndefined();
});

test('Ignore creates no draft', async () => {
  const ignoring = await publishedPair('  onProviderChange: Ignore\n');
  await next(ignoring.one, 'w2');
  await ignoring.refresh(ignoring.web.name);
  expect(revisionsOfWeb()).toHaveLength(1);
});

test('the deletion of the only provider is reported, and creates no draft that could not be published', async () => {
  const { refresh, woken, one, web } = await publishedPair();
  await refresh(web.name);
  woken.length = 0;
  await world.store.update(one.name, { action: 'propose-deletion' }, ANNA);
  await world.store.update(one.name, { action: 'delete' }, ANNA);
  expect(woken).toContain(web.name);
  await refresh(web.name);
  expect(revisionsOfWeb()).toHaveLength(1);
  expect((await world.events(web.name)).join()).toContain('ProviderMissing: db has locked edge/db v1, and now: ');
});

/** Publishes further packages that require `db`. */
async function publishConsumers(resolve: (name: string) => Promise<unknown>, ...names: readonly string[]) {
  for (const name of names) {
    const draft = await world.draft(`edge/${name}/w1`, { 'dependency.yaml': dependency('') });
    await resolve(draft.name);
    await world.settle(draft.name);
    await world.publish(draft.name);
  }
}

const openPackages = () => world.store.list({ lifecycle: 'Draft' }).map(({ key }) => key.package);

/** Waits until the policy is in force for a package. */
async function policyInForce(revision: PackageRevision, dependencies: object): Promise<void> {
  await expect.poll(() => world.policyFor(revision).dependencyLimits).toMatchObject([dependencies]);
}

test('a policy limits the drafts of the packages that it selects, and can stop them', async () => {
  const clock = new ManualClock();
  const { one, web, resolve } = await publishedPair();
  await publishConsumers(resolve, 'shop', 'mail');
  const names = ['web', 'shop', 'mail'];
  const limit = async (dependencies: object, inForce = dependencies) => {
    const key = { namespace: 'default', name: 'calm' };
    await world.client.patch(packagePolicyKind, key, { spec: { dependencies } as never });
    await policyInForce(web, inForce);
  };
  await world.client.create(packagePolicyKind, {
    metadata: { name: 'calm' },
    spec: { selector: { packages: ['web', 'shop'] }, dependencies: { maxDraftsPerMinute: 0 } },
  });
  await policyInForce(web, { maxDraftsPerMinute: 0 });
  await next(one, 'w2');
  const { refresh } = bench({ clock });
  const run = async () => {
    const held: unknown[] = [];
    for (const name of names) held.push((await refresh(`edge.${name}.w1`)) ?? 'done');
    return held;
  };
  const isHeld = { requeueAfter: 300_000, reason: 'PackagePolicy calm' };
  expect(await run()).toEqual([isHeld, isHeld, 'done']);
  expect(openPackages()).toEqual(['mail']);
  expect(await world.events(web.name)).toContain(
    'HeldByPolicy: its providers have changed, and PackagePolicy calm permits no further draft (spec.dependencies.maxDraftsPerMinute: 0)',
  );
  await limit({ maxDraftsPerMinute: 1 });
  expect(await run()).toEqual(['done', { requeueAfter: 60_000, reason: 'other drafts of PackagePolicy calm' }, 'done']);
  // The number of open ones counts at any time; null removes the other limit.
  await limit({ maxDraftsPerMinute: null, maxOpenDrafts: 1 }, { maxOpenDrafts: 1 });
  clock.advance(60_000);
  expect(await run()).toEqual(['done', isHeld, 'done']);
  expect((await world.events('edge.shop.w1')).join()).toContain(
    '(spec.dependencies.maxOpenDrafts: 1; publish or delete the drafts providers-*)',
  );
  expect(openPackages()).toEqual(['mail', 'web']);
  const [draft] = world.store.list({ package: 'web', lifecycle: 'Draft' });
  await world.store.update(draft?.name ?? '', { action: 'delete' }, ANNA);
  expect(await refresh('edge.shop.w1')).toBeUndefined();
  expect(openPackages()).toEqual(['mail', 'shop']);
});

test('consumers at the same time do not exceed the number of open drafts', async () => {
  const { one, web, resolve } = await publishedPair();
  await publishConsumers(resolve, 'shop', 'mail');
  await world.client.create(packagePolicyKind, {
    metadata: { name: 'calm' },
    spec: { selector: {}, dependencies: { maxOpenDrafts: 1 } },
  });
  await policyInForce(web, { maxOpenDrafts: 1 });
  await next(one, 'w2');
  const { refresh } = bench();
  await Promise.all(['web', 'shop', 'mail'].map((name) => refresh(`edge.${name}.w1`)));
  expect(openPackages()).toHaveLength(1);
});

test('the drafts of a namespace are limited in each minute: the other consumers wait for their turn', async () => {
  const clock = new ManualClock();
  const { one, resolve } = await publishedPair();
  const names = ['web', 'shop', 'mail'];
  await publishConsumers(resolve, 'shop', 'mail');
  await next(one, 'w2');
  const { refresh } = bench({ clock, maxDraftsPerMinute: 2 });
  const run = async () => {
    for (const name of names) {
      const result = await refresh(`edge.${name}.w1`);
      if (result !== undefined) return result;
    }
    return undefined;
  };
  expect(await run()).toEqual({ requeueAfter: 30_000, reason: 'other drafts of the namespace' });
  expect(openPackages()).toEqual(['shop', 'web']);
  clock.advance(29_999);
  expect(await run()).toMatchObject({ requeueAfter: 1 });
  clock.advance(1);
  expect(await run()).toBeUndefined();
  expect(openPackages()).toEqual(['mail', 'shop', 'web']);
});

test('the drafts of a package are limited in each minute, and an event names the limit', async () => {
  const clock = new ManualClock();
  let { one: provider, web, resolve } = await publishedPair();
  const { refresh } = bench({ clock, maxDraftsPerMinute: 6 });
  for (let round = 2; round <= 6; round += 1) {
    provider = await next(provider, `w${round}`);
    expect(await refresh(web.name)).toBeUndefined();
    const { name } = revisionsOfWeb().find(({ lifecycle }) => lifecycle === 'Draft') as PackageRevision;
    await resolve(name);
    await world.settle(name);
    web = await world.publish(name);
  }
  await next(provider, 'w7');
  // What is refused uses up nothing of the limit of the namespace.
  for (let turn = 0; turn < 3; turn += 1)
    expect(await refresh(web.name)).toEqual({ requeueAfter: 12_000, reason: 'other drafts of the package' });
  expect(revisionsOfWeb()).toHaveLength(6);
  expect((await world.events(web.name)).join()).toContain('TooManyDrafts: at most 5 drafts of a package are opened');
  clock.advance(12_000);
  expect(await refresh(web.name)).toBeUndefined();
  expect(revisionsOfWeb()).toHaveLength(7);
});

test('a restart permits no more drafts in a minute', async () => {
  const { one, web, resolve } = await publishedPair();
  await publishConsumers(resolve, 'shop', 'mail');
  await world.client.create(packagePolicyKind, {
    metadata: { name: 'calm' },
    spec: { selector: { packages: ['web', 'shop'] }, dependencies: { maxDraftsPerMinute: 1 } },
  });
  await policyInForce(web, { maxDraftsPerMinute: 1 });
  await next(one, 'w2');
  // It stands still, so that also a slow machine opens all drafts in one minute.
  const start = Date.now();
  const clock = () => new ManualClock(start);
  expect(await bench({ clock: clock() }).refresh('edge.shop.w1')).toBeUndefined();
  expect(await bench({ clock: clock() }).refresh('edge.web.w1')).toMatchObject({
    reason: 'other drafts of PackagePolicy calm',
  });
  expect(await bench({ clock: clock(), maxDraftsPerMinute: 1 }).refresh('edge.mail.w1')).toMatchObject({
    reason: 'other drafts of the namespace',
  });
  expect(openPackages()).toEqual(['shop']);
  const later = new ManualClock(start + 3_600_000);
  expect(await bench({ clock: later, maxDraftsPerMinute: 1 }).refresh('edge.web.w1')).toBeUndefined();
  expect(openPackages()).toEqual(['shop', 'web']);
});
