import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { DEFAULT_ELECTION_TIMES } from '../../src/controller/leader-election/election-config.ts';
import { findClusterAccess } from '../../src/kubernetes/access/kubeconfig.ts';
import { KubeApi } from '../support/api/kube-api.ts';
import { skipFor } from '../support/skip.ts';
import { Component } from './support/component.ts';
import { ControlPlane } from './support/control-plane.ts';
import { type CandidateSettings, LeaderProcess, leadersInOrder, MAX_WAIT_MS } from './support/leader-process.ts';
import { clusterPrograms } from './support/programs.ts';
import { startTcpRelay } from './support/tcp-relay.ts';

/** The defaults: a server that stands still for seconds costs no leader its lease. */
const TIMES = DEFAULT_ELECTION_TIMES;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/default/leases';
const missing = inject('serverMissing');

describe('processes that elect a leader', skipFor(missing !== '' && missing), () => {
  let name: string;
  let open: AsyncDisposable[];
  beforeEach(() => {
    name = `election-${randomBytes(4).toString('hex')}`;
    open = [];
  });
  afterEach(async () => {
    for (const each of open.reverse()) await each[Symbol.asyncDispose]();
  });

  function start(identity: string, settings: Partial<CandidateSettings> = {}): LeaderProcess {
    const kubeconfig = inject('kubeconfig');
    const started = new LeaderProcess({ kubeconfig, namespace: 'default', name, identity, ...TIMES, ...settings });
    open.push(started);
    return started;
  }

  /** Starts a leader, and then a follower that knows it. */
  async function startTwo(settings: Partial<CandidateSettings> = {}) {
    const first = start('first', settings);
    await first.until('started');
    const { server: _, ...same } = settings;
    const second = start('second', same);
    await second.until('leader');
    return { first, second };
  }

  /** Seconds of a takeover, for the log of the suite. */
  const show = (what: string, fromMs: number, toMs: number) =>
    console.log(`${what}: ${((toMs - fromMs) / 1000).toFixed(3)} s`);
  const now = () => Number(process.hrtime.bigint()) / 1e6;

  async function readLease(): Promise<Record<string, unknown>> {
    const api = await KubeApi.of(inject('kubeconfig'));
    try {
      return (await api.get(`${LEASES}/${name}`)).body.spec as Record<string, unknown>;
    } finally {
      api.close();
    }
  }

  test('the leader is killed: the other one leads when the lease has expired, and not before', async () => {
    const { first, second } = await startTwo();
    first.kill('SIGKILL');
    const killedMs = now();
    await first.ended;
    const before = await readLease();
    const { atMs } = await second.until('started');
    show('takeover after SIGKILL of the leader', killedMs, atMs);
    const after = await readLease();
    expect(before).toMatchObject({ holderIdentity: 'first', leaseDurationSeconds: TIMES.leaseDurationMs / 1000 });
    expect(after).toMatchObject({ holderIdentity: 'second', leaseTransitions: 1 });
    const waitedMs = Date.parse(String(after.acquireTime)) - Date.parse(String(before.renewTime));
    expect(waitedMs).toBeGreaterThanOrEqual(TIMES.leaseDurationMs);
    await expect.poll(() => leadersInOrder([first, second])).toEqual(['first', 'second']);
  });

  test('the leader is stopped for longer than the lease: its first call of isLeader returns false', async () => {
    const { first, second } = await startTwo();
    first.spin();
    await first.until('spins');
    first.kill('SIGSTOP');
    const stoppedMs = now();
    await second.until('started');
    // The other one counts from the last renewal, which was before the stop.
    await expect.poll(() => now() - stoppedMs).toBeGreaterThan(TIMES.leaseDurationMs);
    first.kill('SIGCONT');
    expect((await first.until('woke')).detail).toBe('false');
    await first.until('stopped');
    // It takes part again, and leads when the other one stops.
    second.kill('SIGTERM');
    await first.until('started', 2);
    await expect.poll(() => leadersInOrder([first, second])).toEqual(['first', 'second', 'first']);
  });

  test('the leader stops gracefully: the other one leads at once', async () => {
    const { first, second } = await startTwo();
    const stopMs = now();
    first.kill('SIGTERM');
    const { atMs } = await second.until('started');
    show('takeover after a stop of the leader', stopMs, atMs);
    await first.ended;
    expect(first.reports.at(-1)).toMatchObject({ event: 'ended', detail: 'false' });
    expect(first.of('stopped')).toHaveLength(1);
    // Not by its expiry. The new leader reports its name after its start, which can be the last line that was read so far.
    await expect.poll(() => second.of('leader').map(({ detail }) => detail)).toEqual(['first', '', 'second']);
    await expect.poll(() => leadersInOrder([first, second])).toEqual(['first', 'second']);
  });

  test('the leader loses its network: it stops before the other one leads', async () => {
    const { server } = await findClusterAccess({ kubeconfig: inject('kubeconfig') });
    const relay = await startTcpRelay(Number(new URL(server).port));
    open.push(relay);
    const { first, second } = await startTwo({ server: `https://127.0.0.1:${relay.port}` });
    relay.refuses = true;
    relay.cut();
    await second.until('started');
    await first.until('stopped');
    relay.refuses = false;
    await expect.poll(() => first.of('leader').at(-1)?.detail).toBe('second');
    // By `isLeader`, since a report is written when the process gets to it.
    await expect.poll(() => leadersInOrder([first, second])).toEqual(['first', 'second']);
  });

  test('a candidate of client-go and one of Sluice take over from each other', async () => {
    const first = start('first');
    await first.until('started');
    const manager = await startControllerManager(name);
    open.push({ [Symbol.asyncDispose]: () => manager.stop() });
    first.kill('SIGTERM');
    await expect.poll(async () => String((await readLease()).holderIdentity)).toMatch(/_[0-9a-f-]{36}$/);
    const second = start('second');
    await second.until('leader');
    const before = await readLease();
    expect(before).toMatchObject({ leaseTransitions: 1 });
    await manager.kill();
    await second.until('started');
    expect(await readLease()).toMatchObject({ holderIdentity: 'second', leaseTransitions: 2 });
    expect(second.of('error')).toEqual([]);
  });

  test('the API server restarts, and users have no more rights than they need', async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs) throw new Error(programs.missing);
    const plane = await ControlPlane.start({ programs });
    open.push(plane);
    await grant(plane, name);
    const kubeconfig = await plane.userKubeconfig('anna', ['candidates']);
    await expect.poll(() => readLeaseStatus(kubeconfig, name)).toBe(404);
    const { first, second } = await startTwo({ kubeconfig });
    expect([...first.of('error'), ...second.of('error')]).toEqual([]);
    await plane.killApiServer();
    await first.until('stopped');
    await plane.startApiServer();
    await expect.poll(() => [first, second].filter(({ leads }) => leads), { timeout: MAX_WAIT_MS }).toHaveLength(1);
    expect(leadersInOrder([first, second]).length).toBeLessThanOrEqual(2);
  });
});

/** A kube-controller-manager that only takes part in an election. */
async function startControllerManager(name: string): Promise<Component> {
  const programs = await clusterPrograms(() => undefined);
  if ('missing' in programs) throw new Error(programs.missing);
  const kubeconfig = inject('kubeconfig');
  const folder = await mkdtemp(join(tmpdir(), 'sluice-election-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const flags = [
    ...['--leader-elect=true', '--leader-elect-resource-namespace=default', `--leader-elect-resource-name=${name}`],
    ...['--leader-elect-lease-duration=15s', '--leader-elect-renew-deadline=10s', '--leader-elect-retry-period=2s'],
    ...[`--kubeconfig=${kubeconfig}`, '--controllers=ttl-after-finished-controller', '--secure-port=0'],
  ];
  const log = join(folder, 'log');
  const program = programs.pathOf('kube-controller-manager');
  return Component.start({ name: 'kube-controller-manager', program, flags, log });
}

/** The HTTP status of a read: 403 until the server knows the rights of the user. */
async function readLeaseStatus(kubeconfig: string, name: string): Promise<number> {
  const api = await KubeApi.of(kubeconfig);
  try {
    return (await api.get(`${LEASES}/${name}`)).status;
  } finally {
    api.close();
  }
}

/** What `src/controller/README.md` lists. */
async function grant(plane: ControlPlane, name: string): Promise<void> {
  const api = await KubeApi.of(plane.kubeconfig);
  const group = 'rbac.authorization.k8s.io';
  const path = `/apis/${group}/v1/namespaces/default`;
  const leases = { apiGroups: ['coordination.k8s.io'], resources: ['leases'] };
  const rules = [
    { ...leases, verbs: ['create'] },
    { ...leases, resourceNames: [name], verbs: ['get', 'list', 'watch', 'update'] },
  ];
  const metadata = { name: 'candidates' };
  expect((await api.post(`${path}/roles`, { metadata, rules })).status).toBe(201);
  const roleRef = { apiGroup: group, kind: 'Role', name: 'candidates' };
  const subjects = [{ apiGroup: group, kind: 'Group', name: 'candidates' }];
  expect((await api.post(`${path}/rolebindings`, { metadata, roleRef, subjects })).status).toBe(201);
  api.close();
}
