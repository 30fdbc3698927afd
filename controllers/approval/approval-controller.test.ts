import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import {
  APPROVAL_DELAY_ANNOTATION,
  APPROVAL_POLICY_ANNOTATION,
} from '../../src/package/model/revision/lifecycle-annotations.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { type ApprovalOptions, approvalController } from './approval-controller.ts';

const GATE = 'test.dev/v1.Review.ok';
const CONTEXT = { signal: new AbortController().signal, failures: 0 };

describe('approval controller', () => {
  let clock: ManualClock;
  let world: Fixture;
  let branch: string;
  let reconcile: (name: string) => ReturnType<ReturnType<typeof approvalController>['reconcile']>;

  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    branch = await world.register('apps');
    reconcile = controllerOn(world.store);
  });
  afterEach(() => world[Symbol.asyncDispose]());

  function controllerOn(store: ApprovalOptions['store']): typeof reconcile {
    const { client } = world;
    const controller = approvalController({ client, store, clock, recorder: world.recorder('controller:approval') });
    return (name) => controller.reconcile({ namespace: 'default', name }, CONTEXT);
  }

  /** A settled draft with the approval annotations. */
  async function draft(annotations: Record<string, string>, workspace = 'w1'): Promise<string> {
    const { name } = await world.draft(`apps/app/${workspace}`);
    await annotate(name, annotations);
    await world.settle(name);
    return name;
  }
  const annotate = (name: string, annotations: Record<string, string>) =>
    world.store.change(name, { metadata: { annotations } }, ANNA);
  const always = { [APPROVAL_POLICY_ANNOTATION]: 'always' };
  const initial = { [APPROVAL_POLICY_ANNOTATION]: 'initial' };
  const lifecycle = (name: string) => world.store.get(name).lifecycle;
  const change = (name: string, text = 'a: 1\n') =>
    world.store.change(name, { files: new Map([['more.yaml', Buffer.from(text)]]) }, ANNA);

  test('always: first proposes, then approves the proposed content', async () => {
    const name = await draft(always);
    const { commit } = world.store.get(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
    await reconcile(name);
    const published = world.store.get(name);
    expect(published).toMatchObject({ lifecycle: 'Published', revision: 1, outOfBand: undefined });
    expect(published.tip.parents[1]).toBe(commit);
    expect(published.tip.facts).toMatchObject({ actor: 'controller:approval', face: 'controller' });
    expect(await world.events(name)).toEqual([
      `Proposed: proposed commit ${commit} (approval.nephio.org/policy: always)`,
      `Approved: approved commit ${commit} (approval.nephio.org/policy: always)`,
    ]);
    await reconcile(name);
    expect(world.store.get(name).etag).toBe(published.etag);
  });

  test('initial: the first revision of a package only', async () => {
    const first = await draft(initial);
    await reconcile(first);
    await reconcile(first);
    expect(lifecycle(first)).toBe('Published');
    const source = { type: 'copy', source: first } as const;
    const { name } = await world.store.create('apps', { package: 'app', workspace: 'w2', source }, ANNA);
    await annotate(name, initial);
    await change(name);
    await world.settle(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    expect(await world.events(name)).toEqual([
      `NotApproved: policy initial approves the first revision only, and ${first} is Published`,
    ]);
    await annotate(name, always);
    await reconcile(name);
    await reconcile(name);
    expect(world.store.get(name)).toMatchObject({ lifecycle: 'Published', revision: 2 });
  });

  test('the annotation in the Kptfile counts where a policy enables it', async () => {
    const name = await draft({});
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    await world.store.change(
      name,
      { kptfile: [{ op: 'setAnnotation', key: APPROVAL_POLICY_ANNOTATION, value: 'always' }] },
      ANNA,
    );
    await world.settle(name);
    await reconcile(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    expect((await world.events(name)).at(-1)).toContain('in the Kptfile has no effect');
    await world.client.create(packagePolicyKind, { metadata: { name: 'lax' }, spec: { kptfileApprovals: true } });
    await settle();
    await reconcile(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Published');
  });

  test.each([
    [{ [APPROVAL_POLICY_ANNOTATION]: 'often' }, 'InvalidPolicy: annotation approval.nephio.org/policy is "often"'],
    [
      { ...always, [APPROVAL_DELAY_ANNOTATION]: 'soon' },
      'InvalidDelay: annotation approval.nephio.org/delay is "soon"',
    ],
    [{ ...always, [APPROVAL_DELAY_ANNOTATION]: '-5m' }, 'InvalidDelay: annotation approval.nephio.org/delay is "-5m"'],
  ])('an invalid annotation %o is reported', async (annotations, event) => {
    const name = await draft(annotations);
    await reconcile(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    const events = await world.events(name);
    expect(events).toHaveLength(1);
    expect(events[0]).toContain(event);
  });

  test('the delay counts from the creation, and the controller waits for its remainder', async () => {
    const name = await draft({ ...always, [APPROVAL_DELAY_ANNOTATION]: '1m30s' });
    expect(await reconcile(name)).toMatchObject({ requeueAfter: 90_000 });
    clock.advance(60_000);
    expect(await reconcile(name)).toMatchObject({ requeueAfter: 30_000 });
    expect(lifecycle(name)).toBe('Draft');
    clock.advance(30_000);
    await reconcile(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Published');
  });

  test('a push between the evaluation and the approval is not published', async () => {
    const name = await draft(always);
    await reconcile(name);
    const { store } = world;
    let pushed = '';
    const racing = controllerOn({
      find: (id) => store.find(id),
      list: (filter) => store.list(filter),
      dependentsOf: (revision) => world.store.dependentsOf(revision),
      onPromotion: (listener) => store.onPromotion(listener),
      repositoryOf: (revision) => store.repositoryOf(revision),
      evaluate: async (of) => {
        const evaluation = await store.evaluate(of);
        pushed = await world.push(branch, { 'app/evil.yaml': 'a: 1\n' }, 'proposed/app/w1');
        return evaluation;
      },
    });
    await expect(racing(name)).rejects.toMatchObject({ code: 'Conflict' });
    expect(store.get(name)).toMatchObject({ lifecycle: 'Proposed', commit: pushed });
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
    expect((await world.events(name)).at(-1)).toMatch(
      /^NotApproved: it was proposed before every resolver had reported/,
    );
  });

  test('an annotation that is removed between the evaluation and the approval prevents the approval', async () => {
    const name = await draft(always);
    await reconcile(name);
    const { store } = world;
    const racing = controllerOn({
      find: (id) => store.find(id),
      list: (filter) => store.list(filter),
      dependentsOf: (revision) => world.store.dependentsOf(revision),
      onPromotion: (listener) => store.onPromotion(listener),
      repositoryOf: (revision) => store.repositoryOf(revision),
      evaluate: async (of) => {
        const evaluation = await store.evaluate(of);
        await annotate(name, {});
        return evaluation;
      },
    });
    await expect(racing(name)).rejects.toMatchObject({ code: 'Conflict' });
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
  });

  test('closed gates prevent it, approve-only gates after the proposal', async () => {
    await world.client.create(packagePolicyKind, {
      metadata: { name: 'all' },
      spec: { requiredGates: [{ conditionType: GATE }, { conditionType: 'signed-off', approveOnly: true }] },
    });
    await settle();
    const name = await draft(always);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    await world.store.change(name, { conditions: [{ type: GATE, status: 'True' }] }, ANNA);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
    expect((await world.events(name)).at(-1)).toBe(
      'NotApproved: closed gates: signed-off: the condition has not been set yet',
    );
    await world.store.change(name, { conditions: [{ type: 'signed-off', status: 'True' }] }, ANNA);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Published');
  });

  test('a copy that is equal to its source is neither proposed nor approved', async () => {
    const first = await draft(always);
    await world.publish(first);
    const source = { type: 'copy', source: first } as const;
    const { name } = await world.store.create('apps', { package: 'app', workspace: 'w2', source }, ANNA);
    await annotate(name, always);
    await world.settle(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    await world.store.update(name, { action: 'propose' }, ANNA);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
    expect(await world.events(name)).toEqual([
      `NotApproved: the content is still that of ${first}, which is published; change it first`,
    ]);
  });

  test('where self-approval is forbidden it approves nothing, since the proposer may have written the annotation', async () => {
    await world.client.create(packagePolicyKind, {
      metadata: { name: 'four-eyes' },
      spec: { approval: { forbidSelfApproval: true } },
    });
    await settle();
    const name = await draft(always);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    await world.store.update(name, { action: 'propose' }, ANNA);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
    expect(await world.events(name)).toContain(
      'NotApproved: a policy forbids self-approval, so a user has to approve it',
    );
  });

  test('it approves what a user proposed', async () => {
    const name = await draft(always);
    await world.store.update(name, { action: 'propose' }, ANNA);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Published');
  });
});

test('under a manager: from draft to published by events alone', async () => {
  await using world = await fixture();
  await world.register('apps');
  const { client, store, clock, manager } = world;
  manager.addController(approvalController({ client, store, clock }));
  await manager.start();
  const source = { type: 'init' } as const;
  const annotations = { [APPROVAL_POLICY_ANNOTATION]: 'initial' };
  const { name } = await store.create(
    'apps',
    { package: 'app', workspace: 'w1', source, metadata: { annotations } },
    ANNA,
  );
  await manager.idle();
  expect(store.get(name).lifecycle).toBe('Draft');
  await world.settle(name);
  await manager.idle();
  expect(store.get(name)).toMatchObject({ lifecycle: 'Published', revision: 1 });
});
