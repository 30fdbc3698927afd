import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock, settle } from '../../../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../../../src/resource/kinds/porch/repository.ts';
import { ANNA, type Fixture, fixture } from '../../../../test/support/fixture.ts';
import { runs } from '../../../../test/support/runs.ts';
import { subjectOf } from '../../working-package.ts';
import { isIpClaim } from './ip-claim.ts';
import { ipamResolver } from './ipam-resolver.ts';
import { claimText, ipamBench } from './testing.ts';

describe('many drafts share the pools', () => {
  let clock: ManualClock;
  let world: Fixture;
  let at: ReturnType<typeof ipamBench>;

  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    await world.register('edge');
    at = ipamBench({ ...world, clock, recorder: world.recorder('controller:revision') });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const draft = async (packageName: string, files: Record<string, string>, workspace = 'w1') =>
    (await world.draft(`edge/${packageName}/${workspace}`, files)).name;
  const remove = (name: string) => world.store.update(name, { action: 'delete' }, ANNA);

  test('the later owner of a copied address loses it', async () => {
    await at.pool('n3', '10.0.0.1/29');
    const reconcile = at.reconciler();
    const first = await draft('z', { 'c.yaml': claimText('c') });
    await reconcile(first);
    clock.advance(5000);
    const status = { prefix: '10.0.0.2/29', gateway: '10.0.0.1' };
    const second = await draft('b', { 'c.yaml': claimText('c', { status }) });
    await reconcile(second);
    await reconcile(first);
    expect(await at.addresses(first)).toEqual({ c: '10.0.0.2/29' });
    expect(await at.addresses(second)).toEqual({ c: '10.0.0.3/29' });
    // The foreign value is removed even if no other is free.
    const rest = await draft('rest', { 'c.yaml': [4, 5, 6].map((host) => claimText(`c${host}`)).join('---\n') });
    await reconcile(rest);
    const third = await draft('d', { 'c.yaml': claimText('c', { status }) });
    await reconcile(third);
    expect(at.condition(third, 'c')?.reason).toBe('PoolExhausted');
    expect((await world.store.content(third)).objects().find(isIpClaim)?.value).not.toHaveProperty('status');
  });

  test('drafts that are reconciled at once never get the same address, also before anything is written', async () => {
    await at.pool('n3', '10.0.0.1/24');
    const { resolver } = ipamResolver({ ...world, clock });
    const names = await Promise.all(
      ['a', 'b', 'c', 'd'].map((each) => draft(each, { 'c.yaml': `${claimText('x')}---\n${claimText('y')}` })),
    );
    const resolve = async (name: string) => {
      const subject = subjectOf(world.store.get(name), await world.store.content(name));
      return resolver.resolve(subject, { now: clock.now(), signal: new AbortController().signal });
    };
    const prefixes = (resolutions: Awaited<ReturnType<typeof resolve>>[]) =>
      resolutions.map(({ edits }) =>
        [...(edits?.get('c.yaml')?.matchAll(/ {2}prefix: (.*)/g) ?? [])].map((match) => match[1]),
      );
    const first = prefixes(await Promise.all(names.map(resolve)));
    expect(new Set(first.flat()).size).toBe(8);
    // Nothing was written; every draft gets the same values again.
    expect(prefixes(await Promise.all(names.toReversed().map(resolve))).toReversed()).toEqual(first);
    // Values that are never written are freed: when the draft is gone, or after some minutes.
    await remove(names[0] ?? '');
    clock.advance(600_000);
    const late = await draft('late', { 'c.yaml': claimText('x') });
    expect(prefixes([await resolve(late)])).toEqual([[['10.0.0.2/24'][0]]]);
  });

  test('a draft that found the pool exhausted is woken by a new pool', async () => {
    await at.pool('tiny', '10.0.0.1/30');
    const { manager } = world;
    const a = await draft('a', { 'c.yaml': claimText('c') });
    await at.startIn(manager);
    const b = await draft('b', { 'c.yaml': claimText('c') });
    await manager.idle();
    expect(at.condition(a, 'c')?.status).toBe('True');
    expect(at.condition(b, 'c')).toMatchObject({
      reason: 'PoolExhausted',
      message: expect.stringContaining('0 of 1 free'),
    });
    await at.pool('more', '10.0.1.1/24');
    await manager.idle();
    expect(await at.addresses(b)).toEqual({ c: '10.0.1.2/24' });
  });

  test('an address is free again when its last revision is deleted and the grace period has passed', async () => {
    await at.pool('tiny', '10.0.0.1/30');
    const { store, manager } = world;
    const first = await draft('a', { 'c.yaml': claimText('c') });
    await at.startIn(manager);
    await world.publish(first);
    const source = { type: 'copy', source: first } as const;
    const second = (await store.create('edge', { package: 'a', workspace: 'w2', source }, ANNA)).name;
    await store.change(second, { files: new Map([['c.yaml', null]]) }, ANNA);
    const waiting = await draft('b', { 'c.yaml': claimText('c') });
    await manager.idle();
    // The condition of a removed claim is withdrawn; the published revision still holds the address.
    expect(at.condition(second, 'c')).toBeUndefined();
    await world.publish(second);
    await manager.idle();
    expect(at.condition(waiting, 'c')?.reason).toBe('PoolExhausted');

    await store.update(first, { action: 'propose-deletion' }, ANNA);
    await manager.idle();
    expect(at.condition(waiting, 'c')?.reason).toBe('PoolExhausted');
    await remove(first);
    await manager.idle();
    expect(at.condition(waiting, 'c')).toMatchObject({
      reason: 'AwaitingRelease',
      message: expect.stringContaining('2026-01-01T00:01:00Z'),
    });
    expect(manager.waiting()).toMatchObject([{ key: `default/${waiting}`, due: clock.now() + 60_000 }]);
    await clock.advanceAsync(59_000);
    await manager.idle();
    expect(at.condition(waiting, 'c')?.status).toBe('False');
    await clock.advanceAsync(1000);
    await manager.idle();
    expect(await at.addresses(waiting)).toEqual({ c: '10.0.0.2/30' });
  });

  test('its owner gets a released address back within the grace period', async () => {
    await at.pool('n3', '10.0.0.1/24');
    const reconcile = at.reconciler();
    const a = await draft('a', { 'c.yaml': claimText('c') });
    await reconcile(a);
    await remove(a);
    const other = await draft('other', { 'c.yaml': claimText('c') });
    await reconcile(other);
    expect(await at.addresses(other)).toEqual({ c: '10.0.0.3/24' });
    const again = await draft('a', { 'c.yaml': claimText('c') });
    await reconcile(again);
    expect(await at.addresses(again)).toEqual({ c: '10.0.0.2/24' });
  });

  test('while a registered repository is unread nothing new is allocated', async () => {
    await at.pool('n3', '10.0.0.1/24');
    const kept = await draft('kept', { 'c.yaml': claimText('c') });
    await at.reconciler()(kept);
    await world.client.create(repositoryKind, {
      metadata: { name: 'far' },
      spec: { git: { repo: 'https://git.example.com/far.git' } },
    });
    const fresh = await draft('fresh', { 'c.yaml': claimText('c') });
    const reconcile = at.reconciler();
    await reconcile(kept);
    await reconcile(fresh);
    expect(at.condition(kept, 'c')?.status).toBe('True');
    expect(at.condition(fresh, 'c')).toMatchObject({
      status: 'False',
      reason: 'AwaitingRepositories',
      message: expect.stringContaining('of far '),
    });
    await world.client.delete(repositoryKind, { name: 'far' });
    const { spec } = await world.client.get(repositoryKind, { name: 'edge' });
    const git = { ...spec.git, repo: spec.git?.repo ?? '', directory: 'part' };
    await world.client.create(repositoryKind, { metadata: { name: 'twin' }, spec: { git } });
    await at.reconciler()(fresh);
    expect(at.condition(fresh, 'c')?.status).toBe('True');
    const risky = await draft('risky', { 'c.yaml': claimText('c') });
    await world.client.create(repositoryKind, {
      metadata: { name: 'far' },
      spec: { git: { repo: 'https://git.example.com/far.git' } },
    });
    await at.reconciler({ unreadRepositories: 'ignore' })(risky);
    expect(at.condition(risky, 'c')?.status).toBe('True');
  });

  const DRAFTS = runs(50, 12);
  test(`${DRAFTS} drafts with 3 claims each, reconciled side by side, then read by another process: no address twice, one commit each`, async () => {
    await at.pool('n3', '10.0.0.1/24');
    const { store, manager } = world;
    const names: string[] = [];
    for (let each = 0; each < DRAFTS; each++) {
      names.push(await draft(`p${each}`, { 'c.yaml': [1, 2, 3].map((index) => claimText(`c${index}`)).join('---\n') }));
      if (each === Math.floor(DRAFTS / 2)) await at.startIn(manager);
    }
    await manager.idle();
    const all = async () =>
      (await Promise.all(names.map((name) => at.addresses(name)))).flatMap((each) => Object.values(each));
    const given = await all();
    expect(given).toHaveLength(3 * DRAFTS);
    expect(new Set(given).size).toBe(3 * DRAFTS);
    expect(given).not.toContain(undefined);
    for (const name of names) {
      const { tip } = store.get(name);
      expect(tip.facts.actor).toBe('resolver:ipam');
      const parent = await store.repository('edge').git.readCommit(tip.parents[0] ?? '');
      expect(parent.author.name).toBe('anna');
    }
    const fresh = at.reconciler();
    for (const name of names.slice(0, 10)) await fresh(name);
    expect(await all()).toEqual(given);
  });

  test('property: no address has two owners at any time, and none is allocated again within the grace period', async () => {
    type Step = readonly ['draft' | 'remove' | 'publish' | 'drop' | 'wait' | 'restart', number];
    const step = fc.tuple(
      fc.constantFrom<Step[0]>('draft', 'draft', 'remove', 'publish', 'drop', 'wait', 'restart'),
      fc.nat(3),
    );
    await at.pool('small', '10.0.0.1/29');
    let generation = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        generation += 1;
        let reconcile = at.reconciler();
        const packages = [0, 1, 2, 3].map((index) => `g${generation}p${index}`);
        const live = () =>
          world.store.list().filter(({ key }) => packages.includes(key.package) && key.workspace !== 'main');
        const freed = new Map<unknown, number>();
        let before = new Map<unknown, string>();
        let count = 0;
        for (const [what, index] of steps) {
          const name = packages[index] ?? '';
          const mine = live().filter(({ key }) => key.package === name);
          const open = mine.find(({ lifecycle }) => lifecycle === 'Draft');
          if (what === 'draft' && mine.length === 0)
            await draft(name, { 'c.yaml': `${claimText('x')}---\n${claimText('y')}` }, `w${count++}`);
          else if (what === 'remove' && open !== undefined) await remove(open.name);
          else if (what === 'publish' && open !== undefined) await world.publish(open.name);
          else if (what === 'drop' && open !== undefined)
            await world.store.change(open.name, { files: new Map([['c.yaml', Buffer.from(claimText('y'))]]) }, ANNA);
          else if (what === 'wait') clock.advance(30_000);
          else if (what === 'restart') {
            // Releases are forgotten, so their values are free at once.
            reconcile = at.reconciler();
            freed.clear();
            before.clear();
          }
          await settle();
          for (const { name: each, lifecycle } of live()) if (lifecycle === 'Draft') await reconcile(each);
          const owners = new Map<unknown, string>();
          for (const revision of live()) {
            for (const [claimName, prefix] of Object.entries(await at.addresses(revision.name))) {
              if (prefix === undefined) continue;
              const owner = `${revision.key.package} ${claimName}`;
              expect(owners.get(prefix) ?? owner).toBe(owner);
              owners.set(prefix, owner);
            }
          }
          for (const [prefix, owner] of owners) {
            const held = before.get(prefix);
            if (held === undefined || held === owner) continue;
            expect(freed.get(prefix) ?? clock.now()).toBeLessThanOrEqual(clock.now() - 60_000);
          }
          for (const [prefix] of before) if (!owners.has(prefix) && !freed.has(prefix)) freed.set(prefix, clock.now());
          for (const prefix of owners.keys()) freed.delete(prefix);
          before = new Map([...before, ...owners]);
        }
        for (const { name, lifecycle } of live()) {
          if (lifecycle === 'Published') await world.store.update(name, { action: 'propose-deletion' }, ANNA);
          await remove(name);
        }
        clock.advance(120_000);
      }),
      { numRuns: runs(10, 3) },
    );
  });
});
