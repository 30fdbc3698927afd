import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { runs } from '../../test/support/runs.ts';
import { PIPELINE_SETTLED_TYPE, SETTLED_TYPE } from './settlement.ts';
import { KPTFILE, resolverOf } from './testing.ts';
import { benchOf, conditionResolution, fileResolution, NAME } from './testing-bench.ts';

describe('revision controller with failures', () => {
  let clock: ManualClock;
  let world: Fixture;
  let branch: string;
  let at: ReturnType<typeof benchOf>;

  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    branch = await world.register('apps');
    at = benchOf({ ...world, clock, recorder: world.recorder('controller:revision') });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  test('content that does not settle is reported, and not run again until it changes', async () => {
    await world.draft('apps/app/w1');
    const calls: string[] = [];
    const grow = resolverOf(
      'grow',
      ({ files }) =>
        conditionResolution('grow', fileResolution('n', `${files.get('n') ?? ''}${files.has('stop') ? '' : '-1'}`)),
      { calls },
    );
    const reconcile = at.reconciler([grow]);
    await reconcile();
    expect(at.condition(SETTLED_TYPE)).toMatchObject({ status: 'False', reason: 'NotSettled' });
    expect(at.condition(SETTLED_TYPE)?.message).toContain('grow changes n');
    const { content, record } = await world.store.evaluate(NAME);
    expect(content.files.has('n')).toBe(false);
    expect(record.settled).toBeUndefined();
    const { commit } = at.revision();
    calls.length = 0;
    await reconcile();
    await at.reconciler([grow])();
    expect(calls).toEqual([]);
    expect(at.revision().commit).toBe(commit);
    expect(await world.events(NAME)).toEqual([
      expect.stringContaining('NotSettled: grow changes n'),
      expect.stringContaining('Resolved'),
    ]);

    await at.edit('stop', 'please');
    await reconcile();
    expect(at.condition(SETTLED_TYPE)).toBeUndefined();
    expect(at.condition('test.dev/grow')?.status).toBe('True');
    expect(await at.commits()).toBe(2);
  });

  test('a gate on settled resolvers opens, and closes again while a report is missing', async () => {
    await world.draft('apps/app/w1', {
      Kptfile: `${KPTFILE}info:\n  readinessGates:\n  - conditionType: ${SETTLED_TYPE}\n`,
    });
    const late = resolverOf('late', () => conditionResolution('late'), { waitsFor: ['test.dev/human'] });
    const reconcile = at.reconciler([late]);
    await reconcile();
    expect(at.condition(SETTLED_TYPE)).toMatchObject({
      status: 'Unknown',
      message: 'no report yet from late (waits for test.dev/human)',
    });
    expect(at.revision().record?.settled).toBeUndefined();
    await world.store.change(NAME, { conditions: [{ type: 'test.dev/human', status: 'True' }] }, ANNA);
    await reconcile();
    expect((await world.store.evaluate(NAME)).gates).toMatchObject([{ type: SETTLED_TYPE, state: 'Open' }]);
    expect(at.revision().record?.settled?.resolvers).toEqual(['late']);
  });

  test('a gate on a settled pipeline stays closed while the pipeline cannot run or does not settle', async () => {
    const pipeline = 'pipeline:\n  mutators:\n  - image: set-labels\n';
    const gates = `info:\n  readinessGates:\n  - conditionType: ${PIPELINE_SETTLED_TYPE}\n`;
    await world.draft('apps/app/w1', { Kptfile: `${KPTFILE}${gates}${pipeline}` });
    const none = { render: () => Promise.reject(new SluiceError('Unavailable', 'no worker')) };
    await expect(at.reconciler([], { renderer: none })()).rejects.toThrow('no worker');
    expect(at.condition(PIPELINE_SETTLED_TYPE)).toMatchObject({ status: 'Unknown', reason: 'Incomplete' });
    const renderer = { render: async () => ({ kptfile: [] }) };
    const restless = resolverOf('restless', ({ files }) => fileResolution('log', `${files.get('log') ?? ''}.`));
    await at.reconciler([restless], { renderer })();
    expect(at.condition(PIPELINE_SETTLED_TYPE)).toMatchObject({ status: 'Unknown' });
    await at.edit('a.yaml', 'a: 1\n');
    await at.reconciler([], { renderer })();
    expect(at.condition(PIPELINE_SETTLED_TYPE)).toMatchObject({ status: 'True', reason: 'Settled' });
  });

  test('a failing resolver closes its condition once, is retried, and the others are written', async () => {
    await world.draft('apps/app/w1');
    let broken = true;
    const bad = resolverOf('bad', () => {
      if (broken) throw new Error('backend down');
      return conditionResolution('bad');
    });
    const reconcile = at.reconciler([bad, resolverOf('good', () => conditionResolution('good'))]);
    await expect(reconcile()).rejects.toThrow(/bad: backend down/);
    expect(at.condition('test.dev/bad')).toMatchObject({
      status: 'False',
      reason: 'ResolverFailed',
      message: 'resolver bad: backend down',
    });
    expect(at.condition('test.dev/good')?.status).toBe('True');
    const { commit, record } = at.revision();
    expect(record?.settled).toBeUndefined();
    await expect(reconcile()).rejects.toThrow();
    expect(at.revision().commit).toBe(commit);
    expect(await world.events(NAME)).toEqual([
      'ResolverFailed: bad: backend down',
      expect.stringContaining('Resolved'),
    ]);
    broken = false;
    await reconcile();
    expect(at.condition('test.dev/bad')?.status).toBe('True');
    expect(at.revision().record?.settled?.resolvers).toEqual(['bad', 'good']);
  });

  test('resolvers that wait for each other are reported on the drafts that they apply to, which are never complete', async () => {
    await world.draft('apps/app/w1');
    const a = resolverOf('a', () => conditionResolution('a'), { waitsFor: ['test.dev/b'] });
    const b = resolverOf('b', () => conditionResolution('b'), { waitsFor: ['test.dev/a'] });
    const reconcile = at.reconciler([a, b, resolverOf('c', () => conditionResolution('c'))]);
    await reconcile();
    expect(at.condition(SETTLED_TYPE)).toMatchObject({ status: 'False', reason: 'ResolverCycle' });
    expect(at.condition('test.dev/c')?.status).toBe('True');
    expect(at.condition('test.dev/a')).toBeUndefined();
    expect(at.revision().record?.settled).toBeUndefined();
    const { etag } = at.revision();
    await reconcile();
    expect(at.revision().etag).toBe(etag);
    expect(await world.events(NAME)).toEqual([
      expect.stringContaining('ResolverCycle: resolvers wait for each other'),
      expect.anything(),
    ]);
  });

  test('an exhausted budget of commits causes an event and a wait', async () => {
    await at.policy({ commitBudgetPerHour: 1 });
    await world.draft('apps/app/w1');
    let turn = 0;
    const reconcile = at.reconciler([
      resolverOf('a', () => conditionResolution('a', fileResolution('n', String(turn)))),
    ]);
    await reconcile();
    clock.advance(600_000);
    turn = 1;
    await at.edit('x', '1');
    const { commit } = at.revision();
    const fifty = { requeueAfter: 3_000_000, reason: 'the budget of commits is used up' };
    expect(await reconcile()).toEqual(fifty);
    expect(await reconcile()).toEqual(fifty);
    expect(at.revision().commit).toBe(commit);
    expect((await world.events(NAME)).filter((event) => event.startsWith('BudgetExhausted'))).toHaveLength(1);
    clock.advance(3_000_000);
    await reconcile();
    expect((await world.store.content(NAME)).files.get('n')?.toString()).toBe('1');
  });

  test('an unreadable Kptfile causes one event and no run', async () => {
    await world.draft('apps/app/w1');
    await world.push(branch, { 'app/Kptfile': 'kind: [\n' }, 'drafts/app/w1');
    await world.store.repository('apps').refresh();
    const { etag } = at.revision();
    const reconcile = at.reconciler([resolverOf('a', () => conditionResolution('a'))]);
    await reconcile();
    await reconcile();
    expect(at.revision().etag).toBe(etag);
    expect(await world.events(NAME)).toEqual([expect.stringMatching(/^KptfileUnreadable: /)]);
  });

  test('where each resolver may issue only its own conditions, each gets a commit of its own', async () => {
    await at.policy({
      givers: ['a', 'b'].map((name) => ({ conditionType: `test.dev/${name}`, actors: [`resolver:${name}`] })),
    });
    const gate = `info:\n  readinessGates:\n  - conditionType: ${SETTLED_TYPE}\n`;
    await world.draft('apps/app/w1', { Kptfile: `${KPTFILE}${gate}` });
    const reconcile = at.reconciler([
      resolverOf('a', () => conditionResolution('a')),
      resolverOf('b', () => conditionResolution('b')),
    ]);
    expect(await reconcile()).toMatchObject({ requeueAfter: 0 });
    expect(await reconcile()).toMatchObject({ requeueAfter: 0 });
    // The conditions of the controller itself are written last.
    expect(await reconcile()).toEqual({});
    expect(['a', 'b'].map((name) => at.verdict(`test.dev/${name}`)?.by)).toEqual(['resolver:a', 'resolver:b']);
    expect(at.revision().record?.settled?.resolvers).toEqual(['a', 'b']);
    expect(await at.commits()).toBe(3);
    expect((await world.store.evaluate(NAME)).gates).toMatchObject([{ state: 'Open' }]);
    const { etag } = at.revision();
    await reconcile();
    expect(at.revision().etag).toBe(etag);
  });

  test('conditions that no policy permits a resolver are reported and left out, without a loop', async () => {
    await at.policy({ givers: [{ conditionType: 'test.dev/a', actors: ['anna'] }] });
    await world.draft('apps/app/w1');
    const reconcile = at.reconciler([resolverOf('a', () => conditionResolution('a', fileResolution('n', '1')))]);
    await reconcile();
    const { etag } = at.revision();
    await at.reconciler([resolverOf('a', () => conditionResolution('a', fileResolution('n', '1')))])();
    expect(at.revision().etag).toBe(etag);
    expect(at.condition('test.dev/a')).toBeUndefined();
    expect(at.revision().record?.settled).toBeUndefined();
    expect(await world.events(NAME)).toContainEqual(
      expect.stringMatching(/^GiverRefused: resolver:a: policy p\d+ permits only anna to set test.dev\/a/),
    );
  });

  test('a condition that another actor wrote is issued again by the resolver that claims it', async () => {
    await world.draft('apps/app/w1');
    await world.store.change(NAME, conditionResolution('a') as { conditions: [] }, ANNA);
    await at.reconciler([resolverOf('a', () => conditionResolution('a'))])();
    expect(at.verdict('test.dev/a')?.by).toBe('resolver:a');
    expect(await at.commits()).toBe(0);
  });

  test('property: a run makes at most one commit, a repeated run none, and an unsettled run none', async () => {
    const machine = fc.record({ reads: fc.nat(2), writes: fc.nat(2), step: fc.nat(2), limit: fc.nat(4) });
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(machine, { minLength: 1, maxLength: 3 }), async (machines) => {
        const name = (await world.draft(`apps/p${count++}/w1`)).name;
        const resolvers = machines.map(({ reads, writes: target, step, limit }, index) =>
          resolverOf(`r${index}`, ({ files }) => {
            const next = (Number(files.get(`c${reads}`) ?? 0) + step) % (limit + 1);
            return conditionResolution(`r${index}`, fileResolution(`c${target}`, String(next)));
          }),
        );
        const reconcile = at.reconciler(resolvers);
        const before = at.revision(name);
        await reconcile(name);
        const after = at.revision(name);
        expect(after.tip.parents).toEqual([before.commit]);
        const stopped = at.condition(SETTLED_TYPE, name)?.reason === 'NotSettled';
        const { files, content } = await world.store.content(name);
        expect(files.has('c0') || files.has('c1') || files.has('c2')).toBe(!stopped);
        expect(after.record?.settled?.content).toBe(stopped ? undefined : content);
        await reconcile(name);
        await at.reconciler(resolvers)(name);
        expect(at.revision(name).etag).toBe(after.etag);
      }),
      { numRuns: runs(25, 4) },
    );
  });
});
