import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { roleBindingKind } from '../../src/resource/kinds/rbac/role-binding.ts';
import { type PackagePolicy, packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import type { MayApprove } from '../pull-request/rights.ts';
import { permitCommands } from './approver-rights.ts';
import { packagePolicyController } from './package-policy-controller.ts';
import { gatesRequired, unknownTypes } from './policy-names.ts';

let world: Fixture;
let clock: ManualClock;
/** What a look takes, in milliseconds. */
let tookMs = 0;
beforeEach(async () => {
  clock = new ManualClock();
  tookMs = 0;
  world = await fixture(clock);
  await world.register('apps');
});
afterEach(() => world[Symbol.asyncDispose]());

const policy = (name: string, spec: object) => world.client.create(packagePolicyKind, { metadata: { name }, spec });

async function controllerOf(
  readsBindings = true,
  known?: readonly Stored<PackagePolicy>[],
  mayApprove?: MayApprove,
  reviewProblems: () => Promise<string[]> = async () => [],
): Promise<ControllerOptions> {
  const { client, store } = world;
  const policies = known ?? (await client.list(packagePolicyKind, { namespace: 'default' })).items;
  const { items: repositories } = await client.list(repositoryKind, { namespace: 'default' });
  const variants = { variant: () => undefined, variantsOf: () => [], set: () => undefined };
  return packagePolicyController({
    ...{ client, store, clock, variants, readsBindings, mayApprove, reviewProblems },
    policies: () => policies,
    repositories: () => repositories,
    variantSets: () => {
      clock.advance(tookMs);
      return [];
    },
  });
}

const reconcile = (controller: ControllerOptions, name = 'default') =>
  controller.reconcile({ name }, { signal: new AbortController().signal, failures: 0 });

async function look(readsBindings = true, known?: readonly Stored<PackagePolicy>[]): Promise<unknown> {
  return reconcile(await controllerOf(readsBindings, known));
}

type Type = 'ApproversPermitted' | 'NamesKnown' | 'QuorumReachable' | 'ReviewValid' | 'Selected';

async function condition(name: string, type: Type) {
  const { status } = await world.client.get(packagePolicyKind, { namespace: 'default', name });
  const { status: is, reason, message } = findCondition(status?.conditions, type) ?? {};
  return { is, reason, message };
}

test('a policy reports how many packages it selects: none, some or all', async () => {
  await policy('all', {});
  await policy('web', { selector: { packages: ['web'] } });
  await policy('none', { selector: { packages: ['wep'] } });
  expect(await look()).toMatchObject({ requeueAfter: 300_000 });
  expect(await condition('none', 'Selected')).toMatchObject({ is: 'Unknown', reason: 'NoPackages' });

  for (const name of ['web', 'db'] as const) await world.draft(`apps/${name}/w1`);
  await look();
  expect(await condition('all', 'Selected')).toEqual({
    ...{ is: 'True', reason: 'EverythingSelected' },
    message: 'spec.selector is empty, so that it selects all packages of its namespace: 2',
  });
  expect(await condition('web', 'Selected')).toEqual({
    ...{ is: 'True', reason: 'PackagesSelected', message: 'it selects 1 of 2 packages' },
  });
  expect(await condition('none', 'Selected')).toEqual({
    ...{ is: 'False', reason: 'NothingSelected' },
    message: 'spec.selector selects none of the 2 packages of its namespace; correct it, or create what it means',
  });
  expect(await condition('none', 'NamesKnown')).toMatchObject({ is: 'True' });
});

test('names that nothing has are reported, with what may be meant, until there is something; they refuse nothing', async () => {
  const { name } = await world.draft('apps/web/w1');
  await world.store.change(name, { conditions: [{ type: 'example.com/Tested', status: 'True' }] }, ANNA);
  await policy('strict', {
    selector: { repositories: ['app'] },
    requiredGates: [{ conditionType: 'example.com/Testd' }],
    givers: [{ conditionType: 'example.com/*', actors: ['group:ci', 'ben'] }],
    approval: { quorum: { required: 2, from: ['group:sre'] } },
  });
  const subjects = [{ kind: 'Group', name: 'sres' }];
  const roleRef = { kind: 'ClusterRole', name: 'view' };
  await world.client.create(roleBindingKind, { metadata: { name: 'sres' }, roleRef, subjects } as never);
  await look();
  expect(await condition('strict', 'NamesKnown')).toEqual({
    ...{ is: 'False', reason: 'UnknownNames' },
    message: [
      'its selector names the repository app, which is not registered; did you mean apps?',
      'no package has a condition or gate of the type example.com/Testd; did you mean example.com/Tested?',
      'no RoleBinding or ClusterRoleBinding names the group sre; did you mean sres?',
      'no RoleBinding or ClusterRoleBinding names the group ci; correct the names, or create what they mean',
    ].join('; '),
  });
  await look(false);
  expect((await condition('strict', 'NamesKnown')).message).not.toContain('RoleBinding');

  await world.register('app');
  await world.store.change(name, { conditions: [{ type: 'example.com/Testd', status: 'False' }] }, ANNA);
  await look(false);
  expect(await condition('strict', 'NamesKnown')).toEqual({ is: 'True', reason: 'Known', message: '' });
});

test('a gate that the policy requires itself is known, before any package has the condition', async () => {
  const { name } = await world.draft('apps/web/w1');
  const type = 'example.com/Tested';
  await world.store.change(name, { conditions: [{ type: 'example.com/Seen', status: 'False' }] }, ANNA);
  await policy('strict', { requiredGates: [{ conditionType: type }], pushDenied: [type, 'example.com/Other'] });
  await look(false);
  expect((await condition('strict', 'NamesKnown')).message).toBe(
    'no package has a condition or gate of the type example.com/Other; did you mean example.com/Seen?; correct the names, or create what they mean',
  );
});

test('a quorum whose users may not approve is reported, and the gates of a policy for tables', async () => {
  await world.draft('apps/web/w1');
  const gates = [{ conditionType: 'example.com/Tested' }, { conditionType: 'example.com/Seen' }];
  const quorum = { required: 2, from: ['ben', 'carla', 'group:sre'] };
  await policy('strict', { approval: { quorum }, requiredGates: gates });
  const permitted = new Set<string>();
  const asked: unknown[] = [];
  const repeat = async () => {
    const mayApprove: MayApprove = async (user, place) => {
      asked.push(place);
      return [user.name, ...(user.groups ?? [])].some((one) => permitted.has(one));
    };
    clock.advance(60_000);
    await reconcile(await controllerOf(true, undefined, mayApprove));
    return condition('strict', 'QuorumReachable');
  };
  expect(await repeat()).toEqual({
    ...{ is: 'False', reason: 'NotPermitted' },
    message:
      'spec.approval.quorum.from names ben, carla, group:sre without the right to approve in this namespace (update of packagerevisions/approval), unless other groups of these users give it; bind a role that has it, such as sluice:approver',
  });
  expect(asked[0]).toEqual({ namespace: 'default', name: '' });
  permitted.add('ben');
  expect(await repeat()).toMatchObject({
    is: 'False',
    message: expect.stringContaining('names carla, group:sre without'),
  });
  permitted.add('carla');
  expect(await repeat()).toMatchObject({ is: 'True', reason: 'SomePermitted' });
  permitted.add('sre');
  expect(await repeat()).toMatchObject({ is: 'True', reason: 'Permitted' });
  const { status, ...rest } = await world.client.get(packagePolicyKind, { namespace: 'default', name: 'strict' });
  expect(status?.gates).toBe('example.com/Tested,example.com/Seen');
  await world.client.update(packagePolicyKind, { ...rest, spec: { ...rest.spec, approval: {} as never } });
  expect(await repeat()).toEqual({});
});

describe('users who review', () => {
  const asked: string[] = [];
  const permitted = new Set<string>();
  const mayApprove: MayApprove = async (user) => {
    asked.push(user.name);
    return [user.name, ...(user.groups ?? [])].some((one) => permitted.has(one));
  };
  const review = (publishOn: string, more: object = {}) => ({
    review: {
      forge: { provider: 'gitea', api: 'https://git.invalid/api/v1', secretRef: { name: 'forge' } },
      approvers: [
        { user: 'bob', subject: 'bob@example.com' },
        { user: 'carl', subject: 'carl@example.com', groups: ['sre'] },
      ],
      publishOn,
      ...more,
    },
  });
  beforeEach(async () => {
    asked.length = 0;
    permitted.clear();
    await world.draft('apps/web/w1');
  });

  test('without the right to approve are reported, unless no review publishes', async () => {
    await policy('review', review('merge', { teams: [{ team: 'org/leads', groups: ['leads'] }] }));
    const repeat = async () => {
      clock.advance(60_000);
      await reconcile(await controllerOf(true, undefined, mayApprove));
      return condition('review', 'ApproversPermitted');
    };
    expect(await repeat()).toEqual({
      ...{ is: 'False', reason: 'NotPermitted' },
      message:
        'spec.review.approvers names bob@example.com, carl@example.com without the right to approve in this namespace (update of packagerevisions/approval), so that their reviews count as no approval, and their merges are out of band unless others approved; bind a role that has it, such as sluice:approver, and check the name of the role in their binding',
    });
    const command = async () => {
      const read = await world.client.get(packagePolicyKind, { namespace: 'default', name: 'review' });
      return permitCommands(read);
    };
    const bind = 'kubectl create rolebinding review-approvers --namespace default --clusterrole=sluice:approver';
    expect(await command()).toEqual([`${bind} --user=bob@example.com --user=carl@example.com`]);
    permitted.add('sre');
    expect((await repeat()).message).toContain('names bob@example.com without');
    expect(await command()).toEqual([`${bind} --user=bob@example.com`]);
    permitted.add('leads');
    expect(await repeat()).toEqual({ is: 'True', reason: 'Permitted', message: '' });
    expect(await command()).toEqual([]);
    const { status: _, ...rest } = await world.client.get(packagePolicyKind, { namespace: 'default', name: 'review' });
    await world.client.update(packagePolicyKind, { ...rest, spec: { ...rest.spec, ...review('approval') } as never });
    expect(await repeat()).toEqual({});
  });

  test('are reported too while a repository is not read', async () => {
    await world.client.create(repositoryKind, { metadata: { name: 'later' }, spec: { git: { repo: '/gone.git' } } });
    await policy('review', review('review'));
    const repeat = async () => {
      clock.advance(60_000);
      await reconcile(await controllerOf(true, undefined, mayApprove));
      return condition('review', 'ApproversPermitted');
    };
    expect(await repeat()).toMatchObject({ is: 'False', reason: 'NotPermitted' });
    permitted.add('sre').add('bob@example.com');
    expect(await repeat()).toEqual({ is: 'True', reason: 'Permitted', message: '' });
  });

  test('are asked for once in five minutes in a cluster, and nothing is said while it does not respond', async () => {
    await policy('review', review('review'));
    let isThere = false;
    const controller = await controllerOf(false, undefined, async (...question) => {
      if (!isThere) throw new SluiceError('Unavailable', 'the cluster is not there');
      return mayApprove(...question);
    });
    await reconcile(controller);
    expect(await condition('review', 'ApproversPermitted')).toEqual({});
    isThere = true;
    for (let turn = 0; turn < 4; turn += 1) {
      clock.advance(60_000);
      await reconcile(controller);
    }
    expect(await condition('review', 'ApproversPermitted')).toMatchObject({ is: 'False' });
    expect(asked).toEqual(['bob@example.com', 'carl@example.com']);
    clock.advance(300_000);
    permitted.add('bob@example.com').add('carl@example.com');
    await reconcile(controller);
    expect(await condition('review', 'ApproversPermitted')).toMatchObject({ is: 'True' });
  });
});

test('while a repository is not read, nothing is said about packages', async () => {
  await world.client.create(repositoryKind, { metadata: { name: 'later' }, spec: { git: { repo: '/gone.git' } } });
  await world.draft('apps/web/w1');
  await policy('none', { selector: { packages: ['wep'] }, requiredGates: [{ conditionType: 'example.com/Testd' }] });
  expect(await look()).toMatchObject({ requeueAfter: 10_000 });
  expect(await condition('none', 'Selected')).toEqual({});
  expect(await condition('none', 'NamesKnown')).toEqual({});
});

test('while a repository is not read, what was said about an earlier selector, or about a name that exists now, is withdrawn', async () => {
  await world.draft('apps/web/w1');
  await policy('web', { selector: { repositories: ['nosuch'] } });
  const repeat = async () => {
    clock.advance(60_000);
    await look();
    return [await condition('web', 'NamesKnown'), await condition('web', 'Selected')];
  };
  const wrong = { is: 'False', reason: 'UnknownNames' };
  expect(await repeat()).toMatchObject([wrong, { is: 'False', reason: 'NothingSelected' }]);
  await world.client.create(repositoryKind, { metadata: { name: 'later' }, spec: { git: { repo: '/gone.git' } } });
  expect(await repeat()).toMatchObject([wrong, { is: 'False' }]);
  const { status: _, ...rest } = await world.client.get(packagePolicyKind, { namespace: 'default', name: 'web' });
  const select = (repositories: string[]) => ({ ...rest.spec, selector: { repositories } });
  await world.client.update(packagePolicyKind, { ...rest, spec: select(['apps']) });
  expect(await repeat()).toEqual([{}, {}]);

  const { metadata } = await world.client.get(packagePolicyKind, { namespace: 'default', name: 'web' });
  await world.client.update(packagePolicyKind, { ...rest, metadata, spec: select(['gone']) });
  expect(await repeat()).toMatchObject([wrong, {}]);
  await world.client.create(repositoryKind, { metadata: { name: 'gone' }, spec: { git: { repo: '/gone.git' } } });
  expect(await repeat()).toEqual([{}, {}]);
});

test('a review that cannot work is reported before there is a package, until it is corrected or gone', async () => {
  const forge = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } };
  const review = { forge, gateChecks: ['example.com/Tested'] };
  await policy('one', { review });
  await policy('two', { review, selector: { repositories: ['apps'] } });
  await policy('three', { review, selector: { packages: ['web'] } });
  let problems = ['Secret forge does not exist'];
  const repeat = async (name = 'one') => {
    clock.advance(60_000);
    const seen = await reconcile(await controllerOf(true, undefined, undefined, async () => problems));
    return [await condition(name, 'ReviewValid'), seen];
  };
  const clash =
    'the policies one, two all have spec.review for the packages of repository apps, so that none of them applies there, and no pull request is opened or read';
  expect(await repeat()).toMatchObject([
    { is: 'False', reason: 'Invalid', message: `Secret forge does not exist; ${clash}` },
    { requeueAfter: 60_000 },
  ]);
  problems = [];
  expect((await repeat('three'))[0]).toMatchObject({ is: 'True', reason: 'Valid' });
  await world.draft('apps/web/w1');
  expect((await repeat('three'))[0]).toMatchObject({
    message: expect.stringMatching(
      /^the policies one, three, two all have spec.review for packages such as apps\/web,/,
    ),
  });
  for (const name of ['two', 'three']) await world.client.delete(packagePolicyKind, { namespace: 'default', name });
  expect(await repeat()).toMatchObject([{ is: 'True', reason: 'Valid', message: '' }, { requeueAfter: 300_000 }]);
  expect((await condition('one', 'NamesKnown')).message).toMatch(
    /^spec.review.gateChecks names example.com\/Tested, which is a gate of no package/,
  );
  const { status: _, ...rest } = await world.client.get(packagePolicyKind, { namespace: 'default', name: 'one' });
  const spec = { ...rest.spec, review: undefined, requiredGates: [{ conditionType: 'example.com/Tested' }] };
  await world.client.update(packagePolicyKind, { ...rest, spec } as never);
  expect(await repeat()).toMatchObject([{}, {}]);
  expect(await condition('one', 'ReviewValid')).toEqual({});
});

test('a Secret that cannot be read is reported, and stops no other condition and no other policy', async () => {
  const forge = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } };
  await policy('a', { review: { forge } });
  await policy('b', { selector: { repositories: ['nosuch'] } });
  const reviewProblems = async () => {
    throw new SluiceError('Unavailable', 'the cluster is not there');
  };
  const controller = await controllerOf(true, undefined, undefined, reviewProblems);
  expect(await reconcile(controller)).toMatchObject({ requeueAfter: 60_000 });
  const unread = { is: 'Unknown', reason: 'NotRead', message: 'the cluster is not there' };
  expect(await condition('a', 'ReviewValid')).toEqual(unread);
  expect(await condition('a', 'NamesKnown')).toMatchObject({ is: 'True' });
  expect(await condition('b', 'NamesKnown')).toMatchObject({ is: 'False' });

  // What is certainly wrong is still reported.
  await policy('c', { review: { forge } });
  await reconcile(await controllerOf(true, undefined, undefined, reviewProblems));
  expect(await condition('a', 'ReviewValid')).toMatchObject({
    is: 'False',
    message: expect.stringMatching(/^the policies a, c all have spec.review.*; the cluster is not there$/),
  });
});

test('a gate that a policy in a repository requires is known to gateChecks, about which nothing is said while not all are', async () => {
  await world.draft('apps/web/w1');
  const forge = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } };
  await policy('rev', { review: { forge, gateChecks: ['example.com/Tested'] } });
  const { items } = await world.client.list(packagePolicyKind, { namespace: 'default' });
  const [rev] = items;
  const reportOf = (policies: object[] | undefined) => {
    const metadata = { name: 'guard', annotations: { 'sluice.dev/policies': 'policies' } };
    const required = gatesRequired(items, [{ metadata, status: { policies } } as never]);
    return rev === undefined ? [] : unknownTypes(rev.spec, new Set(), required && new Set(required));
  };
  const file = { name: 'strict', file: 'policies/strict.yaml', commit: 'abc' };
  const strict = (type: string) => [{ ...file, spec: { requiredGates: [{ conditionType: type }] } }];
  expect(reportOf(strict('example.com/Tested'))).toEqual([]);
  for (const other of [[], strict('example.com/Test')])
    expect(reportOf(other)).toEqual([
      expect.stringContaining('names example.com/Tested, which is a gate of no package'),
    ]);
  expect(reportOf([file])).toEqual([]);
  expect(reportOf(undefined)).toEqual([]);

  const apps = { namespace: 'default', name: 'apps' };
  const annotations = { 'sluice.dev/policies': 'policies' };
  await world.client.patch(repositoryKind, apps, { metadata: { annotations } } as never);
  await look();
  expect(await condition('rev', 'NamesKnown')).toMatchObject({ is: 'True' });
  const repository = await world.client.get(repositoryKind, apps);
  const update = (policies: object[]) =>
    world.client.updateStatus(repositoryKind, { ...repository, status: { ...repository.status, policies } } as never);
  await update(strict('example.com/Tested'));
  clock.advance(60_000);
  await look();
  expect(await condition('rev', 'NamesKnown')).toMatchObject({ is: 'True' });
});

test('what another controller has written into the status meanwhile is kept', async () => {
  await world.draft('apps/web/w1');
  const seen = await policy('all', {});
  const at = { lastTransitionTime: '2026-03-01T10:00:00Z' };
  const other = { type: 'Other', status: 'True', reason: 'Set', message: '', ...at } as const;
  await world.client.updateStatus(packagePolicyKind, { ...seen, status: { conditions: [other] } });
  await look(true, [seen]);
  const { status } = await world.client.get(packagePolicyKind, { namespace: 'default', name: 'all' });
  expect(status?.conditions).toContainEqual(other);
  expect(await condition('all', 'Selected')).toMatchObject({ is: 'True' });
});

test('a look is followed by a pause, of fifty times what it took if that is longer', async () => {
  await policy('all', {});
  await world.draft('apps/web/w1');
  const controller = await controllerOf();
  expect(await reconcile(controller)).toMatchObject({ requeueAfter: 300_000 });
  expect(await reconcile(controller)).toEqual({ requeueAfter: 2000, reason: 'it looked a moment ago' });
  clock.advance(2000);
  tookMs = 10_000;
  expect(await reconcile(controller)).toMatchObject({ requeueAfter: 500_000 });
  clock.advance(499_999);
  expect(await reconcile(controller)).toEqual({ requeueAfter: 1, reason: 'it looked a moment ago' });
  // It is that of all namespaces.
  expect(await reconcile(controller, 'other')).toEqual({ requeueAfter: 1, reason: 'it looked a moment ago' });
  clock.advance(1);
  // Without packages there is nothing to compare, and those that come are not to wait.
  expect(await reconcile(controller, 'other')).toMatchObject({ requeueAfter: 10_000 });
  expect(await reconcile(controller)).toMatchObject({ requeueAfter: 500_000 });
});

test('what the conditions depend on wakes its namespace, and roles of the installation all', async () => {
  await policy('all', {});
  const controller = await controllerOf();
  const handlers = new Map<string, (event: unknown) => void>();
  const woken: string[] = [];
  const informer = ({ kind }: { readonly kind: string }) => ({
    addHandler: (handler: (event: unknown) => void) => {
      handlers.set(kind, handler);
      return () => handlers.delete(kind);
    },
    list: () => [{ metadata: { name: 'all', namespace: 'default' } }],
  });
  const enqueue = ({ name }: { readonly name: string }) => void woken.push(name);
  const ends = controller.sources.map((source) => source.start({ informer, enqueue } as never));
  const after = async (act: () => unknown) => {
    woken.length = 0;
    await act();
    return woken;
  };
  const created = (kind: string, namespace?: string) =>
    handlers.get(kind)?.({ type: 'create', object: { metadata: { name: 'x', namespace } } });
  for (const kind of ['Repository', 'PackageVariantSet', 'PackageVariant', 'Role', 'RoleBinding'])
    expect(await after(() => created(kind, 'default'))).toEqual(['default']);
  for (const kind of ['ClusterRole', 'ClusterRoleBinding'])
    expect(await after(() => created(kind))).toEqual(['default']);
  const { name } = await world.draft('apps/web/w1');
  const condition = { type: 'example.com/Tested', status: 'True' } as const;
  expect(await after(() => world.store.change(name, { conditions: [condition] } as never, ANNA))).toEqual(['default']);
  const changed = (policies: object[]) => {
    const metadata = { name: 'apps', namespace: 'default' };
    const old = { metadata, spec: {}, status: { policies: [] } };
    handlers.get('Repository')?.({ type: 'update', old, object: { metadata, spec: {}, status: { policies } } });
  };
  expect(await after(() => changed([{ name: 'strict' }]))).toEqual(['default']);
  expect(await after(() => changed([]))).toEqual([]);
  for (const end of ends) end();
  expect(handlers.size).toBe(0);
});
