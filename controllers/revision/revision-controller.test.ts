import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { triggerSource } from '../../src/controller/source.ts';
import { ManualClock, settle } from '../../src/foundation/time/manual-clock.ts';
import type { ObjectKey } from '../../src/resource/object/object.ts';
import { ANNA, type Fixture, fixture } from '../../test/support/fixture.ts';
import { KPTFILE, resolverOf } from './testing.ts';
import { benchOf, conditionResolution, fileResolution, NAME } from './testing-bench.ts';

const MARK = { 'config.porch.kpt.dev/auto-lifecycle-mgmt': 'true' };

describe('revision controller', () => {
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

  test('files, conditions, gates and the report are one commit by the one resolver; the next run changes nothing', async () => {
    await world.draft('apps/app/w1');
    const before = at.revision();
    const reconcile = at.reconciler([
      resolverOf('a', () => conditionResolution('a', { ...fileResolution('a.yaml', 'a: 1\n'), gates: ['test.dev/a'] })),
    ]);
    expect(await reconcile()).toEqual({});
    const after = at.revision();
    expect(after.tip.parents).toEqual([before.commit]);
    expect(after.tip.facts).toMatchObject({ actor: 'resolver:a', action: 'edit' });
    const { content, gates, record } = await world.store.evaluate(NAME);
    expect(content.files.get('a.yaml')?.toString()).toBe('a: 1\n');
    expect(gates).toMatchObject([{ type: 'test.dev/a', state: 'Open' }]);
    expect(record.settled).toMatchObject({ content: content.content, resolvers: ['a'] });
    expect(at.verdict('test.dev/a')).toMatchObject({ by: 'resolver:a', face: 'controller' });
    // The same holds for a new process.
    await reconcile();
    await at.reconciler([resolverOf('a', () => conditionResolution('a', fileResolution('a.yaml', 'a: 1\n')))])();
    expect(at.revision().etag).toBe(after.etag);
    expect(await world.events(NAME)).toEqual(['Resolved: resolver:a: test.dev/a is True, wrote a.yaml']);
  });

  test('where the pipeline changes the Kptfile alone, verdicts on the content are issued again for the new content', async () => {
    await world.draft('apps/app/w1');
    const a = resolverOf('a', () => conditionResolution('a', { gates: ['test.dev/a'] }));
    await at.reconciler([a], { renderer: { render: async () => undefined } })();
    expect((await world.store.evaluate(NAME)).gates).toMatchObject([{ type: 'test.dev/a', state: 'Open' }]);
    const settledBefore = at.revision().record?.settled?.content;
    const render = async () => ({ kptfile: [{ op: 'setAnnotation', key: 'team', value: 'shop' } as const] });
    await at.reconciler([a], { renderer: { render } })();
    const { content, gates, record, revision } = await world.store.evaluate(NAME);
    expect(revision.kptfile?.metadata?.annotations).toMatchObject({ team: 'shop' });
    expect(gates).toMatchObject([{ type: 'test.dev/a', state: 'Open' }]);
    expect(record.settled?.content).toBe(content.content);
    expect(content.content).not.toBe(settledBefore);
  });

  test('a pushed Kptfile that kpt rejects causes one event, with place and field', async () => {
    const misspelt = `${KPTFILE}info:\n  readinesGates:\n    - conditionType: tested\n`;
    await world.push(branch, { 'app/Kptfile': misspelt }, 'drafts/app/w1', 'refs/heads/main');
    await world.store.repository('apps').refresh();
    await at.reconciler([])();
    const expected = /^KptfileInvalid: .*Kptfile:6:3: .*readinesGates.*Did you mean readinessGates\?/;
    expect(await world.events(NAME)).toEqual([expect.stringMatching(expected)]);
  });

  test('results of several resolvers are one commit of the controller; later each resolver is the actor again', async () => {
    await world.draft('apps/app/w1');
    const a = resolverOf('a', ({ files }) =>
      conditionResolution('a', fileResolution('out', `${files.get('in') ?? 'none'}`)),
    );
    const b = resolverOf('b', () => ({
      conditions: [{ type: 'test.dev/b', status: 'True', inputs: ['file:README.md'] }],
    }));
    const reconcile = at.reconciler([a, b]);
    await reconcile();
    expect(await at.commits()).toBe(1);
    expect(at.verdict('test.dev/a')?.by).toBe('controller:revision');
    const given = at.verdict('test.dev/b');
    clock.advance(60_000);
    await at.edit('in', 'more');
    await reconcile();
    expect(at.verdict('test.dev/a')?.by).toBe('resolver:a');
    expect(at.verdict('test.dev/b')).toEqual(given);
    expect(at.revision().record?.settled?.resolvers).toEqual(['a', 'b']);
    const { etag } = at.revision();
    await reconcile();
    expect(at.revision().etag).toBe(etag);
  });

  test('conditions of a push are recorded, so that the next push does not rebind them to its content', async () => {
    const given = `${KPTFILE}info:\n  readinessGates:\n    - conditionType: tested\nstatus:\n  conditions:\n    - type: tested\n      status: "True"\n`;
    await world.push(branch, { 'app/Kptfile': given }, 'drafts/app/w1', 'refs/heads/main');
    await world.store.repository('apps').refresh();
    const reconcile = at.reconciler([]);
    await reconcile();
    const { recordOid } = at.revision();
    expect(at.verdict('tested')).toMatchObject({ by: 'push', face: 'git' });
    await reconcile();
    expect(at.revision().recordOid).toBe(recordOid);
    await world.push(branch, { 'app/a.yaml': 'a: 1\n' }, 'drafts/app/w1');
    await world.store.repository('apps').refresh();
    await reconcile();
    expect((await world.store.evaluate(NAME)).gates).toMatchObject([{ type: 'tested', state: 'Stale' }]);
  });

  test('a push that changes the inputs of a condition costs a record, no commit', async () => {
    await world.draft('apps/app/w1');
    const reconcile = at.reconciler([resolverOf('a', () => conditionResolution('a'))]);
    await reconcile();
    await world.push(branch, { 'app/x.yaml': 'a: 1\n' }, 'drafts/app/w1');
    await world.store.repository('apps').refresh();
    const pushed = at.revision().commit;
    expect((await world.store.evaluate(NAME)).record.settled?.content).not.toBe(
      (await world.store.evaluate(NAME)).content.content,
    );
    await reconcile();
    const { record, content } = await world.store.evaluate(NAME);
    expect(at.revision().commit).toBe(pushed);
    expect(record.settled?.content).toBe(content.content);
    expect(at.verdict('test.dev/a')?.inputs).toEqual({ content: content.content });
  });

  test('a draft is written to only if a resolver applies or a proposal needs the report', async () => {
    await world.draft('apps/app/w1');
    const { etag } = at.revision();
    const reconcile = at.reconciler([resolverOf('a', () => conditionResolution('a'), { applies: () => false })]);
    await reconcile();
    expect(at.revision().etag).toBe(etag);
    await world.store.change(NAME, { metadata: { annotations: MARK } }, ANNA);
    await reconcile();
    expect(at.revision().record?.settled?.resolvers).toEqual([]);
    expect(await at.commits()).toBe(0);

    await world.draft('apps/other/w1', {
      Kptfile: `${KPTFILE}  annotations:\n    config.porch.kpt.dev/auto-lifecycle-mgmt: "true"\n`,
    });
    await world.draft('apps/third/w1');
    await at.policy({ selector: { packages: ['third'] }, autoPropose: true });
    await at.policy({ selector: { packages: ['other'] }, kptfileApprovals: true });
    for (const name of ['apps.other.w1', 'apps.third.w1']) {
      await reconcile(name);
      expect(at.revision(name).record?.settled?.resolvers).toEqual([]);
    }
  });

  test('a concurrent change is a conflict; nothing is overwritten', async () => {
    await world.draft('apps/app/w1');
    let first = true;
    const slow = resolverOf('slow', async () => {
      if (first) await at.edit('mine', 'by anna');
      first = false;
      return conditionResolution('slow', fileResolution('n', '1'));
    });
    const reconcile = at.reconciler([slow]);
    await expect(reconcile()).rejects.toMatchObject({ code: 'Conflict' });
    await reconcile();
    const { files } = await world.store.content(NAME);
    expect([files.get('mine')?.toString(), files.get('n')?.toString()]).toEqual(['by anna', '1']);
  });

  test('a wait that a resolver requests is kept after other reconciliations of the draft', async () => {
    await world.draft('apps/app/w1');
    const calls: string[] = [];
    const reconcile = at.reconciler([
      resolverOf('a', () => conditionResolution('a', { requeueAfter: 10_000 }), { calls }),
    ]);
    expect(await reconcile()).toMatchObject({ requeueAfter: 10_000 });
    const count = calls.length;
    clock.advance(4000);
    expect(await reconcile()).toMatchObject({ requeueAfter: 6000 });
    expect(calls).toHaveLength(count);
    clock.advance(6000);
    expect(await reconcile()).toMatchObject({ requeueAfter: 10_000 });
    expect(calls.length).toBeGreaterThan(count);
  });

  test('its own commits lead to no run; changed inputs do, also during a run', async () => {
    await world.draft('apps/app/w1');
    let price = 1;
    let wake: (key: ObjectKey) => void = () => undefined;
    const calls: string[] = [];
    const a = resolverOf(
      'a',
      async () => {
        const seen = price;
        // The input changes while the resolver still works with the earlier one.
        if (price === 2) wake({ namespace: 'default', name: NAME });
        if (price === 2) price = 3;
        await settle();
        return {
          conditions: [{ type: 'test.dev/a', status: 'True', message: `price ${seen}, read at ${clock.now()}` }],
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
    world.manager.addController(at.optionsFor([a], { sources }));
    await world.manager.start();
    await world.manager.idle();
    expect(calls).toHaveLength(2);
    expect(await at.commits()).toBe(1);
    price = 2;
    clock.advance(1000);
    wake({ namespace: 'default', name: NAME });
    await world.manager.idle();
    expect(at.condition('test.dev/a')?.message).toContain('price 3');
  });

  test('revisions that are no longer drafts are not touched', async () => {
    await world.draft('apps/app/w1');
    await world.store.update(NAME, { action: 'propose' }, ANNA);
    const { etag } = at.revision();
    expect(await at.reconciler([resolverOf('a', () => conditionResolution('a'))])()).toEqual({});
    expect(await at.reconciler([])('apps.gone.w1')).toEqual({});
    expect(at.revision().etag).toBe(etag);
  });
});
