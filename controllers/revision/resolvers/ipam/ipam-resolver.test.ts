import { existsSync, readdirSync, readFileSync } from 'node:fs';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { conditionsOf } from '../../../../kptfile-schema/index.ts';
import { ManualClock, settle } from '../../../../src/foundation/manual-clock.ts';
import type { KrmObject } from '../../../../src/package/krm.ts';
import type { RevisionStore } from '../../../../src/package/revision-store.ts';
import { ipPrefixKind, networkInstanceKind } from '../../../../src/resource/kinds/ipam.ts';
import { repositoryKind } from '../../../../src/resource/kinds/repository.ts';
import { ANNA, type Fixture, fixture } from '../../../../test/support/fixture.ts';
import { revisionController } from '../../revision-controller.ts';
import { KPTFILE } from '../../testing.ts';
import { subjectOf } from '../../working-package.ts';
import { isIpClaim, statusOf } from './ip-claim.ts';
import { type IpamOptions, ipamResolver } from './ipam-resolver.ts';

const ROOT = new URL('../../../../', import.meta.url);
const TYPE = 'ipam.resource.nephio.org/v1alpha1.IPClaim.';

interface ClaimText {
  readonly spec?: object;
  readonly annotations?: Record<string, string>;
  readonly status?: object;
  readonly namespace?: string;
}

function claim(name: string, { spec = {}, annotations, status, namespace }: ClaimText = {}): string {
  const metadata = {
    name,
    ...(namespace === undefined ? {} : { namespace }),
    ...(annotations === undefined ? {} : { annotations }),
  };
  return [
    'apiVersion: ipam.resource.nephio.org/v1alpha1',
    'kind: IPClaim # made by hand',
    `metadata: ${JSON.stringify(metadata)}`,
    `spec: ${JSON.stringify({ kind: 'network', networkInstance: { name: 'vpc' }, ...spec })}`,
    ...(status === undefined ? [] : [`status: ${JSON.stringify(status)}`]),
    '',
  ].join('\n');
}

/** `name/index → prefix` of all claims of a revision that have a value. */
async function addressesOf(store: RevisionStore, revision: string): Promise<Record<string, unknown>> {
  const objects = (await store.content(revision)).objects().filter((object: KrmObject) => isIpClaim(object));
  return Object.fromEntries(objects.map((object) => [object.name, statusOf(object).prefix]));
}

describe('ipam resolver', () => {
  let clock: ManualClock;
  let world: Fixture;

  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    await world.register('edge');
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const pool = (
    name: string,
    prefix: string,
    labels: Record<string, string> = { 'nephio.org/gateway': 'true' },
    instance = 'vpc',
  ) =>
    world.client.create(ipPrefixKind, {
      metadata: { name },
      spec: { kind: 'network', networkInstance: { name: instance }, prefix, labels },
    });
  const ipam = (options: Partial<IpamOptions> = {}) =>
    ipamResolver({ store: world.store, client: world.client, clock, ...options });
  const reconciler = (options: Partial<IpamOptions> = {}) => {
    const { client, store } = world;
    const { resolver, sources } = ipam(options);
    const recorder = world.recorder('controller:revision');
    const { reconcile } = revisionController({ client, store, clock, recorder, resolvers: [resolver], sources });
    return (name: string) =>
      reconcile({ namespace: 'default', name }, { signal: new AbortController().signal, failures: 0 });
  };
  const draft = async (packageName: string, files: Record<string, string>, workspace = 'w1') =>
    (await world.draft(`edge/${packageName}/${workspace}`, files)).name;
  const condition = (revision: string, name: string) => {
    const { kptfile } = world.store.get(revision);
    return kptfile === undefined ? undefined : conditionsOf(kptfile).get(TYPE + name);
  };
  const remove = (name: string) => world.store.transition(name, { action: 'delete' }, ANNA);
  const copy = async (packageName: string, source: string, workspace: string) =>
    (await world.store.create('edge', { package: packageName, workspace, source: { type: 'copy', source } }, ANNA))
      .name;

  test('writes address and gateway into the claim, and nothing else into the file', async () => {
    await pool('n3', '10.0.0.1/24');
    const text = `# before\n${claim('upf-n3')}---\n${claim('gone', { annotations: { 'specializer.nephio.org/delete': 'true' } })}`;
    const name = await draft('upf', { 'claims.yaml': text });
    await reconciler()(name);
    const lines = '\nstatus:\n  prefix: 10.0.0.2/24\n  gateway: 10.0.0.1\n---';
    expect((await world.store.content(name)).files.get('claims.yaml')?.toString()).toBe(text.replace('\n---', lines));
    expect(condition(name, 'upf-n3')).toEqual({
      type: `${TYPE}upf-n3`,
      status: 'True',
      reason: 'Allocated',
      message: '10.0.0.2/24, gateway 10.0.0.1, from n3',
    });
    expect(condition(name, 'gone')).toBeUndefined();
    const { record, content } = await world.store.judge(name);
    expect(record.verdicts).toMatchObject([
      { by: 'resolver:ipam', inputs: { [`object:${TYPE}upf-n3`]: content.object(`${TYPE}upf-n3`) } },
    ]);
    expect(record.settled).toMatchObject({ resolvers: ['ipam'], content: content.content });
    const { etag } = world.store.get(name);
    await reconciler()(name);
    expect(world.store.get(name).etag).toBe(etag);
  });

  test("keeps Nephio's owner as the reason, other fields of the status, and asks for gates where the package wants them", async () => {
    await pool('n3', '10.0.0.1/24');
    const owner = 'req.nephio.org/v1alpha1.Interface.n3';
    const name = await draft('upf', {
      Kptfile: `${KPTFILE}  annotations:\n    sluice.dev/gate-claims: "true"\n`,
      'c.yaml': claim('n3', {
        annotations: { 'specializer.nephio.org/owner': owner },
        status: { expiryTime: 'never' },
      }),
    });
    await reconciler()(name);
    expect(condition(name, 'n3')?.reason).toBe(owner);
    const { gates, content } = await world.store.judge(name);
    expect(gates).toMatchObject([{ type: `${TYPE}n3`, state: 'Open' }]);
    expect(content.objects().find(isIpClaim)?.value.status).toEqual({
      prefix: '10.0.0.2/24',
      gateway: '10.0.0.1',
      expiryTime: 'never',
    });
  });

  test('the prefixes of a network instance serve prefix claims', async () => {
    await world.client.create(networkInstanceKind, {
      metadata: { name: 'vpc' },
      spec: { prefixes: [{ prefix: '10.8.0.0/16' }] },
    });
    const name = await draft('upf', { 'c.yaml': claim('pool', { spec: { kind: 'pool', prefixLength: 24 } }) });
    await reconciler()(name);
    expect(await addressesOf(world.store, name)).toEqual({ pool: '10.8.0.0/24' });
  });

  test.each<[string, ClaimText | string, string, RegExp]>([
    [
      'no pool',
      { spec: { networkInstance: { name: 'other' } } },
      'NoMatchingPool',
      /no IPPrefix for network instance default\/other/,
    ],
    [
      'a label that no pool has',
      { spec: { selector: { matchLabels: { site: 'x' } } } },
      'NoMatchingPool',
      /nearest: .*no label site=x/,
    ],
    ['IPv6', { spec: { addressFamily: 'ipv6' } }, 'InvalidClaim', /only ipv4/],
    ['a wish that cannot be read', { spec: { prefixLength: 'long' } }, 'InvalidClaim', /prefixLength/],
    ['the gateway', { spec: { prefix: '10.0.0.1/24' } }, 'InvalidClaim', /is the gateway/],
    [
      'a file that cannot be edited',
      '{"apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPClaim", "metadata": {"name": "c"}, "spec": {"networkInstance": {"name": "vpc"}}}',
      'InvalidClaim',
      /c.yaml:1: .*block/,
    ],
  ])('%s: False, with the reason', async (_what, text, reason, message) => {
    await pool('n3', '10.0.0.1/24');
    const name = await draft('upf', {
      'c.yaml': typeof text === 'string' ? text : claim('c', text),
      'ok.yaml': claim('ok'),
    });
    await reconciler()(name);
    expect(condition(name, 'c')).toMatchObject({ status: 'False', reason, message: expect.stringMatching(message) });
    // One claim that gets nothing keeps no other from its address, nor an address from others.
    expect((await addressesOf(world.store, name)).ok).toMatch(/^10\.0\.0\.[23]\/24$/);
    const other = await draft('other', { 'c.yaml': claim('c') });
    await reconciler()(other);
    expect(condition(other, 'c')?.status).toBe('True');
  });

  test('a fixed address that somebody holds is a conflict that names the holder', async () => {
    await pool('n3', '10.0.0.1/24');
    const reconcile = reconciler();
    const first = await draft('a', { 'c.yaml': claim('mine', { spec: { prefix: '10.0.0.9/24' } }) });
    await reconcile(first);
    await world.publish(first);
    const second = await draft('b', { 'c.yaml': claim('mine', { spec: { prefix: '10.0.0.9/24' } }) });
    await reconcile(second);
    expect(condition(second, 'mine')).toMatchObject({
      status: 'False',
      reason: 'AddressConflict',
      message: expect.stringContaining('10.0.0.9 is held by IPClaim default/mine of package edge/a'),
    });
    expect(await addressesOf(world.store, second)).toEqual({ mine: undefined });
  });

  test('a copied address is taken from the one who came second', async () => {
    await pool('n3', '10.0.0.1/29');
    const reconcile = reconciler();
    const first = await draft('z', { 'c.yaml': claim('c') });
    await reconcile(first);
    clock.advance(5000);
    const status = { prefix: '10.0.0.2/29', gateway: '10.0.0.1' };
    const second = await draft('b', { 'c.yaml': claim('c', { status }) });
    await reconcile(second);
    await reconcile(first);
    expect(await addressesOf(world.store, first)).toEqual({ c: '10.0.0.2/29' });
    expect(await addressesOf(world.store, second)).toEqual({ c: '10.0.0.3/29' });
    // Where nothing else is left the foreign value goes all the same.
    const rest = await draft('rest', { 'c.yaml': [4, 5, 6].map((host) => claim(`c${host}`)).join('---\n') });
    await reconcile(rest);
    const third = await draft('d', { 'c.yaml': claim('c', { status }) });
    await reconcile(third);
    expect(condition(third, 'c')?.reason).toBe('PoolExhausted');
    expect((await world.store.content(third)).objects().find(isIpClaim)?.value).not.toHaveProperty('status');
  });

  test('a pool that is gone costs nobody the address', async () => {
    await pool('n3', '10.0.0.1/24');
    const name = await draft('a', { 'c.yaml': claim('c') });
    await reconciler()(name);
    await world.client.delete(ipPrefixKind, { name: 'n3' });
    await reconciler()(name);
    expect(condition(name, 'c')?.reason).toBe('NoMatchingPool');
    expect(await addressesOf(world.store, name)).toEqual({ c: '10.0.0.2/24' });
    await pool('n3', '10.0.0.1/24');
    await reconciler()(name);
    expect(condition(name, 'c')?.status).toBe('True');
  });

  test('drafts that are reconciled at once never get the same address, also before anything is written', async () => {
    await pool('n3', '10.0.0.1/24');
    const { resolver } = ipam();
    const names = await Promise.all(
      ['a', 'b', 'c', 'd'].map((each) => draft(each, { 'c.yaml': `${claim('x')}---\n${claim('y')}` })),
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
    // Nothing was written; asked again, everyone gets the same.
    expect(prefixes(await Promise.all(names.toReversed().map(resolve))).toReversed()).toEqual(first);
    // What is never written comes back: the draft is gone, or some minutes have passed.
    await remove(names[0] ?? '');
    clock.advance(600_000);
    const late = await draft('late', { 'c.yaml': claim('x') });
    expect(prefixes([await resolve(late)])).toEqual([[['10.0.0.2/24'][0]]]);
  });

  test('who finds the pool exhausted is woken by a new pool', async () => {
    await pool('tiny', '10.0.0.1/30');
    const { resolver, sources } = ipam();
    const { client, store, manager } = world;
    manager.addController(
      revisionController({ client, store, clock, recorder: world.recorder('x'), resolvers: [resolver], sources }),
    );
    const a = await draft('a', { 'c.yaml': claim('c') });
    await manager.start();
    await manager.idle();
    const b = await draft('b', { 'c.yaml': claim('c') });
    await manager.idle();
    expect(condition(a, 'c')?.status).toBe('True');
    expect(condition(b, 'c')).toMatchObject({
      reason: 'PoolExhausted',
      message: expect.stringContaining('0 of 1 free'),
    });
    await pool('more', '10.0.1.1/24');
    await manager.idle();
    expect(await addressesOf(store, b)).toEqual({ c: '10.0.1.2/24' });
  });

  test('an address is free again when its last revision is gone and the grace period has passed', async () => {
    await pool('tiny', '10.0.0.1/30');
    const { resolver, sources } = ipam();
    const { client, store, manager } = world;
    manager.addController(
      revisionController({ client, store, clock, recorder: world.recorder('x'), resolvers: [resolver], sources }),
    );
    const first = await draft('a', { 'c.yaml': claim('c') });
    await manager.start();
    await manager.idle();
    await world.publish(first);
    const second = await copy('a', first, 'w2');
    await store.change(second, { files: new Map([['c.yaml', null]]) }, ANNA);
    const waiting = await draft('b', { 'c.yaml': claim('c') });
    await manager.idle();
    // The condition of a claim that the package has no more goes with it; the published revision still holds the address.
    expect(condition(second, 'c')).toBeUndefined();
    await world.publish(second);
    await manager.idle();
    expect(condition(waiting, 'c')?.reason).toBe('PoolExhausted');

    await store.transition(first, { action: 'propose-deletion' }, ANNA);
    await manager.idle();
    expect(condition(waiting, 'c')?.reason).toBe('PoolExhausted');
    await remove(first);
    await manager.idle();
    expect(condition(waiting, 'c')).toMatchObject({
      reason: 'AwaitingRelease',
      message: expect.stringContaining('2026-01-01T00:01:00Z'),
    });
    expect(manager.waiting()).toMatchObject([{ key: `default/${waiting}`, due: clock.now() + 60_000 }]);
    await clock.advanceAsync(59_000);
    await manager.idle();
    expect(condition(waiting, 'c')?.status).toBe('False');
    await clock.advanceAsync(1000);
    await manager.idle();
    expect(await addressesOf(store, waiting)).toEqual({ c: '10.0.0.2/30' });
  });

  test('its owner gets a released address back within the grace period', async () => {
    await pool('n3', '10.0.0.1/24');
    const reconcile = reconciler();
    const a = await draft('a', { 'c.yaml': claim('c') });
    await reconcile(a);
    await remove(a);
    const other = await draft('other', { 'c.yaml': claim('c') });
    await reconcile(other);
    expect(await addressesOf(world.store, other)).toEqual({ c: '10.0.0.3/24' });
    const again = await draft('a', { 'c.yaml': claim('c') });
    await reconcile(again);
    expect(await addressesOf(world.store, again)).toEqual({ c: '10.0.0.2/24' });
  });

  test('while a registered repository is unread nothing new is given out', async () => {
    await pool('n3', '10.0.0.1/24');
    const kept = await draft('kept', { 'c.yaml': claim('c') });
    await reconciler()(kept);
    await world.client.create(repositoryKind, {
      metadata: { name: 'far' },
      spec: { git: { repo: 'https://git.example.com/far.git' } },
    });
    const fresh = await draft('fresh', { 'c.yaml': claim('c') });
    const reconcile = reconciler();
    await reconcile(kept);
    await reconcile(fresh);
    expect(condition(kept, 'c')?.status).toBe('True');
    expect(condition(fresh, 'c')).toMatchObject({
      status: 'False',
      reason: 'AwaitingRepositories',
      message: expect.stringContaining('of far '),
    });
    await world.client.delete(repositoryKind, { name: 'far' });
    const { spec } = await world.client.get(repositoryKind, { name: 'edge' });
    const git = { ...spec.git, repo: spec.git?.repo ?? '', directory: 'part' };
    await world.client.create(repositoryKind, { metadata: { name: 'twin' }, spec: { git } });
    await reconciler()(fresh);
    expect(condition(fresh, 'c')?.status).toBe('True');
    const risky = await draft('risky', { 'c.yaml': claim('c') });
    await world.client.create(repositoryKind, {
      metadata: { name: 'far' },
      spec: { git: { repo: 'https://git.example.com/far.git' } },
    });
    await reconciler({ unreadRepositories: 'ignore' })(risky);
    expect(condition(risky, 'c')?.status).toBe('True');
  });

  test('claims of one name in two namespaces share a condition, which is True only if both have an address', async () => {
    await pool('n3', '10.0.0.1/24');
    const name = await draft('a', {
      'a.yaml': claim('c', { namespace: 'one' }),
      'b.yaml': claim('c', { namespace: 'two', spec: { networkInstance: { name: 'none' } } }),
      'c.yaml': claim('d', { namespace: 'one' }),
      'd.yaml': claim('d', { namespace: 'two' }),
    });
    await reconciler()(name);
    expect(condition(name, 'c')?.reason).toBe('NoMatchingPool');
    expect(condition(name, 'd')).toMatchObject({
      status: 'True',
      message: '10.0.0.3/24, gateway 10.0.0.1, from n3; 10.0.0.4/24, gateway 10.0.0.1, from n3',
    });
  });

  test('50 drafts with 3 claims each, reconciled side by side, then read by another process: no address twice, one commit each', async () => {
    await pool('n3', '10.0.0.1/24');
    const { client, store, manager } = world;
    const { resolver, sources } = ipam();
    const recorder = world.recorder('controller:revision');
    manager.addController(
      revisionController({
        client,
        store,
        clock,
        recorder,
        resolvers: [resolver],
        sources,
        maxConcurrentReconciles: 8,
      }),
    );
    const names: string[] = [];
    for (let each = 0; each < 50; each++) {
      names.push(await draft(`p${each}`, { 'c.yaml': [1, 2, 3].map((index) => claim(`c${index}`)).join('---\n') }));
      if (each === 25) await manager.start();
    }
    await manager.idle();
    const all = async () =>
      (await Promise.all(names.map((name) => addressesOf(store, name)))).flatMap((each) => Object.values(each));
    const given = await all();
    expect(given).toHaveLength(150);
    expect(new Set(given).size).toBe(150);
    expect(given).not.toContain(undefined);
    for (const name of names) {
      const { tip } = store.get(name);
      expect(tip.facts.actor).toBe('resolver:ipam');
      const parent = await store.repository('edge').git.readCommit(tip.parents[0] ?? '');
      expect(parent.author.name).toBe('anna');
    }
    const fresh = reconciler();
    for (const name of names.slice(0, 10)) await fresh(name);
    expect(await all()).toEqual(given);
  });

  test('property: whatever comes and goes, no address has two owners, and none is given away before its time', async () => {
    type Step = readonly ['draft' | 'remove' | 'publish' | 'drop' | 'wait' | 'restart', number];
    const step = fc.tuple(
      fc.constantFrom<Step[0]>('draft', 'draft', 'remove', 'publish', 'drop', 'wait', 'restart'),
      fc.nat(3),
    );
    await pool('small', '10.0.0.1/29');
    let generation = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
        generation += 1;
        let reconcile = reconciler();
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
            await draft(name, { 'c.yaml': `${claim('x')}---\n${claim('y')}` }, `w${count++}`);
          else if (what === 'remove' && open !== undefined) await remove(open.name);
          else if (what === 'publish' && open !== undefined) await world.publish(open.name);
          else if (what === 'drop' && open !== undefined)
            await world.store.change(open.name, { files: new Map([['c.yaml', Buffer.from(claim('y'))]]) }, ANNA);
          else if (what === 'wait') clock.advance(30_000);
          else if (what === 'restart') {
            reconcile = reconciler();
            freed.clear();
          }
          await settle();
          for (const { name: each, lifecycle } of live()) if (lifecycle === 'Draft') await reconcile(each);
          const owners = new Map<unknown, string>();
          for (const revision of live()) {
            for (const [claimName, prefix] of Object.entries(await addressesOf(world.store, revision.name))) {
              if (prefix === undefined) continue;
              const owner = `${revision.key.package} ${claimName}`;
              expect(owners.get(prefix) ?? owner).toBe(owner);
              owners.set(prefix, owner);
            }
          }
          for (const [prefix, owner] of owners) {
            const held = before.get(prefix);
            if (held === undefined || held === owner || what === 'restart') continue;
            expect(freed.get(prefix) ?? clock.now()).toBeLessThanOrEqual(clock.now() - 60_000);
          }
          for (const [prefix] of before) if (!owners.has(prefix) && !freed.has(prefix)) freed.set(prefix, clock.now());
          for (const prefix of owners.keys()) freed.delete(prefix);
          before = new Map([...before, ...owners]);
        }
        for (const { name, lifecycle } of live()) {
          if (lifecycle === 'Published') await world.store.transition(name, { action: 'propose-deletion' }, ANNA);
          await remove(name);
        }
        clock.advance(120_000);
      }),
      { numRuns: 8 },
    );
  });

  describe('real packages', () => {
    const load = (folder: URL) =>
      Object.fromEntries(readdirSync(folder).map((file) => [file, readFileSync(new URL(file, folder), 'utf8')]));

    test('the quick start gets an address from each of its three networks', async () => {
      const { loadAll } = await import('js-yaml');
      for (const object of loadAll(readFileSync(new URL('examples/quickstart/config/network.yaml', ROOT), 'utf8')) as {
        kind: string;
      }[]) {
        if (object.kind === 'IPPrefix') await world.client.create(ipPrefixKind, object as never);
        else await world.client.create(networkInstanceKind, object as never);
      }
      const name = await draft('upf-edge', load(new URL('examples/quickstart/packages/upf-edge/', ROOT)));
      await reconciler()(name);
      expect(await addressesOf(world.store, name)).toEqual({
        'upf-edge-n3': '10.3.1.2/24',
        'upf-edge-n4': '10.4.1.2/24',
        'upf-edge-n6': '10.6.1.2/24',
      });
      expect((await world.store.judge(name)).gates.map(({ state }) => state)).toEqual(['Open', 'Open', 'Open']);
    });

    const corpus = new URL(
      '../shared/corpus/packages/nephio-project__catalog/workloads/free5gc/pkg-example-upf-bp/',
      ROOT,
    );
    const present = existsSync(corpus);
    if (!present) console.log(`skipped: no corpus at ${corpus.pathname}`);
    test.skipIf(!present)('a UPF blueprint with claims as its functions write them', async () => {
      for (const [name, prefix] of [
        ['n3', '172.3.0.1/16'],
        ['n4', '172.1.0.1/16'],
        ['n6', '172.2.0.1/16'],
      ] as const)
        await pool(
          name,
          prefix,
          { 'nephio.org/gateway': 'true', 'nephio.org/network-name': name },
          name === 'n3' ? 'vpc-ran' : 'vpc',
        );
      const files = load(corpus);
      for (const [name, instance] of [
        ['n3', 'vpc-ran'],
        ['n4', 'vpc'],
        ['n6', 'vpc'],
      ] as const)
        files[`ipclaim_upf-example-${name}-ipv4.yaml`] = claim(`upf-example-${name}-ipv4`, {
          namespace: 'example',
          annotations: {
            'config.kubernetes.io/local-config': 'true',
            'specializer.nephio.org/owner': `req.nephio.org/v1alpha1.Interface.${name}`,
          },
          spec: {
            networkInstance: { name: instance },
            selector: { matchLabels: { 'nephio.org/address-family': 'ipv4', 'nephio.org/network-name': name } },
          },
        });
      const name = await draft('upf', files);
      const before = await world.store.content(name);
      await reconciler()(name);
      const after = await world.store.content(name);
      expect(await addressesOf(world.store, name)).toEqual({
        'upf-example-n3-ipv4': '172.3.0.2/16',
        'upf-example-n4-ipv4': '172.1.0.2/16',
        'upf-example-n6-ipv4': '172.2.0.2/16',
      });
      expect(condition(name, 'upf-example-n3-ipv4')?.reason).toBe('req.nephio.org/v1alpha1.Interface.n3');
      const changed = [...after.files].filter(([path, data]) => before.files.get(path)?.equals(data) !== true);
      expect(changed.map(([path]) => path)).toEqual([
        'Kptfile',
        ...['n3', 'n4', 'n6'].map((each) => `ipclaim_upf-example-${each}-ipv4.yaml`),
      ]);
    });
  });
});
