import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CrashedDatabase } from '../faults/crash-database.ts';
import type { KubeApi } from '../support/api/kube-api.ts';
import { RunningUp } from '../support/api/running-up.ts';

const SHORT = process.env.SLUICE_SOAK === 'short';
const LIVES = SHORT ? 300 : 2000;
/** The number of runs of each database. */
const LIVES_OF_ONE = 30;
const SERVER_ROUNDS = SHORT ? 4 : 30;
const CLIENTS = 20;

test(`the database, killed ${LIVES} times while it writes`, async () => {
  const databases = Array.from({ length: Math.ceil(LIVES / LIVES_OF_ONE) }).values();
  let acknowledged = 0;
  let lives = 0;
  // Two at once, for two processors.
  const lane = async () => {
    for (const _ of databases) {
      const folder = await mkdtemp(join(tmpdir(), 'sluice-crash-'));
      const database = new CrashedDatabase(folder);
      for (let life = 0; life < LIVES_OF_ONE; life += 1) {
        acknowledged += await database.live();
        lives += 1;
      }
      await rm(folder, { recursive: true });
    }
  };
  await Promise.all([lane(), lane()]);
  expect(lives).toBeGreaterThanOrEqual(LIVES);
  console.log(`killed ${lives} times, ${acknowledged} acknowledged writes`);
});

test('the whole server, killed while clients write and watch', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-crash-'));
  /** The last acknowledged state of each object for clients, and their requests since. */
  const acknowledged = new Map<string, number>();
  const requested = new Map<string, number>();
  const path = (name: string) => `/api/v1/namespaces/default/configmaps${name === '' ? '' : `/${name}`}`;
  let version = '';
  let newest = 0n;
  for (let round = 0; round < SERVER_ROUNDS; round += 1) {
    await using up = await RunningUp.start(join(folder, 'data'));
    const list = (await up.api.list(path(''))).body;
    expect(BigInt(list.metadata.resourceVersion), `round ${round}: versions restart`).toBeGreaterThanOrEqual(newest);
    const values = new Map(list.items.map(({ metadata, data }) => [metadata.name, Number((data as { n: string }).n)]));
    for (const [name, value] of acknowledged) {
      expect(values.get(name), `round ${round}: ${name} lost a write`).toBeGreaterThanOrEqual(value);
      expect(values.get(name), `round ${round}: ${name} has a value that no client wrote`).toBeLessThanOrEqual(
        requested.get(name) ?? 0,
      );
    }
    if (version !== '') await followed(up.api, path(''), version, values, BigInt(list.metadata.resourceVersion));
    version = list.metadata.resourceVersion;
    for (const [name, value] of values) acknowledged.set(name, value);
    let left = CLIENTS * (1 + Math.floor(Math.random() * 10));
    const clients = Array.from({ length: CLIENTS }, (_, index) =>
      count(up.api, path(''), `c${index}`, acknowledged, requested, (resourceVersion) => {
        expect(resourceVersion).toBeGreaterThan(BigInt(version));
        if (resourceVersion > newest) newest = resourceVersion;
        left -= 1;
        if (left === 0) up.child.kill('SIGKILL');
      }),
    );
    await Promise.all(clients);
  }
  expect(acknowledged.size).toBeGreaterThan(CLIENTS / 2);
  await rm(folder, { recursive: true });
});

/** Counts one object up until the server is gone. */
async function count(
  api: KubeApi,
  path: string,
  name: string,
  acknowledged: Map<string, number>,
  requested: Map<string, number>,
  onVersion: (resourceVersion: bigint) => void,
): Promise<void> {
  for (;;) {
    const next = Math.max(acknowledged.get(name) ?? 0, requested.get(name) ?? 0) + 1;
    requested.set(name, next);
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data: { n: `${next}` } };
    let answer: Awaited<ReturnType<KubeApi['apply']>>;
    try {
      answer = await api.apply(`${path}/${name}`, 'counter', body, '&force=true');
    } catch {
      return;
    }
    expect(answer.status, answer.text).toBeLessThan(300);
    acknowledged.set(name, next);
    onVersion(BigInt(answer.body.metadata.resourceVersion));
  }
}

/** The events of a watch from before the kill lead to the current state. */
async function followed(
  api: KubeApi,
  path: string,
  from: string,
  values: ReadonlyMap<string, number>,
  until: bigint,
): Promise<void> {
  using watch = await api.watch(`${path}?resourceVersion=${from}&allowWatchBookmarks=true&timeoutSeconds=3`);
  const seen = new Map<string, number>();
  let last = BigInt(from);
  for (const { type, object } of await watch.rest()) {
    expect(type).not.toBe('ERROR');
    if (type === 'BOOKMARK') continue;
    expect(BigInt(object.metadata.resourceVersion)).toBeGreaterThan(last);
    last = BigInt(object.metadata.resourceVersion);
    expect(last).toBeLessThanOrEqual(until);
    seen.set(object.metadata.name, Number((object.data as { n: string }).n));
  }
  expect(seen.size).toBeGreaterThan(0);
  for (const [name, value] of seen) expect(values.get(name)).toBe(value);
}
