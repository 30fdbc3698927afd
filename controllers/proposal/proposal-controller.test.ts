import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import { AUTO_LIFECYCLE_ANNOTATION } from '../../src/package/model/revision/lifecycle-annotations.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { proposalController } from './proposal-controller.ts';

const GATE = 'test.dev/v1.Review.ok';
const MARKED = { annotations: { [AUTO_LIFECYCLE_ANNOTATION]: 'true' } };

function kptfile(gates: readonly string[] = [], annotations: Record<string, string> = {}): string {
  const list = gates.map((type) => `    - conditionType: ${type}\n`).join('');
  return `apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: app
  annotations: ${JSON.stringify({ 'config.kubernetes.io/local-config': 'true', ...annotations })}
info:
  description: app
${list === '' ? '' : `  readinessGates:\n${list}`}`;
}

describe('proposal controller', () => {
  let clock: ManualClock;
  let world: Fixture;
  let reconcile: (name: string) => ReturnType<ReturnType<typeof proposalController>['reconcile']>;
  let branch: string;

  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    branch = await world.register('apps');
    const { client, store } = world;
    const controller = proposalController({ client, store, clock, recorder: world.recorder('controller:proposal') });
    reconcile = (name) =>
      controller.reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
    await world.client.create(packagePolicyKind, { metadata: { name: 'lax' }, spec: { kptfileApprovals: true } });
    await settle();
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const draft = async (files: Record<string, string>, marked = true) => {
    const { name } = await world.draft('apps/app/w1', files);
    if (marked) await world.store.change(name, { metadata: MARKED }, ANNA);
    return name;
  };
  const lifecycle = (name: string) => world.store.get(name).lifecycle;

  test('a marked draft whose resolvers have reported is proposed, once', async () => {
    const name = await draft({ Kptfile: kptfile() });
    await world.settle(name);
    const { commit } = world.store.get(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
    expect(world.store.get(name).commit).toBe(commit);
    const [step] = world.store.get(name).record?.steps ?? [];
    expect(step).toMatchObject({ action: 'propose', by: 'controller:proposal', face: 'controller' });
    expect(await world.events(name)).toEqual([`Proposed: proposed commit ${commit}: all gates are open`]);
    const { etag } = world.store.get(name);
    await reconcile(name);
    expect(world.store.get(name).etag).toBe(etag);
  });

  test('the proposal waits for a resolver that was added after the others had reported', async () => {
    const name = await draft({ Kptfile: kptfile() });
    await world.settle(name);
    const { client, store } = world;
    const recorder = world.recorder('controller:proposal');
    const asking = proposalController({ client, store, clock, recorder, applicableResolvers: () => ['newcomer'] });
    const context = { signal: new AbortController().signal, failures: 0 };
    await asking.reconcile({ namespace: 'default', name }, context);
    expect(lifecycle(name)).toBe('Draft');
    await store.change(name, { settled: { resolvers: ['newcomer'] } }, ANNA);
    await asking.reconcile({ namespace: 'default', name }, context);
    expect(lifecycle(name)).toBe('Proposed');
  });

  test('the annotation counts in the Kptfile too, and drafts without it stay', async () => {
    const unmarked = await draft({ Kptfile: kptfile() }, false);
    await world.settle(unmarked);
    await reconcile(unmarked);
    expect(lifecycle(unmarked)).toBe('Draft');
    expect(await world.events(unmarked)).toEqual([]);
    const { name } = await world.draft('apps/other/w1', { Kptfile: kptfile([], MARKED.annotations) });
    await world.settle(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
  });

  test('open gates are not enough before the resolvers have reported on this content', async () => {
    const name = await draft({ Kptfile: kptfile() });
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    await world.settle(name);
    // After a push the report of the resolvers is about other content.
    await world.push(branch, { 'app/more.yaml': 'a: 1\n' }, 'drafts/app/w1');
    await world.store.repository('apps').refresh();
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    expect(await world.events(name)).toEqual([]);
    await world.settle(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
  });

  test('a push that the index has not read yet is not proposed', async () => {
    const name = await draft({ Kptfile: kptfile() });
    await world.settle(name);
    const pushed = await world.push(branch, { 'app/more.yaml': 'a: 1\n' }, 'drafts/app/w1');
    await expect(reconcile(name)).rejects.toMatchObject({ code: 'Conflict' });
    expect(world.store.get(name)).toMatchObject({ lifecycle: 'Draft', commit: pushed });
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
  });

  test('a change between the evaluation and the proposal is a conflict', async () => {
    const name = await draft({ Kptfile: kptfile() });
    await world.settle(name);
    const { client, store } = world;
    const racing = proposalController({
      client,
      clock,
      store: {
        find: (id) => store.find(id),
        onPromotion: (listener) => store.onPromotion(listener),
        repositoryOf: (revision) => store.repositoryOf(revision),
        evaluate: async (of) => {
          const evaluation = await store.evaluate(of);
          await store.change(of, { metadata: { annotations: {} } }, ANNA);
          return evaluation;
        },
      },
    });
    const context = { signal: new AbortController().signal, failures: 0 };
    await expect(racing.reconcile({ namespace: 'default', name }, context)).rejects.toMatchObject({ code: 'Conflict' });
    expect(lifecycle(name)).toBe('Draft');
  });

  test('the controller waits for a hanging repository only as long as the signal allows', async () => {
    const name = await draft({ Kptfile: kptfile() });
    const hanging = {
      find: () => undefined,
      onPromotion: () => () => undefined,
      evaluate: () => new Promise<never>(() => {}),
      repositoryOf: () => {
        throw new Error('not reached');
      },
    };
    const controller = proposalController({ client: world.client, clock, store: hanging });
    const limit = new AbortController();
    const running = controller.reconcile({ namespace: 'default', name }, { signal: limit.signal, failures: 0 });
    await settle();
    limit.abort(new Error('too long'));
    await expect(running).rejects.toThrow('too long');
  });

  test('closed gates prevent it, with one event', async () => {
    const name = await draft({ Kptfile: kptfile([GATE]) });
    await world.settle(name);
    await reconcile(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    expect(await world.events(name)).toEqual([
      `NotProposed: closed gates: ${GATE}: the condition has not been set yet`,
    ]);
    await world.store.change(name, { conditions: [{ type: GATE, status: 'True' }] }, ANNA);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
  });

  test('a copy is not proposed while its content is that of its source', async () => {
    const first = await draft({ Kptfile: kptfile() });
    await world.settle(first);
    await world.publish(first);
    const copy = await world.store.create(
      'apps',
      { package: 'app', workspace: 'w2', source: { type: 'copy', source: first }, metadata: MARKED },
      ANNA,
    );
    await world.settle(copy.name);
    await reconcile(copy.name);
    expect(lifecycle(copy.name)).toBe('Draft');
    const [event] = await world.events(copy.name);
    expect(event).toBe(`NotProposed: the content is still that of ${first}, which is published; change it first`);
    await world.store.change(copy.name, { files: new Map([['x.yaml', Buffer.from('a: 1\n')]]) }, ANNA);
    await world.settle(copy.name);
    await reconcile(copy.name);
    expect(lifecycle(copy.name)).toBe('Proposed');
  });

  test('a rejected draft is not proposed again unchanged', async () => {
    const name = await draft({ Kptfile: kptfile() });
    await world.settle(name);
    await reconcile(name);
    await world.store.update(name, { action: 'reject' }, { ...ANNA, reason: 'too many replicas' });
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    expect((await world.events(name)).at(-1)).toBe(
      'NotProposed: anna rejected this content (too many replicas); change it, or propose it by hand',
    );
    // A condition makes a commit, and is no change of what was rejected.
    await world.store.change(name, { conditions: [{ type: 'test.dev/Other', status: 'True' }] }, ANNA);
    await world.settle(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Draft');
    await world.store.change(name, { files: new Map([['x.yaml', Buffer.from('a: 1\n')]]) }, ANNA);
    await world.settle(name);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
  });

  test('a policy marks drafts, adds gates, leaves approve-only ones to the approval, and sets deadlines', async () => {
    await world.client.create(packagePolicyKind, {
      metadata: { name: 'all' },
      spec: {
        autoPropose: true,
        requiredGates: [{ conditionType: GATE }, { conditionType: 'signed-off', approveOnly: true }],
        gateDeadlines: [{ conditionType: GATE, after: '1h' }],
      },
    });
    await settle();
    const name = await draft({ Kptfile: kptfile() }, false);
    await world.settle(name);
    expect(await reconcile(name)).toEqual({ requeueAfter: 3_600_000, reason: 'the deadline of a closed gate' });
    clock.advance(1_000_000);
    expect(await reconcile(name)).toMatchObject({ requeueAfter: 2_600_000 });
    clock.advance(2_600_000);
    expect(await reconcile(name)).toBeUndefined();
    expect((await world.events(name)).at(-1)).toBe(
      `GateOverdue: gate ${GATE} is overdue: the condition has not been set yet`,
    );
    await world.store.change(name, { conditions: [{ type: GATE, status: 'True' }] }, ANNA);
    await reconcile(name);
    expect(lifecycle(name)).toBe('Proposed');
    const summary = 'all gates of a proposal are open; an approval waits for signed-off';
    const reason = 'all gates of a proposal are open and the resolvers have reported; an approval waits for signed-off';
    expect(await world.store.history(name)).toContainEqual(expect.objectContaining({ action: 'propose', reason }));
    expect((await world.events(name)).at(-1)).toBe(
      `Proposed: proposed commit ${world.store.get(name).commit}: ${summary}`,
    );
  });

  test('a draft that another controller proposed in between causes no event', async () => {
    const name = await draft({ Kptfile: kptfile() });
    await world.settle(name);
    const { client, store } = world;
    const recorder = world.recorder('controller:proposal');
    let isFirst = true;
    const late: typeof client = new Proxy(client, {
      get: (target, property) => {
        if (property === 'as') return () => late;
        if (property === 'update')
          return async () => {
            if (isFirst) await store.update(name, { action: 'propose' }, ANNA);
            isFirst = false;
            throw new SluiceError('Refused', `cannot propose ${name}: it is Proposed, this needs Draft`);
          };
        const value = Reflect.get(target, property);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
    const controller = proposalController({ client: late, store, clock, recorder });
    await controller.reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
    expect(lifecycle(name)).toBe('Proposed');
    expect(await world.events(name)).toEqual([]);
  });

  test('a draft with an unreadable Kptfile stays, with an event', async () => {
    const name = await draft({ Kptfile: kptfile() });
    await world.settle(name);
    await world.push(branch, { 'app/Kptfile': 'a: [\n' }, 'drafts/app/w1');
    await world.store.repository('apps').refresh();
    await reconcile(name);
    expect((await world.events(name))[0]).toMatch(/^NotProposed: the Kptfile cannot be read: /);
  });
});

test('under a manager: the report of the resolvers wakes the controller, and so does a new policy', async () => {
  await using world = await fixture();
  await world.register('apps');
  const { client, store, clock, manager } = world;
  await client.create(packagePolicyKind, { metadata: { name: 'lax' }, spec: { kptfileApprovals: true } });
  manager.addController(proposalController({ client, store, clock }));
  await manager.start();
  const marked = await world.draft('apps/one/w1', { Kptfile: kptfile([], MARKED.annotations) });
  const other = await world.draft('apps/two/w1', { Kptfile: kptfile() });
  await manager.idle();
  expect(store.get(marked.name).lifecycle).toBe('Draft');
  await world.settle(marked.name);
  await world.settle(other.name);
  await manager.idle();
  expect(store.get(marked.name).lifecycle).toBe('Proposed');
  expect(store.get(other.name).lifecycle).toBe('Draft');
  await client.create(packagePolicyKind, { metadata: { name: 'all' }, spec: { autoPropose: true } });
  await manager.idle();
  expect(store.get(other.name).lifecycle).toBe('Proposed');
  const { items } = await client.list(packageRevisionKind);
  expect(items.map((object) => object.spec.lifecycle)).toEqual(['Proposed', 'Proposed']);
});
