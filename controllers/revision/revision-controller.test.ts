import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { conditionsOf } from '../../kptfile-schema/index.ts';
import { triggerSource } from '../../src/controller/source.ts';
import { ManualClock, settle } from '../../src/foundation/manual-clock.ts';
import { verdictOf } from '../../src/package/record.ts';
import type { Resolution, Resolver } from '../../src/package/resolver.ts';
import { packagePolicyKind } from '../../src/resource/kinds/package-policy.ts';
import type { ObjectKey } from '../../src/resource/object.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { type RevisionControllerOptions, revisionController } from './revision-controller.ts';
import { SETTLED_TYPE } from './settlement.ts';
import { KPTFILE, resolverOf } from './testing.ts';

const MARK = { 'config.porch.kpt.dev/auto-lifecycle-mgmt': 'true' };
const NAME = 'apps.app.w1';
const NO_KPTFILE = { apiVersion: 'kpt.dev/v1', kind: 'Kptfile' } as const;

describe('revision controller', () => {
  let clock: ManualClock;
  let world: Fixture;
  let branch: string;

  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    branch = await world.register('apps');
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const optionsFor = (resolvers: readonly Resolver[], more: Partial<RevisionControllerOptions> = {}) => {
    const { client, store } = world;
    return revisionController({
      client,
      store,
      clock,
      recorder: world.recorder('controller:revision'),
      resolvers,
      ...more,
    });
  };
  const reconciler = (resolvers: readonly Resolver[], more: Partial<RevisionControllerOptions> = {}) => {
    const { reconcile } = optionsFor(resolvers, more);
    return async (name = NAME) => {
      const result = await reconcile(
        { namespace: 'default', name },
        { signal: new AbortController().signal, failures: 0 },
      );
      // Policies reach the judgement by a watch.
      await settle();
      return result;
    };
  };
  const revision = (name = NAME) => world.store.get(name);
  const condition = (type: string) => conditionsOf(revision().kptfile ?? NO_KPTFILE).get(type);
  const verdict = (type: string) => verdictOf(revision().record, type);
  /** How many commits controllers have made on the draft. */
  const depth = async () => {
    const { git } = world.store.repository('apps');
    let count = 0;
    for (let next: string | undefined = revision().commit; next !== undefined; ) {
      const { author, parents } = await git.readCommit(next);
      if (/^(controller|resolver):/.test(author.name)) count += 1;
      next = parents[0];
    }
    return count;
  };
  const edit = (path: string, text: string) =>
    world.store.change(NAME, { files: new Map([[path, Buffer.from(text)]]) }, ANNA);
  const policy = async (spec: object) => {
    await world.client.create(packagePolicyKind, { metadata: { name: `p${Math.random()}`.replace('0.', '') }, spec });
    await settle();
  };
  const says = (name: string, more: Partial<Resolution> = {}): Resolution => ({
    conditions: [{ type: `test.dev/${name}`, status: 'True', reason: 'Fine' }],
    ...more,
  });
  const writes = (path: string, text: string) => ({ edits: new Map([[path, text]]) });

  test('files, conditions, gates and the report are one commit by the one resolver; the next time nothing happens', async () => {
    await world.draft('apps/app/w1');
    const before = revision();
    const reconcile = reconciler([
      resolverOf('a', () => says('a', { ...writes('a.yaml', 'a: 1\n'), gates: ['test.dev/a'] })),
    ]);
    expect(await reconcile()).toEqual({});
    const after = revision();
    expect(after.tip.parents).toEqual([before.commit]);
    expect(after.tip.facts).toMatchObject({ actor: 'resolver:a', action: 'edit' });
    const { content, gates, record } = await world.store.judge(NAME);
    expect(content.files.get('a.yaml')?.toString()).toBe('a: 1\n');
    expect(gates).toMatchObject([{ type: 'test.dev/a', state: 'Open' }]);
    expect(record.settled).toMatchObject({ content: content.content, resolvers: ['a'] });
    expect(verdict('test.dev/a')).toMatchObject({ by: 'resolver:a', face: 'controller' });
    // The same again, also by a process that remembers nothing.
    await reconcile();
    await reconciler([resolverOf('a', () => says('a', writes('a.yaml', 'a: 1\n')))])();
    expect(revision().etag).toBe(after.etag);
    expect(await world.events(NAME)).toEqual(['Resolved: resolver:a: test.dev/a is True, wrote a.yaml']);
  });

  test('what several say is one commit of the controller; later each speaks for itself again', async () => {
    await world.draft('apps/app/w1');
    const a = resolverOf('a', ({ files }) => says('a', writes('out', `${files.get('in') ?? 'none'}`)));
    const b = resolverOf('b', () => ({
      conditions: [{ type: 'test.dev/b', status: 'True', inputs: ['file:README.md'] }],
    }));
    const reconcile = reconciler([a, b]);
    await reconcile();
    expect(await depth()).toBe(1);
    expect(verdict('test.dev/a')?.by).toBe('controller:revision');
    const given = verdict('test.dev/b');
    clock.advance(60_000);
    await edit('in', 'more');
    await reconcile();
    expect(verdict('test.dev/a')?.by).toBe('resolver:a');
    expect(verdict('test.dev/b')).toEqual(given);
    expect(revision().record?.settled?.resolvers).toEqual(['a', 'b']);
    const { etag } = revision();
    await reconcile();
    expect(revision().etag).toBe(etag);
  });

  test('a push that changes what a condition was given for costs a record, no commit', async () => {
    await world.draft('apps/app/w1');
    const reconcile = reconciler([resolverOf('a', () => says('a'))]);
    await reconcile();
    await world.push(branch, { 'app/x.yaml': 'a: 1\n' }, 'drafts/app/w1');
    await world.store.repository('apps').refresh();
    const pushed = revision().commit;
    expect((await world.store.judge(NAME)).record.settled?.content).not.toBe(
      (await world.store.judge(NAME)).content.content,
    );
    await reconcile();
    const { record, content } = await world.store.judge(NAME);
    expect(revision().commit).toBe(pushed);
    expect(record.settled?.content).toBe(content.content);
    expect(verdict('test.dev/a')?.inputs).toEqual({ content: content.content });
  });

  test('a draft is written to only if a resolver applies or somebody waits for the report', async () => {
    await world.draft('apps/app/w1');
    const { etag } = revision();
    const reconcile = reconciler([resolverOf('a', () => says('a'), { applies: () => false })]);
    await reconcile();
    expect(revision().etag).toBe(etag);
    await world.store.change(NAME, { metadata: { annotations: MARK } }, ANNA);
    await reconcile();
    expect(revision().record?.settled?.resolvers).toEqual([]);
    expect(await depth()).toBe(0);

    await world.draft('apps/other/w1', {
      Kptfile: `${KPTFILE}  annotations:\n    config.porch.kpt.dev/auto-lifecycle-mgmt: "true"\n`,
    });
    await world.draft('apps/third/w1');
    await policy({ selector: { packages: ['third'] }, autoPropose: true });
    for (const name of ['apps.other.w1', 'apps.third.w1']) {
      await reconcile(name);
      expect(revision(name).record?.settled?.resolvers).toEqual([]);
    }
  });

  test('content that does not come to rest is told, and left alone until somebody changes it', async () => {
    await world.draft('apps/app/w1');
    const calls: string[] = [];
    const grow = resolverOf(
      'grow',
      ({ files }) => says('grow', writes('n', `${files.get('n') ?? ''}${files.has('stop') ? '' : '-1'}`)),
      { calls },
    );
    const reconcile = reconciler([grow]);
    await reconcile();
    expect(condition(SETTLED_TYPE)).toMatchObject({ status: 'False', reason: 'NotSettled' });
    expect(condition(SETTLED_TYPE)?.message).toContain('grow changes n');
    const { content, record } = await world.store.judge(NAME);
    expect(content.files.has('n')).toBe(false);
    expect(record.settled).toBeUndefined();
    const { commit } = revision();
    calls.length = 0;
    await reconcile();
    await reconciler([grow])();
    expect(calls).toEqual([]);
    expect(revision().commit).toBe(commit);
    expect(await world.events(NAME)).toEqual([
      expect.stringContaining('NotSettled: grow changes n'),
      expect.stringContaining('Resolved'),
    ]);

    await edit('stop', 'please');
    await reconcile();
    expect(condition(SETTLED_TYPE)).toBeUndefined();
    expect(condition('test.dev/grow')?.status).toBe('True');
    expect(await depth()).toBe(2);
  });

  test('a gate that asks for rest is opened, and closed again while something is missing', async () => {
    await world.draft('apps/app/w1', {
      Kptfile: `${KPTFILE}info:\n  readinessGates:\n  - conditionType: ${SETTLED_TYPE}\n`,
    });
    const late = resolverOf('late', () => says('late'), { waitsFor: ['test.dev/human'] });
    const reconcile = reconciler([late]);
    await reconcile();
    expect(condition(SETTLED_TYPE)).toMatchObject({
      status: 'Unknown',
      message: 'no answer yet from late (waits for test.dev/human)',
    });
    expect(revision().record?.settled).toBeUndefined();
    await world.store.change(NAME, { conditions: [{ type: 'test.dev/human', status: 'True' }] }, ANNA);
    await reconcile();
    expect((await world.store.judge(NAME)).gates).toMatchObject([{ type: SETTLED_TYPE, state: 'Open' }]);
    expect(revision().record?.settled?.resolvers).toEqual(['late']);
  });

  test('a failing resolver closes its condition once, is retried, and the others are written', async () => {
    await world.draft('apps/app/w1');
    let broken = true;
    const bad = resolverOf('bad', () => {
      if (broken) throw new Error('backend down');
      return says('bad');
    });
    const reconcile = reconciler([bad, resolverOf('good', () => says('good'))]);
    await expect(reconcile()).rejects.toThrow(/bad: backend down/);
    expect(condition('test.dev/bad')).toMatchObject({
      status: 'False',
      reason: 'ResolverFailed',
      message: 'resolver bad: backend down',
    });
    expect(condition('test.dev/good')?.status).toBe('True');
    const { commit, record } = revision();
    expect(record?.settled).toBeUndefined();
    await expect(reconcile()).rejects.toThrow();
    expect(revision().commit).toBe(commit);
    expect(await world.events(NAME)).toEqual([
      'ResolverFailed: bad: backend down',
      expect.stringContaining('Resolved'),
    ]);
    broken = false;
    await reconcile();
    expect(condition('test.dev/bad')?.status).toBe('True');
    expect(revision().record?.settled?.resolvers).toEqual(['bad', 'good']);
  });

  test('resolvers that wait for each other are told on the drafts that they are for, and nothing is complete', async () => {
    await world.draft('apps/app/w1');
    const a = resolverOf('a', () => says('a'), { waitsFor: ['test.dev/b'] });
    const b = resolverOf('b', () => says('b'), { waitsFor: ['test.dev/a'] });
    const reconcile = reconciler([a, b, resolverOf('c', () => says('c'))]);
    await reconcile();
    expect(condition(SETTLED_TYPE)).toMatchObject({ status: 'False', reason: 'ResolverCycle' });
    expect(condition('test.dev/c')?.status).toBe('True');
    expect(condition('test.dev/a')).toBeUndefined();
    expect(revision().record?.settled).toBeUndefined();
    const { etag } = revision();
    await reconcile();
    expect(revision().etag).toBe(etag);
    expect(await world.events(NAME)).toEqual([
      expect.stringContaining('ResolverCycle: resolvers wait for each other'),
      expect.anything(),
    ]);
  });

  test('when the budget of commits is used up, that is an event and a wait', async () => {
    await policy({ commitBudgetPerHour: 1 });
    await world.draft('apps/app/w1');
    let turn = 0;
    const reconcile = reconciler([resolverOf('a', () => says('a', writes('n', String(turn))))]);
    await reconcile();
    clock.advance(600_000);
    turn = 1;
    await edit('x', '1');
    const { commit } = revision();
    const fifty = { requeueAfter: 3_000_000, reason: 'the budget of commits is used up' };
    expect(await reconcile()).toEqual(fifty);
    expect(await reconcile()).toEqual(fifty);
    expect(revision().commit).toBe(commit);
    expect((await world.events(NAME)).filter((event) => event.startsWith('BudgetExhausted'))).toHaveLength(1);
    clock.advance(3_000_000);
    await reconcile();
    expect((await world.store.content(NAME)).files.get('n')?.toString()).toBe('1');
  });

  test('a Kptfile that cannot be read is told once and left alone', async () => {
    await world.draft('apps/app/w1');
    await world.push(branch, { 'app/Kptfile': 'kind: [\n' }, 'drafts/app/w1');
    await world.store.repository('apps').refresh();
    const { etag } = revision();
    const reconcile = reconciler([resolverOf('a', () => says('a'))]);
    await reconcile();
    await reconcile();
    expect(revision().etag).toBe(etag);
    expect(await world.events(NAME)).toEqual([expect.stringMatching(/^KptfileUnreadable: /)]);
  });

  test('where each resolver may give only its own, each gets a commit of its own', async () => {
    await policy({
      givers: ['a', 'b'].map((name) => ({ conditionType: `test.dev/${name}`, actors: [`resolver:${name}`] })),
    });
    await world.draft('apps/app/w1');
    const reconcile = reconciler([resolverOf('a', () => says('a')), resolverOf('b', () => says('b'))]);
    expect(await reconcile()).toMatchObject({ requeueAfter: 0 });
    expect(await reconcile()).toEqual({});
    expect(['a', 'b'].map((name) => verdict(`test.dev/${name}`)?.by)).toEqual(['resolver:a', 'resolver:b']);
    expect(revision().record?.settled?.resolvers).toEqual(['a', 'b']);
    expect(await depth()).toBe(2);
    const { etag } = revision();
    await reconcile();
    expect(revision().etag).toBe(etag);
  });

  test('what no policy lets a resolver say is told and left out, without a loop', async () => {
    await policy({ givers: [{ conditionType: 'test.dev/a', actors: ['anna'] }] });
    await world.draft('apps/app/w1');
    const reconcile = reconciler([resolverOf('a', () => says('a', writes('n', '1')))]);
    await reconcile();
    const { etag } = revision();
    await reconciler([resolverOf('a', () => says('a', writes('n', '1')))])();
    expect(revision().etag).toBe(etag);
    expect(condition('test.dev/a')).toBeUndefined();
    expect(revision().record?.settled).toBeUndefined();
    expect(await world.events(NAME)).toContainEqual(
      expect.stringMatching(/^GiverRefused: resolver:a: policy p\d+ lets only anna give test.dev\/a/),
    );
  });

  test('a condition that another one wrote into the package is given anew by the resolver that claims it', async () => {
    await world.draft('apps/app/w1');
    await world.store.change(NAME, says('a') as { conditions: [] }, ANNA);
    await reconciler([resolverOf('a', () => says('a'))])();
    expect(verdict('test.dev/a')?.by).toBe('resolver:a');
    expect(await depth()).toBe(0);
  });

  test('a change under its feet is a conflict; nothing is overwritten', async () => {
    await world.draft('apps/app/w1');
    let first = true;
    const slow = resolverOf('slow', async () => {
      if (first) await edit('mine', 'by anna');
      first = false;
      return says('slow', writes('n', '1'));
    });
    const reconcile = reconciler([slow]);
    await expect(reconcile()).rejects.toMatchObject({ code: 'Conflict' });
    await reconcile();
    const { files } = await world.store.content(NAME);
    expect([files.get('mine')?.toString(), files.get('n')?.toString()]).toEqual(['by anna', '1']);
  });

  test('a wait that a resolver asks for is kept whatever else wakes the draft', async () => {
    await world.draft('apps/app/w1');
    const calls: string[] = [];
    const reconcile = reconciler([resolverOf('a', () => says('a', { requeueAfter: 10_000 }), { calls })]);
    expect(await reconcile()).toMatchObject({ requeueAfter: 10_000 });
    const count = calls.length;
    clock.advance(4000);
    expect(await reconcile()).toMatchObject({ requeueAfter: 6000 });
    expect(calls).toHaveLength(count);
    clock.advance(6000);
    expect(await reconcile()).toMatchObject({ requeueAfter: 10_000 });
    expect(calls.length).toBeGreaterThan(count);
  });

  test('its own commits wake nothing; the outside world does, also in the middle of a run', async () => {
    await world.draft('apps/app/w1');
    let price = 1;
    let wake: (key: ObjectKey) => void = () => undefined;
    const calls: string[] = [];
    const a = resolverOf(
      'a',
      async () => {
        const seen = price;
        // The world changes while the resolver still works with what it saw.
        if (price === 2) wake({ namespace: 'default', name: NAME });
        if (price === 2) price = 3;
        await settle();
        return {
          conditions: [{ type: 'test.dev/a', status: 'True', message: `price ${seen}, asked at ${clock.now()}` }],
        };
      },
      { calls },
    );
    const sources = [
      triggerSource<ObjectKey>((enqueue) => {
        wake = enqueue;
        return () => undefined;
      }),
    ];
    world.manager.addController(optionsFor([a], { sources }));
    await world.manager.start();
    await world.manager.idle();
    expect(calls).toHaveLength(2);
    expect(await depth()).toBe(1);
    price = 2;
    clock.advance(1000);
    wake({ namespace: 'default', name: NAME });
    await world.manager.idle();
    expect(condition('test.dev/a')?.message).toContain('price 3');
  });

  test('property: never more than one commit a time, none the second time, and none at all without rest', async () => {
    const machine = fc.record({ reads: fc.nat(2), writes: fc.nat(2), step: fc.nat(2), limit: fc.nat(4) });
    let count = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(machine, { minLength: 1, maxLength: 3 }), async (machines) => {
        const name = (await world.draft(`apps/p${count++}/w1`)).name;
        const resolvers = machines.map(({ reads, writes: target, step, limit }, index) =>
          resolverOf(`r${index}`, ({ files }) => {
            const next = (Number(files.get(`c${reads}`) ?? 0) + step) % (limit + 1);
            return says(`r${index}`, writes(`c${target}`, String(next)));
          }),
        );
        const reconcile = reconciler(resolvers);
        const before = revision(name);
        await reconcile(name);
        const after = revision(name);
        expect(after.tip.parents).toEqual([before.commit]);
        const stopped = conditionsOf(after.kptfile ?? NO_KPTFILE).get(SETTLED_TYPE)?.reason === 'NotSettled';
        const { files, content } = await world.store.content(name);
        expect(files.has('c0') || files.has('c1') || files.has('c2')).toBe(!stopped);
        expect(after.record?.settled?.content).toBe(stopped ? undefined : content);
        await reconcile(name);
        await reconciler(resolvers)(name);
        expect(revision(name).etag).toBe(after.etag);
      }),
      { numRuns: 25 },
    );
  });

  test('drafts that are not drafts any more are left alone', async () => {
    await world.draft('apps/app/w1');
    await world.store.transition(NAME, { action: 'propose' }, ANNA);
    const { etag } = revision();
    expect(await reconciler([resolverOf('a', () => says('a'))])()).toEqual({});
    expect(await reconciler([])('apps.gone.w1')).toEqual({});
    expect(revision().etag).toBe(etag);
  });
});
