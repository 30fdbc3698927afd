import { existsSync, readdirSync, readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { loadAll } from 'js-yaml';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../../../src/foundation/time/manual-clock.ts';
import { ipPrefixKind, networkInstanceKind } from '../../../../src/resource/kinds/ipam/ipam.ts';
import { type Fixture, fixture } from '../../../../test/support/fixture.ts';
import { skipFor } from '../../../../test/support/skip.ts';
import { KPTFILE } from '../../testing.ts';
import { isIpClaim } from './ip-claim.ts';
import { CLAIM_TYPE, type ClaimText, claimText, ipamBench } from './testing.ts';

const ROOT = new URL('../../../../', import.meta.url);

describe('ipam resolver', () => {
  let clock: ManualClock;
  let world: Fixture;
  let path: string;
  let at: ReturnType<typeof ipamBench>;

  beforeEach(async () => {
    clock = new ManualClock();
    world = await fixture(clock);
    path = await world.register('edge');
    at = ipamBench({ ...world, clock, recorder: world.recorder('controller:revision') });
  });
  afterEach(() => world[Symbol.asyncDispose]());

  const draft = async (packageName: string, files: Record<string, string>, workspace = 'w1') =>
    (await world.draft(`edge/${packageName}/${workspace}`, files)).name;

  test('writes address and gateway into the claim, and nothing else into the file', async () => {
    await at.pool('n3', '10.0.0.1/24');
    const text = `# before\n${claimText('upf-n3')}---\n${claimText('gone', { annotations: { 'specializer.nephio.org/delete': 'true' } })}`;
    const name = await draft('upf', { 'claims.yaml': text });
    await at.reconciler()(name);
    const lines = '\nstatus:\n  prefix: 10.0.0.2/24\n  gateway: 10.0.0.1\n---';
    expect((await world.store.content(name)).files.get('claims.yaml')?.toString()).toBe(text.replace('\n---', lines));
    expect(at.condition(name, 'upf-n3')).toEqual({
      type: `${CLAIM_TYPE}upf-n3`,
      status: 'True',
      reason: 'Allocated',
      message: '10.0.0.2/24, gateway 10.0.0.1, from n3',
    });
    expect(at.condition(name, 'gone')).toBeUndefined();
    const { record, content } = await world.store.evaluate(name);
    expect(record.verdicts).toMatchObject([
      { type: 'Rendered', by: 'controller:render' },
      { by: 'resolver:ipam', inputs: { [`object:${CLAIM_TYPE}upf-n3`]: content.object(`${CLAIM_TYPE}upf-n3`) } },
    ]);
    expect(record.settled).toMatchObject({ resolvers: ['ipam'], content: content.content });
    const { etag } = world.store.get(name);
    await at.reconciler()(name);
    expect(world.store.get(name).etag).toBe(etag);
  });

  test("keeps Nephio's owner as the reason, other fields of the status, and adds gates where the package requests them", async () => {
    await at.pool('n3', '10.0.0.1/24');
    const owner = 'req.nephio.org/v1alpha1.Interface.n3';
    const name = await draft('upf', {
      Kptfile: `${KPTFILE}  annotations:\n    sluice.dev/gate-claims: "true"\n`,
      'c.yaml': claimText('n3', {
        annotations: { 'specializer.nephio.org/owner': owner },
        status: { expiryTime: 'never' },
      }),
    });
    await at.reconciler()(name);
    expect(at.condition(name, 'n3')?.reason).toBe(owner);
    const { gates, content } = await world.store.evaluate(name);
    expect(gates).toMatchObject([{ type: `${CLAIM_TYPE}n3`, state: 'Open' }]);
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
    const name = await draft('upf', { 'c.yaml': claimText('pool', { spec: { kind: 'pool', prefixLength: 24 } }) });
    await at.reconciler()(name);
    expect(await at.addresses(name)).toEqual({ pool: '10.8.0.0/24' });
  });

  test.each<[string, ClaimText | string, string, RegExp]>([
    [
      'no pool',
      { spec: { networkInstance: { name: 'other' } } },
      'NoMatchingPool',
      /no IPPrefix for network instance default\/other/,
    ],
    [
      'a selector that matches no pool',
      { spec: { selector: { matchLabels: { site: 'x' } } } },
      'NoMatchingPool',
      /nearest: .*no label site=x/,
    ],
    ['IPv6', { spec: { addressFamily: 'ipv6' } }, 'InvalidClaim', /only ipv4/],
    ['a request that cannot be parsed', { spec: { prefixLength: 'long' } }, 'InvalidClaim', /prefixLength/],
    ['the gateway', { spec: { prefix: '10.0.0.1/24' } }, 'InvalidClaim', /is the gateway/],
    [
      'a file that cannot be edited',
      '{"apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPClaim", "metadata": {"name": "c"}, "spec": {"networkInstance": {"name": "vpc"}}}',
      'InvalidClaim',
      /c.yaml:1: .*block/,
    ],
  ])('%s: False, with the reason', async (_what, text, reason, message) => {
    await at.pool('n3', '10.0.0.1/24');
    const name = await draft('upf', {
      'c.yaml': typeof text === 'string' ? text : claimText('c', text),
      'ok.yaml': claimText('ok'),
    });
    await at.reconciler()(name);
    expect(at.condition(name, 'c')).toMatchObject({ status: 'False', reason, message: expect.stringMatching(message) });
    // A claim without a result affects neither other claims nor other addresses.
    expect((await at.addresses(name)).ok).toMatch(/^10\.0\.0\.[23]\/24$/);
    const other = await draft('other', { 'c.yaml': claimText('c') });
    await at.reconciler()(other);
    expect(at.condition(other, 'c')?.status).toBe('True');
  });

  test('a fixed address with a holder is a conflict that names the holder', async () => {
    await at.pool('n3', '10.0.0.1/24');
    const reconcile = at.reconciler();
    const first = await draft('a', { 'c.yaml': claimText('mine', { spec: { prefix: '10.0.0.9/24' } }) });
    await reconcile(first);
    await world.publish(first);
    const second = await draft('b', { 'c.yaml': claimText('mine', { spec: { prefix: '10.0.0.9/24' } }) });
    await reconcile(second);
    expect(at.condition(second, 'mine')).toMatchObject({
      status: 'False',
      reason: 'AddressConflict',
      message: expect.stringContaining('10.0.0.9 is held by IPClaim default/mine of package edge/a'),
    });
    expect(await at.addresses(second)).toEqual({ mine: undefined });
  });

  test('a damaged repository frees no address: nothing new is allocated until it is repaired', async () => {
    await at.pool('n3', '10.0.0.1/24');
    const claims = claimText('upf-n3', { status: { prefix: '10.0.0.2/24' } });
    await world.push(path, { 'upf/Kptfile': KPTFILE, 'upf/claims.yaml': claims }, 'drafts/upf/w1');
    const repository = world.store.repository('edge');
    await repository.refresh();
    const { commit } = world.store.get('edge.upf.w1');
    const files = await repository.git.listFiles(`${commit}:upf`);
    const oid = files.find((entry) => entry.path === 'claims.yaml')?.oid ?? '';
    const lost = join(path, 'objects', oid.slice(0, 2), oid.slice(2));
    const aside = join(world.folder, 'aside');
    renameSync(lost, aside);
    const problems: string[] = [];
    const reconcile = at.reconciler({ onProblem: (revision, message) => problems.push(`${revision}: ${message}`) });
    const other = await draft('smf', { 'claims.yaml': claimText('smf-n3') });
    await reconcile(other);
    expect(at.condition(other, 'smf-n3')).toMatchObject({ status: 'False', reason: 'AwaitingRepositories' });
    expect(problems).toEqual([expect.stringMatching(/^edge\.upf\.w1: its IP claims cannot be read; no new address/)]);
    renameSync(aside, lost);
    clock.advance(60_000);
    await reconcile(other);
    expect(await at.addresses(other)).toEqual({ 'smf-n3': '10.0.0.3/24' });
  });

  test('a claim keeps its address when its pool is deleted', async () => {
    await at.pool('n3', '10.0.0.1/24');
    const name = await draft('a', { 'c.yaml': claimText('c') });
    await at.reconciler()(name);
    await world.client.delete(ipPrefixKind, { name: 'n3' });
    await at.reconciler()(name);
    expect(at.condition(name, 'c')?.reason).toBe('NoMatchingPool');
    expect(await at.addresses(name)).toEqual({ c: '10.0.0.2/24' });
    await at.pool('n3', '10.0.0.1/24');
    await at.reconciler()(name);
    expect(at.condition(name, 'c')?.status).toBe('True');
  });

  test('claims of one name in two namespaces share a condition, which is True only if both have an address', async () => {
    await at.pool('n3', '10.0.0.1/24');
    const name = await draft('a', {
      'a.yaml': claimText('c', { namespace: 'one' }),
      'b.yaml': claimText('c', { namespace: 'two', spec: { networkInstance: { name: 'none' } } }),
      'c.yaml': claimText('d', { namespace: 'one' }),
      'd.yaml': claimText('d', { namespace: 'two' }),
    });
    await at.reconciler()(name);
    expect(at.condition(name, 'c')?.reason).toBe('NoMatchingPool');
    expect(at.condition(name, 'd')).toMatchObject({
      status: 'True',
      message: '10.0.0.3/24, gateway 10.0.0.1, from n3; 10.0.0.4/24, gateway 10.0.0.1, from n3',
    });
  });

  describe('real packages', () => {
    const load = (folder: URL) =>
      Object.fromEntries(readdirSync(folder).map((file) => [file, readFileSync(new URL(file, folder), 'utf8')]));

    test('the quick start gets an address from each of its three networks', async () => {
      for (const object of loadAll(readFileSync(new URL('examples/quickstart/2-network.yaml', ROOT), 'utf8')) as {
        kind: string;
      }[]) {
        if (object.kind === 'IPPrefix') await world.client.create(ipPrefixKind, object as never);
        else await world.client.create(networkInstanceKind, object as never);
      }
      const name = await draft('upf-edge', load(new URL('examples/quickstart/packages/upf-edge/', ROOT)));
      await at.reconciler()(name);
      expect(await at.addresses(name)).toEqual({
        'upf-edge-n3': '10.3.1.2/24',
        'upf-edge-n4': '10.4.1.2/24',
        'upf-edge-n6': '10.6.1.2/24',
      });
      expect((await world.store.evaluate(name)).gates.map(({ state }) => state)).toEqual(['Open', 'Open', 'Open']);
    });

    const corpus = new URL(
      '../shared/corpus/packages/nephio-project__catalog/workloads/free5gc/pkg-example-upf-bp/',
      ROOT,
    );
    const present = existsSync(corpus);
    test(
      'a UPF blueprint with claims as its functions write them',
      skipFor(!present && `no corpus at ${corpus.pathname}`),
      async () => {
        for (const [name, prefix] of [
          ['n3', '172.3.0.1/16'],
          ['n4', '172.1.0.1/16'],
          ['n6', '172.2.0.1/16'],
        ] as const)
          await at.pool(
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
          files[`ipclaim_upf-example-${name}-ipv4.yaml`] = claimText(`upf-example-${name}-ipv4`, {
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
        await at.reconciler()(name);
        const after = await world.store.content(name);
        expect(await at.addresses(name)).toEqual({
          'upf-example-n3-ipv4': '172.3.0.2/16',
          'upf-example-n4-ipv4': '172.1.0.2/16',
          'upf-example-n6-ipv4': '172.2.0.2/16',
        });
        expect(at.condition(name, 'upf-example-n3-ipv4')?.reason).toBe('req.nephio.org/v1alpha1.Interface.n3');
        const changed = [...after.files].filter(([path, data]) => before.files.get(path)?.equals(data) !== true);
        expect(changed.map(([path]) => path)).toEqual([
          'Kptfile',
          ...['n3', 'n4', 'n6'].map((each) => `ipclaim_upf-example-${each}-ipv4.yaml`),
        ]);
      },
    );
  });
});
