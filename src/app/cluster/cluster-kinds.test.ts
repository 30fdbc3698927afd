import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { packageVariantController } from '../../../controllers/package-variant/package-variant-controller.ts';
import { packageVariantSetController } from '../../../controllers/package-variant-set/package-variant-set-controller.ts';
import { fixture } from '../../../test/support/fixture.ts';
import { notingReads } from '../../../test/support/noting-reads.ts';
import { type VariantBench, variantBench } from '../../../test/support/variant-bench.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { eventLine, type Received, sendJson, sendStatus, WireServer } from '../../kubernetes/testing.ts';
import { packageVariantKind } from '../../resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { ClusterKinds } from './cluster-kinds.ts';

const API_VERSION = 'example.com/v1';
const WAIT = { timeout: 15_000, interval: 20 };
const template = { downstream: { repo: 'edge', packageExpr: 'target.name' } };
const sites = (more: object = {}) => ({ objectSelector: { apiVersion: API_VERSION, kind: 'Site', ...more }, template });

/** What a kube-apiserver responds about a kind that users define. */
class Sites {
  resources: readonly object[] | undefined = [
    { name: 'sites', kind: 'Site', namespaced: true, verbs: ['get', 'list', 'watch'] },
    { name: 'sites/status', kind: 'Scale', namespaced: true, verbs: ['get'] },
  ];
  permitted = true;
  readonly watches = new Set<ServerResponse>();
  readonly #objects = new Map<string, object>();
  #version = 1;

  readonly handle = ({ path, query }: Received, response: ServerResponse): void => {
    const { resources } = this;
    if (path === `/apis/${API_VERSION}` && resources !== undefined)
      sendJson(response, 200, { kind: 'APIResourceList', resources });
    else if (path !== `/apis/${API_VERSION}/namespaces/default/sites` || resources === undefined)
      sendStatus(response, 404, 'NotFound', 'the server could not find the requested resource');
    else if (this.permitted) this.#read(query, response);
    else sendStatus(response, 403, 'Forbidden', 'sites.example.com is forbidden');
  };

  #read(query: URLSearchParams, response: ServerResponse): void {
    const metadata = { resourceVersion: String(this.#version) };
    const name = /^metadata\.name=(.*)$/.exec(query.get('fieldSelector') ?? '')?.[1];
    const items = [...this.#objects].filter(([own]) => name === undefined || own === name).map(([, one]) => one);
    if (query.get('watch') === null) {
      sendJson(response, 200, { kind: 'SiteList', metadata, items });
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' }).flushHeaders();
    this.watches.add(response);
    response.on('close', () => this.watches.delete(response));
  }

  put(name: string, { labels = {}, spec = {} }: { labels?: object; spec?: object } = {}): void {
    this.#version += 1;
    const metadata = { name, namespace: 'default', uid: name, resourceVersion: String(this.#version), labels };
    const object = { apiVersion: API_VERSION, kind: 'Site', metadata, spec };
    const type = this.#objects.has(name) ? 'MODIFIED' : 'ADDED';
    this.#objects.set(name, object);
    for (const watch of this.watches) watch.write(eventLine(type, object));
  }
}

let bench: VariantBench;
let clock: ManualClock;
let wire: WireServer;
let api: Sites;
let end: AbortController;
/** The sets that were reconciled. */
let reconciled: string[];
beforeEach(async () => {
  clock = new ManualClock();
  bench = await variantBench(await fixture(clock));
  wire = await new WireServer().start();
  api = new Sites();
  wire.handle = api.handle;
  end = new AbortController();
  reconciled = [];
});
afterEach(async () => {
  end.abort();
  await bench.world[Symbol.asyncDispose]();
  await wire.stop();
});

async function start(): Promise<void> {
  const { client, store, registry, manager } = bench.world;
  const { client: http, connection } = wire.client();
  end.signal.addEventListener('abort', () => void connection.close());
  const kinds = new ClusterKinds({
    ...{ registry, clock, client: http, signal: end.signal },
    release: (kind) => manager.release(kind),
    onError: () => undefined,
  });
  const noting = notingReads(client, packageVariantSetKind, (name) => reconciled.push(name));
  manager.addController(packageVariantSetController({ client: noting, store, clock, kinds }));
  manager.addController(packageVariantController({ client, store, clock, kinds }));
  await manager.start();
}

const create = (name: string, ...targets: readonly object[]) =>
  bench.world.client.create(packageVariantSetKind, {
    metadata: { name },
    spec: { upstream: { repo: 'blueprints', package: 'web' }, targets: targets as never },
  });
const key = (name: string) => ({ namespace: 'default', name });
const downstreams = async () =>
  (await bench.world.client.list(packageVariantKind, { namespace: 'default' })).items
    .map(({ spec }) => spec.downstream.package)
    .sort();
const stalled = async (name: string) => {
  const { status } = await bench.world.client.get(packageVariantSetKind, key(name));
  return status?.conditions?.find(({ type }) => type === 'Stalled')?.message;
};
/** Lets time pass until something is so: the responses of the server take real time. */
const advancing = async <T>(read: () => T | Promise<T>) => {
  clock.advance(1000);
  return read();
};

test('objects of a kind that users define are targets, and their events wake only the sets that select them', async () => {
  api.put('berlin', { labels: { tier: 'edge' } });
  await start();
  await create('fleet', sites({ matchLabels: { tier: 'edge' } }));
  await create('other', sites({ matchLabels: { tier: 'core' } }));
  await expect.poll(downstreams, WAIT).toEqual(['berlin']);
  await expect.poll(() => api.watches.size, WAIT).toBe(1);
  await bench.world.manager.idle();
  reconciled.length = 0;
  api.put('denver', { labels: { tier: 'edge' } });
  await expect.poll(downstreams, WAIT).toEqual(['berlin', 'denver']);
  await bench.world.manager.idle();
  expect([...new Set(reconciled)]).toEqual(['fleet']);
  reconciled.length = 0;
  api.put('denver', { labels: { tier: 'edge' }, spec: { region: 'us' } });
  api.put('oslo');
  await bench.world.manager.idle();
  expect(reconciled).toEqual([]);
});

test('a kind is followed until no set names it', async () => {
  const { client, registry } = bench.world;
  await start();
  await create('one', sites());
  await create('two', sites());
  await expect.poll(() => api.watches.size, WAIT).toBe(1);
  await client.delete(packageVariantSetKind, key('one'));
  await bench.world.manager.idle();
  expect(api.watches.size).toBe(1);
  const targets = [{ repositories: [{ name: 'edge' }] }];
  await client.patch(packageVariantSetKind, key('two'), { spec: { targets } } as never);
  await expect.poll(() => api.watches.size, WAIT).toBe(0);
  expect(registry.kindOf({ apiVersion: API_VERSION, kind: 'Site' })).toBeUndefined();
  // And again, when a set names it again.
  await create('three', sites());
  await expect.poll(() => api.watches.size, WAIT).toBe(1);
  api.put('oslo');
  await expect.poll(downstreams, WAIT).toContain('oslo');
});

test('a kind that is not defined is reported, and is found when it is; nothing changes when its definition is deleted', async () => {
  const { resources } = api;
  api.resources = undefined;
  api.put('oslo');
  await start();
  await create('fleet', sites());
  const missing = `spec.targets[0]: no namespaced objects of type ${API_VERSION}.Site are served here; define the kind`;
  await expect.poll(() => stalled('fleet'), WAIT).toBe(missing);
  api.resources = resources;
  await expect.poll(() => advancing(downstreams), WAIT).toEqual(['oslo']);
  api.resources = undefined;
  await expect.poll(() => advancing(() => stalled('fleet')), WAIT).toBe(missing);
  expect(await downstreams()).toEqual(['oslo']);
});

test('a right that is missing is reported with the next step, and nothing is done until it is granted', async () => {
  api.permitted = false;
  api.put('oslo');
  await start();
  await create('fleet', sites());
  await expect
    .poll(() => stalled('fleet'), WAIT)
    .toBe(
      'spec.targets[0]: Sluice may not list sites.example.com in namespace default; grant it the verbs list and watch on them: create a ClusterRole with these rules and the label sluice.dev/aggregate-to-selected-objects: "true"',
    );
  expect(await downstreams()).toEqual([]);
  api.permitted = true;
  await expect.poll(() => advancing(downstreams), WAIT).toEqual(['oslo']);
  expect(await stalled('fleet')).toBe('all validation checks passed');
});

test('a set that selects nothing is carried out when the right is granted', async () => {
  api.permitted = false;
  await start();
  await create('fleet', sites());
  await expect.poll(() => stalled('fleet'), WAIT).toMatch(/may not list/);
  api.permitted = true;
  await expect.poll(() => advancing(() => stalled('fleet')), WAIT).toBe('all validation checks passed');
});

test('objects of no namespace are no targets', async () => {
  api.resources = [{ name: 'sites', kind: 'Site', namespaced: false, verbs: ['list', 'watch'] }];
  await start();
  await create('fleet', sites());
  await expect
    .poll(() => stalled('fleet'), WAIT)
    .toMatch(/Site objects are in no namespace; select objects of the namespace/);
});

test('Secrets are never read, however a set spells them', async () => {
  await start();
  const secret = (apiVersion: string) => ({ objectSelector: { apiVersion, kind: 'Secret' }, template });
  await create('one', secret('v1'));
  await create('two', secret('/v1'));
  await create('three', secret('v1/'));
  await expect.poll(() => stalled('one'), WAIT).toMatch(/Secret objects cannot be selected/);
  await expect.poll(() => stalled('two'), WAIT).toMatch(/"\/v1" is no apiVersion such as v1 or example\.com\/v1/);
  await expect.poll(() => stalled('three'), WAIT).toMatch(/no apiVersion|cannot be part/);
  expect(wire.received).toEqual([]);
});

test('Secrets that the cluster serves are not read either', async () => {
  const resources = [{ name: 'secrets', kind: 'Secret', namespaced: true, verbs: ['list', 'watch'] }];
  wire.handle = (_request, response) => sendJson(response, 200, { resources });
  const { registry, client, store, manager } = bench.world;
  const { client: http, connection } = wire.client();
  end.signal.addEventListener('abort', () => void connection.close());
  for (const kind of registry.kinds()) if (kind.kind === 'Secret') registry.unregister(kind);
  const release = () => undefined;
  const kinds = new ClusterKinds({ registry, clock, client: http, signal: end.signal, release, onError: release });
  manager.addController(packageVariantSetController({ client, store, clock, kinds }));
  await manager.start();
  await create('fleet', { objectSelector: { apiVersion: 'v1', kind: 'Secret' }, template });
  await expect.poll(() => stalled('fleet'), WAIT).toMatch(/Secret objects cannot be selected/);
  expect(wire.received.map(({ path }) => path)).toEqual(['/api/v1']);
});

test('the kinds that a namespace names are limited', async () => {
  await start();
  const targets = Array.from({ length: 21 }, (_, index) => ({
    objectSelector: { apiVersion: API_VERSION, kind: index === 20 ? 'Site' : `Kind${index}` },
    template,
  }));
  await create('many', ...targets);
  await create('fleet', sites());
  await expect
    .poll(() => stalled('fleet'), WAIT)
    .toMatch(/variants and sets of a namespace may name 20 kinds besides those of Sluice; name fewer$/);
});

test('a variant injects an object of a kind that users define, and its draft follows the object', async () => {
  const point = `apiVersion: ${API_VERSION}
kind: Site
metadata:
  name: site
  annotations:
    kpt.dev/config-injection: required
spec: {}
`;
  await bench.publishBlueprint({ 'site.yaml': point });
  api.permitted = false;
  api.put('oslo', { spec: { region: 'north' } });
  await start();
  await bench.variant({ injectors: [{ kind: 'Site', name: 'oslo' }] });
  const draft = 'edge.web.packagevariant-1';
  const condition = () =>
    bench.world.store
      .find(draft)
      ?.kptfile?.status?.conditions?.find(({ type }) => type === 'config.injection.Site.site')?.message;
  await expect.poll(condition, WAIT).toMatch(/^Sluice may not list sites\.example\.com in namespace default; grant/);
  api.permitted = true;
  await expect.poll(() => advancing(condition), WAIT).toBe('injected resource "oslo" from cluster');
  expect(await bench.text(draft, 'site.yaml')).toContain('region: north');
  await expect.poll(() => api.watches.size, WAIT).toBe(1);
  api.put('oslo', { spec: { region: 'south' } });
  await expect.poll(() => bench.text(draft, 'site.yaml'), WAIT).toContain('region: south');
  await bench.world.client.delete(packageVariantKind, key('web-edge'));
  await expect.poll(() => api.watches.size, WAIT).toBe(0);
});
