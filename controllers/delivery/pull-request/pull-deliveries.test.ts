import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ControllerOptions } from '../../../src/controller/controller.ts';
import { listDelivered } from '../../../src/delivery/delivered/list-delivered.ts';
import { packageBuilder } from '../../../src/delivery/render/build-package.ts';
import { KeyedMutex } from '../../../src/foundation/concurrency/mutex.ts';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
import { DEFAULT_NETWORK } from '../../../src/git/network/git-network.ts';
import { eventKind } from '../../../src/resource/kinds/core/event.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import { freezeKind } from '../../../src/resource/kinds/sluice/freeze.ts';
import {
  CONTEXT,
  controllerOn,
  filesOf,
  publish,
  publishNext,
  remove,
  statusOf,
  type TargetSpec,
} from '../../../test/support/delivery.ts';
import { commitFile, headOf, hostRepository, mergeBranch } from '../../../test/support/delivery-pull-request.ts';
import { type Fixture, fixture } from '../../../test/support/fixture.ts';
import { git as gitCli } from '../../../test/support/git/git-cli.ts';
import { writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { MemoryForge } from '../../pull-request/testing-forge.ts';
import { deliveryExplainer } from '../explain-delivery.ts';

const BRANCH = 'sluice/delivery/edge';
const FORGE = {
  ...{ provider: 'gitea' as const, api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } },
};

type Heads = Record<'own' | 'before' | 'main', string>;

describe('deliveries by pull request', () => {
  let clock: ManualClock;
  let world: Fixture;
  let site: string;
  let forge: MemoryForge;
  let controller: ControllerOptions;
  let committed: string[][];
  const start = () => {
    controller = controllerOn(world, {
      openForge: () => forge,
      onCommit: (_target, folders) => void committed.push([...folders]),
    });
  };
  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    await world.register('apps');
    site = await world.bare('site');
    forge = new MemoryForge();
    hostRepository(forge, site);
    committed = [];
    start();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const reconcile = () => controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
  const create = (pullRequest: Partial<NonNullable<TargetSpec['pullRequest']>> = {}, spec: Partial<TargetSpec> = {}) =>
    world.client.create(deliveryTargetKind, {
      metadata: { name: 'edge' },
      spec: {
        ...{ selector: {}, git: { repo: site, directory: 'clusters/edge' }, allowPrune: true, ...spec },
        pullRequest: { forge: FORGE, ...pullRequest },
      },
    });
  const merge = (method: 'merge' | 'squash' | 'rebase' = 'merge') => {
    const pull = forge.pulls.at(-1);
    if (pull === undefined) throw new Error('there is no pull request');
    const head = headOf(site, BRANCH) ?? '';
    const commit = mergeBranch(site, 'main', head, { method, title: 'Merged by a user', message: '' });
    forge.change(pull.number, {
      ...{ state: 'merged', head: { ...pull.head, commit: head }, merged: { commit, by: 'anna' } },
    });
    return commit;
  };
  /** What `sluice why` reports of the delivery of a revision. */
  const why = async (name: string) => {
    const target = await world.client.get(deliveryTargetKind, { name: 'edge' });
    const { items } = await world.client.list(repositoryKind);
    const explainer = deliveryExplainer({
      ...{ client: world.client, store: world.store, repositories: () => items, targets: () => [target] },
      ...{ delivered: await listDelivered(world.client, target), network: DEFAULT_NETWORK, dataFolder: world.folder },
      ...{ mirrorOf: () => `${world.folder}/mirror`, mirrors: new KeyedMutex(), timeoutMs: 30_000 },
      buildPackage: packageBuilder({}),
    });
    return (await explainer.explain({ evaluation: await world.store.evaluate(name) } as never, {} as never)).delivery;
  };
  const forgetStatus = async () => {
    const { status: _status, ...target } = await world.client.get(deliveryTargetKind, { name: 'edge' });
    await world.client.updateStatus(deliveryTargetKind, target);
  };

  test('several packages share one pull request, which is updated in place; they count as delivered once it is merged', async () => {
    const web = await publish(world, 'web');
    await create({ labels: ['delivery'], reviewers: { users: ['ben'], teams: [] } });
    expect(await reconcile()).toMatchObject({ requeueAfter: 20_000 });
    expect(filesOf(site)).toEqual([]);
    expect(filesOf(site, BRANCH)).toEqual(['clusters/edge/web/cm.yaml', 'clusters/edge/web/kustomization.yaml']);
    const [pull] = forge.pulls;
    expect(pull).toMatchObject({ title: 'Deliver to edge', labels: ['delivery'], base: { branch: 'main' } });
    expect(pull?.body).toContain('| `apps` | `web` | v1 |');
    expect(forge.requested).toEqual(['ben']);
    const url = pull?.url ?? '';
    expect(await statusOf(world)).toMatchObject({
      ...{ reason: 'WaitsForMerge', message: `0 packages are delivered; waits for the merge of ${url}`, packages: [] },
      status: { pullRequest: { number: 1, url, state: 'Open', commit: headOf(site, BRANCH) } },
    });
    expect(await why(web)).toMatchObject([
      {
        state: 'NotDelivered',
        message: `not on branch main of ${site} yet; waits for the merge of ${url}`,
      },
    ]);
    const head = headOf(site, BRANCH);
    await reconcile();
    start();
    await reconcile();
    expect(headOf(site, BRANCH)).toBe(head);

    await publish(world, 'db');
    await publishNext(world, web, 'w2', '2');
    await reconcile();
    expect(forge.pulls).toHaveLength(1);
    expect(forge.pulls[0]?.body).toContain('| `apps` | `db` | v1 |');
    expect(forge.pulls[0]?.body).toContain('| `apps` | `web` | v2 |');
    expect(gitCli(site, ['rev-list', '--count', `main..${BRANCH}`])).toBe('1');
    expect(forge.requested).toEqual(['ben']);
    expect((await world.events('edge')).filter((text) => text.startsWith('Delivered'))).toEqual([]);
    expect(committed).toEqual([]);

    const commit = merge();
    await reconcile();
    const { reason, packages, status } = await statusOf(world);
    expect(reason).toBe('Delivered');
    expect(packages.map((one) => `${one.package} v${one.revision}`)).toEqual(['db v1', 'web v2']);
    expect(status).toMatchObject({ lastCommit: commit, pullRequest: { number: 1, state: 'Merged' } });
    expect(headOf(site, BRANCH)).toBeUndefined();
    expect(await world.events('edge')).toContain(`Delivered: merged, at ${commit}: db v1, web v2`);
    expect(committed).toEqual([['clusters/edge/db', 'clusters/edge/web']]);
    expect(await why(web)).toMatchObject([{ state: 'OtherRevision' }]);
    forge.calls.length = 0;
    expect(await reconcile()).toMatchObject({ requeueAfter: 300_000 });
    // In quiet times the host is not asked.
    expect(forge.calls).toEqual([]);
  });

  test('where users merge, whether that is possible is read again once something has changed, and now and then', async () => {
    const web = await publish(world, 'web');
    await create();
    for (let turn = 0; turn < 3; turn += 1) await reconcile();
    forge.calls.length = 0;
    await reconcile();
    expect(forge.calls).toEqual(['get']);
    clock.advance(300_000);
    await reconcile();
    expect(forge.calls).toEqual(['get', 'get', 'mergeability']);
    // What is pushed must not take it out of a queue.
    forge.queue.add(1);
    const branch = headOf(site, BRANCH);
    await publishNext(world, web, 'v2', 'two');
    await reconcile();
    expect(headOf(site, BRANCH)).toBe(branch);
    expect((await statusOf(world)).status?.pullRequest).toMatchObject({ state: 'Queued' });
  });

  test('a squash and a rebase are recognised by their trees, also when a user changed the texts', async () => {
    const web = await publish(world, 'web');
    await create();
    for (const [at, method] of (['squash', 'rebase'] as const).entries()) {
      await reconcile();
      const commit = merge(method);
      await reconcile();
      expect(await statusOf(world)).toMatchObject({ reason: 'Delivered', status: { lastCommit: commit } });
      if (at === 0) await publishNext(world, web, 'w2', '2');
    }
    expect(forge.pulls).toHaveLength(2);
  });

  test('Sluice merges when the host permits it, and waits with the reason of the host until then', async () => {
    await publish(world, 'web');
    await create({ merge: 'automatic', method: 'squash' });
    forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'Required status check "ci" is expected.' };
    await reconcile();
    expect(await statusOf(world)).toMatchObject({
      ...{ reason: 'WaitsForMerge', message: expect.stringContaining('Required status check "ci" is expected.') },
    });
    forge.outcome = undefined;
    clock.advance(60_000);
    await reconcile();
    expect(await statusOf(world)).toMatchObject({ reason: 'Delivered', status: { packageCount: 1 } });
    expect(gitCli(site, ['log', '-1', '--format=%B', 'main'])).toMatch(/^Deliver web v1\n\nSluice-Target: edge\n/);
    expect(headOf(site, BRANCH)).toBeUndefined();
  });

  describe('a merge that the host refuses is not requested again at each poll', () => {
    const merges = () => forge.calls.filter((call) => call === 'merge').length;
    async function refused(obstacle: 'blocked' | 'method' | 'unknown', message = 'not permitted'): Promise<void> {
      await publish(world, 'web');
      await create({ merge: 'automatic' });
      forge.outcome = { state: 'refused', obstacle, message };
      await reconcile();
      // Its own text changes the time of the pull request.
      await reconcile();
      expect(await statusOf(world)).toMatchObject({ message: expect.stringContaining(message) });
      forge.calls.length = 0;
    }
    async function polls(count: number): Promise<void> {
      for (let turn = 0; turn < count; turn += 1) {
        clock.advance(20_000);
        await reconcile();
        expect(await statusOf(world)).toMatchObject({ reason: 'WaitsForMerge' });
      }
    }

    test('nine times in an hour, and at once when a user or a check changes what the host shows', async () => {
      await refused('blocked');
      await polls(180);
      expect(merges()).toBeLessThanOrEqual(9);
      forge.calls.length = 0;
      forge.change(1, {});
      await polls(1);
      expect(merges()).toBe(1);
      forge.mergeable = 'blocked';
      await polls(1);
      forge.outcome = undefined;
      forge.mergeable = 'mergeable';
      await reconcile();
      expect(await statusOf(world)).toMatchObject({ reason: 'Delivered' });
    });

    test('a method never, until the host permits it or the target names another one', async () => {
      await refused('method');
      forge.methods = ['squash'];
      await polls(180);
      expect(merges()).toBe(0);
      expect(forge.calls.filter((call) => call === 'mergeMethods').length).toBeLessThanOrEqual(7);
      const target = await world.client.get(deliveryTargetKind, { name: 'edge' });
      const pullRequest = { ...target.spec.pullRequest, method: 'squash' } as never;
      await world.client.update(deliveryTargetKind, { ...target, spec: { ...target.spec, pullRequest } });
      forge.outcome = undefined;
      await reconcile();
      expect(await statusOf(world)).toMatchObject({ reason: 'Delivered' });
    });

    test('a method that the settings of the host permit later', async () => {
      await refused('method');
      forge.methods = ['squash'];
      await polls(31);
      forge.methods = ['merge', 'squash'];
      forge.outcome = undefined;
      clock.advance(600_000);
      await reconcile();
      expect(await statusOf(world)).toMatchObject({ reason: 'Delivered' });
    });

    test('what else is to be delivered is requested at once', async () => {
      await refused('method');
      await publish(world, 'db');
      forge.outcome = undefined;
      await reconcile();
      await reconcile();
      expect(await statusOf(world)).toMatchObject({ reason: 'Delivered' });
    });
  });

  test('an open pull request is read rarely while webhooks report its changes, and often after one that none reported', async () => {
    let report: (target: { namespace: string; name: string }) => void = () => undefined;
    controller = controllerOn(world, {
      openForge: () => forge,
      requests: {
        subscribe: (listener) => {
          report = listener;
          return () => undefined;
        },
      },
    });
    controller.sources.at(-1)?.start({ enqueue: () => undefined } as never);
    await publish(world, 'web');
    await create();
    await reconcile();
    expect(await reconcile()).toMatchObject({ requeueAfter: 20_000 });
    clock.advance(600_000);
    await reconcile();
    expect(await reconcile()).toMatchObject({ requeueAfter: 30_000 });
    report({ namespace: 'default', name: 'edge' });
    expect(await reconcile()).toMatchObject({ requeueAfter: 300_000 });
    forge.change(1, { title: 'reported' });
    report({ namespace: 'default', name: 'edge' });
    expect(await reconcile()).toMatchObject({ requeueAfter: 30_000 });
    clock.advance(600_000);
    expect(await reconcile()).toMatchObject({ requeueAfter: 300_000 });
    forge.change(1, { title: 'not reported' });
    clock.advance(300_000);
    await reconcile();
    expect(await reconcile()).toMatchObject({ requeueAfter: 20_000 });
  });

  test('a merge queue: success means that the merge is requested, and nothing is pushed meanwhile', async () => {
    const web = await publish(world, 'web');
    await create({ merge: 'automatic' });
    forge.outcome = { state: 'queued' };
    await reconcile();
    expect(await statusOf(world)).toMatchObject({
      ...{ reason: 'WaitsForMerge', message: expect.stringContaining('waits for the merge queue') },
      status: { pullRequest: { state: 'Queued' } },
    });
    forge.mergeable = 'queued';
    const head = headOf(site, BRANCH);
    await publishNext(world, web, 'w2', '2');
    await reconcile();
    expect(headOf(site, BRANCH)).toBe(head);
    merge('squash');
    forge.mergeable = 'mergeable';
    await reconcile();
    expect(forge.pulls).toHaveLength(2);
    expect(await statusOf(world)).toMatchObject({
      reason: 'WaitsForMerge',
      packages: [{ package: 'web', revision: 1 }],
    });
  });

  test('what may be in the merge queue after a lost response leaves it when the target has users merge', async () => {
    await publish(world, 'web');
    await create({ merge: 'automatic' });
    forge.outcome = { state: 'queued' };
    forge.after = (method) => {
      if (method !== 'merge') return;
      forge.queue.add(1);
      throw new SluiceError('Unavailable', 'status 502');
    };
    await reconcile().catch(() => undefined);
    expect([...forge.queue]).toEqual([1]);
    const target = { namespace: 'default', name: 'edge' };
    await world.client.patch(deliveryTargetKind, target, { spec: { pullRequest: { merge: 'manual' } } });
    await reconcile();
    expect([...forge.queue]).toEqual([]);
  });

  describe('while deliveries are stopped', () => {
    const key = { namespace: 'default', name: 'stop' };
    const freeze = () => world.client.create(freezeKind, { metadata: key, spec: { reason: 'repair' } });
    const events = async () =>
      (await world.client.list(eventKind)).items.map(({ reason, message }) => `${reason}: ${message}`);
    async function queued(): Promise<void> {
      await publish(world, 'web');
      await create({ merge: 'automatic' });
      forge.outcome = { state: 'queued' };
      forge.after = (method) => {
        if (method === 'merge') forge.queue.add(1);
      };
      await reconcile();
      expect([...forge.queue]).toEqual([1]);
    }

    test.each([false, true])(
      'what Sluice has put into the merge queue is removed, and put there again afterwards (restart: %s)',
      async (isRestarted) => {
        await queued();
        await freeze();
        if (isRestarted) start();
        expect(await reconcile()).toMatchObject({ requeueAfter: 300_000 });
        expect([...forge.queue]).toEqual([]);
        expect(await statusOf(world)).toMatchObject({ reason: 'Frozen', status: { pullRequest: { state: 'Open' } } });
        expect((await events()).join('\n')).toMatch(/Dequeued: .*pulls\/1 was removed .*Freeze default\/stop/);
        await reconcile();
        expect(forge.calls.filter((call) => call === 'merge')).toHaveLength(1);
        await world.client.delete(freezeKind, key);
        await reconcile();
        expect([...forge.queue]).toEqual([1]);
        expect(await statusOf(world)).toMatchObject({ status: { pullRequest: { state: 'Queued' } } });
      },
    );

    test('a suspended target is not merged by the queue either', async () => {
      await queued();
      const target = { namespace: 'default', name: 'edge' };
      await world.client.patch(deliveryTargetKind, target, { spec: { suspend: true } });
      expect(await reconcile()).toMatchObject({ requeueAfter: 300_000 });
      expect([...forge.queue]).toEqual([]);
      expect((await events()).join('\n')).toMatch(/Dequeued: .*pulls\/1 was removed .*spec.suspend is set/);
      await world.client.patch(deliveryTargetKind, target, { spec: { suspend: false } });
      await reconcile();
      expect([...forge.queue]).toEqual([1]);
    });

    test('a target whose branch has become one of packages is not merged by the queue either', async () => {
      await queued();
      await world.client.create(repositoryKind, { metadata: { name: 'site' }, spec: { git: { repo: site } } });
      await reconcile();
      expect([...forge.queue]).toEqual([]);
      expect((await statusOf(world)).reason).toBe('TargetIsPackages');
    });

    test.each([false, true])(
      'where users merge now, it leaves the queue; what they put there stays, which is no mistake (restart: %s)',
      async (isRestarted) => {
        await queued();
        if (isRestarted) start();
        const target = { namespace: 'default', name: 'edge' };
        await world.client.patch(deliveryTargetKind, target, { spec: { pullRequest: { merge: 'manual' } } });
        await reconcile();
        expect([...forge.queue]).toEqual([]);
        expect((await events()).join('\n')).toMatch(
          /Dequeued: .*pulls\/1 was removed .*spec.pullRequest.merge is manual/,
        );
        expect(await statusOf(world)).toMatchObject({ status: { pullRequest: { state: 'Open' } } });
        forge.calls.length = 0;
        forge.queue.add(1);
        forge.queuedByOthers.add(1);
        await reconcile();
        expect([...forge.queue]).toEqual([1]);
        expect(forge.calls).not.toContain('dequeue');
        expect(await statusOf(world)).toMatchObject({ status: { pullRequest: { state: 'Queued' } } });
      },
    );

    test('where users merge, what an earlier process has put there leaves the queue as deliveries stop, and what they put there stays', async () => {
      await queued();
      const target = { namespace: 'default', name: 'edge' };
      const spec = { pullRequest: { merge: 'manual' }, suspend: true } as const;
      await world.client.patch(deliveryTargetKind, target, { spec });
      start();
      forge.queuedByOthers.add(1);
      await reconcile();
      await reconcile();
      expect([...forge.queue]).toEqual([1]);
      expect(forge.calls.filter((call) => call === 'dequeue')).toHaveLength(1);
      expect((await events()).join('\n')).not.toMatch(/equeued/);
      forge.queuedByOthers.clear();
      start();
      await reconcile();
      expect([...forge.queue]).toEqual([]);
      expect((await events()).join('\n')).toMatch(/Dequeued: .*spec.suspend is set/);
    });

    test('what cannot be removed from the merge queue is reported, and tried again', async () => {
      await queued();
      await freeze();
      forge.before = (method) => {
        if (method === 'dequeue') throw new SluiceError('Refused', 'the App may not do that');
      };
      expect(await reconcile()).toMatchObject({ requeueAfter: 60_000 });
      expect((await events()).join('\n')).toMatch(
        /NotDequeued: .*pulls\/1 cannot be removed .*the App may not do that/,
      );
      forge.before = () => undefined;
      await reconcile();
      expect([...forge.queue]).toEqual([]);
    });
  });

  test('the branch is set on the present one only where the host requires it', async () => {
    await publish(world, 'web');
    await create();
    await reconcile();
    const head = headOf(site, BRANCH);
    const main = commitFile(site, 'main', 'other/file.txt', 'x');
    await reconcile();
    expect(headOf(site, BRANCH)).toBe(head);
    forge.mergeable = 'unknown';
    clock.advance(300_000);
    await reconcile();
    clock.advance(50_000);
    await reconcile();
    expect(headOf(site, BRANCH)).toBe(head);
    forge.mergeable = 'behind';
    await reconcile();
    expect(gitCli(site, ['rev-parse', `${BRANCH}^`])).toBe(main);
    expect(forge.pulls).toHaveLength(1);
  });

  test('closed by a user: held with the reason, until it is reopened or another revision is published', async () => {
    const web = await publish(world, 'web');
    await create();
    await reconcile();
    forge.closings.set(1, { by: 'anna', comment: 'not on a Friday' });
    forge.change(1, { state: 'closed', closedAt: '2030-01-01T00:00:00Z' });
    expect(await reconcile()).toMatchObject({ requeueAfter: 60_000 });
    const held = { reason: 'PullRequestClosed', message: expect.stringContaining('by anna (not on a Friday)') };
    expect(await statusOf(world)).toMatchObject(held);
    await forgetStatus();
    start();
    await reconcile();
    expect(await statusOf(world)).toMatchObject(held);
    expect(forge.pulls).toHaveLength(1);
    const { closedAt: _closedAt, ...pull } = forge.pulls[0] ?? {};
    forge.pulls[0] = { ...pull, state: 'open' } as (typeof forge.pulls)[number];
    await reconcile();
    expect((await statusOf(world)).reason).toBe('WaitsForMerge');
    forge.change(1, { state: 'closed', closedAt: '2030-01-01T00:00:00Z' });
    await reconcile();
    await publishNext(world, web, 'w2', '2');
    await reconcile();
    expect(forge.pulls).toHaveLength(2);
    expect(await statusOf(world)).toMatchObject({ reason: 'WaitsForMerge', status: { pullRequest: { number: 2 } } });
  });

  test('what a user pushed to the branch stays, and is reported; a merge of it is what the branch of the target has', async () => {
    const web = await publish(world, 'web');
    await create({ merge: 'automatic' });
    forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'waits' };
    await reconcile();
    const foreign = commitFile(site, BRANCH, 'clusters/edge/web/cm.yaml', 'changed by a user');
    forge.outcome = undefined;
    for (let round = 0; round < 2; round += 1) {
      await reconcile();
      expect(headOf(site, BRANCH)).toBe(foreign);
      expect(await statusOf(world)).toMatchObject({
        ...{
          reason: 'BranchChanged',
          message: expect.stringContaining(`was changed by Test <test@example.com> (commit ${foreign})`),
        },
      });
      if (round === 0) await publishNext(world, web, 'w2', '2');
    }
    merge();
    // The change is drift, which the next pull request repairs.
    forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'waits' };
    await reconcile();
    expect(forge.pulls).toHaveLength(2);
    expect(headOf(site, BRANCH)).not.toBe(foreign);
    expect(gitCli(site, ['show', `${BRANCH}:clusters/edge/web/cm.yaml`])).toContain('value: "2"');
    expect(await world.events('edge')).toContainEqual(
      expect.stringMatching(/^BranchReplaced: .* whose pull request has ended/),
    );
  });

  test('the merge of the branch of the target into it, as hosts offer it, is no change of a user', async () => {
    await publish(world, 'web');
    await create();
    await reconcile();
    const main = commitFile(site, 'main', 'other/file.txt', 'x');
    const own = headOf(site, BRANCH) ?? '';
    const tree = gitCli(site, ['merge-tree', '--write-tree', own, main]);
    const merged = gitCli(site, ['commit-tree', tree, '-p', own, '-p', main, '-m', 'Merge branch main']);
    gitCli(site, ['update-ref', `refs/heads/${BRANCH}`, merged]);
    await reconcile();
    expect(headOf(site, BRANCH)).toBe(merged);
    expect((await statusOf(world)).reason).toBe('WaitsForMerge');
  });

  test.each([
    {
      what: 'takes back what the branch of the target has got since: its history has that',
      make: ({ own, before, main }: Heads) => ({ of: own, parents: [before, main] }),
    },
    {
      what: 'follows another one, which a rebase applies by itself',
      make: ({ own, main }: Heads) => {
        const changed = commitFile(site, BRANCH, 'evil.yaml', 'x');
        return { of: gitCli(site, ['merge-tree', '--write-tree', own, main]), parents: [changed, main] };
      },
    },
  ])('a merge with the tree of a delivery is a change of a user if it $what', async ({ make }) => {
    await publish(world, 'web');
    await create({ merge: 'automatic' });
    forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'waits' };
    await reconcile();
    const before = headOf(site, 'main') ?? '';
    const own = headOf(site, BRANCH) ?? '';
    const main = commitFile(site, 'main', 'rbac.yaml', 'hardened');
    const { of, parents } = make({ own, before, main });
    const tree = gitCli(site, ['rev-parse', `${of}^{tree}`]);
    const forged = writeCommit(site, { tree, parents, message: 'Merge main\n' });
    writeRef(site, `refs/heads/${BRANCH}`, forged);
    forge.outcome = undefined;
    await reconcile();
    expect(await statusOf(world)).toMatchObject({ reason: 'BranchChanged', message: expect.stringContaining(forged) });
    expect(headOf(site, 'main')).toBe(main);
  });

  test('with nothing left to deliver the pull request is closed with a reason, and its branch removed', async () => {
    const web = await publish(world, 'web');
    await create();
    await reconcile();
    await remove(world, web);
    await reconcile();
    expect(forge.pulls).toMatchObject([{ state: 'closed', body: expect.stringContaining('Closed by Sluice') }]);
    expect(headOf(site, BRANCH)).toBeUndefined();
    expect((await statusOf(world)).reason).toBe('Delivered');
    // That was no rejection by a user.
    await publish(world, 'web2');
    await reconcile();
    expect(forge.pulls).toHaveLength(2);
  });

  test('a removal is delivered by a merge too; until then the package counts as delivered', async () => {
    const web = await publish(world, 'web');
    await create({ merge: 'automatic' });
    await reconcile();
    forge.outcome = { state: 'refused', obstacle: 'blocked', message: 'waits' };
    await remove(world, web);
    await reconcile();
    expect((await statusOf(world)).packages).toMatchObject([{ package: 'web', revision: 1 }]);
    expect(forge.pulls.at(-1)?.body).toContain('| `apps` | `web` | removed |');
    forge.outcome = undefined;
    clock.advance(60_000);
    await reconcile();
    expect(await statusOf(world)).toMatchObject({ reason: 'Delivered', packages: [] });
    expect(filesOf(site)).toEqual([]);
  });
});
