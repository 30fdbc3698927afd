import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import type { KubeApi } from '../support/api/kube-api.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { installDefinitions } from './support/install-definitions.ts';
import { clusterPrograms } from './support/programs.ts';
import { readManifests } from './support/render.ts';
import {
  createNode,
  createReplicaPod,
  endpointsOf,
  LEADER_LABEL,
  labelledPods,
  NODE,
  reportNode,
  reportReplicaPod,
} from './support/replica-pod.ts';
import { Installation, NAMESPACE, type Replica } from './support/sluice-serve.ts';

const missing = inject('serverMissing');
const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
/** The Service of the installation leads to processes of this machine; this one selects as that of deploy does. */
const SERVICE = 'by-label';
const ADDRESSES: Readonly<Record<string, string>> = { a: '10.1.0.1', b: '10.1.0.2', foreign: '10.1.0.3' };
/** One takeover waits until the lease expires. */
const OPTIONS = ['--lease-duration', '8s', '--renew-deadline', '6s', '--retry-period', '1s'];

let plane: ControlPlane;
let installation: Installation;
let admin: KubeApi;

async function start(name: string): Promise<Replica> {
  return installation.start({ options: OPTIONS, environment: { POD_NAME: name, POD_NAMESPACE: NAMESPACE } });
}

async function report(name: string, ready: boolean): Promise<void> {
  await reportNode(admin);
  await reportReplicaPod(admin, name, { ready, ip: ADDRESSES[name] ?? '' });
}

/** Waits until exactly this pod has the label, and the Service leads to it alone. */
async function leadsTo(name: string): Promise<void> {
  const found = await eventually(
    async () => [await labelledPods(admin), await endpointsOf(admin, SERVICE)],
    (lists) => lists.every((names) => names.length === 1 && names[0] === name),
  ).catch(async () => [await labelledPods(admin), await endpointsOf(admin, SERVICE)]);
  const logs = installation.replicas.map(({ lines }) => lines.join('\n')).join('\n---\n');
  expect(found, logs).toEqual([[name], [name]]);
}

describe('the Service finds the leader', skipFor(missing !== '' && missing), () => {
  beforeAll(async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs) throw new Error(programs.missing);
    plane = await ControlPlane.start({ programs, controllerManager: true });
    await installDefinitions(plane.kubeconfig);
    installation = await Installation.create(plane);
    ({ admin } = installation);
    const [service] = readManifests('base/service');
    const { status, text } = await admin.post(`/api/v1/namespaces/${NAMESPACE}/services`, {
      ...service,
      metadata: { name: SERVICE },
    });
    if (status !== 201) throw new Error(text);
    // One that cannot be opened.
    await admin.post(REPOSITORIES, {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name: 'gone' } },
      spec: { type: 'git', git: { repo: 'http://127.0.0.1:1/gone.git', branch: 'main' } },
    });
    // Labels of earlier containers, and of another writer.
    await createNode(admin);
    await createReplicaPod(admin, 'a', { nodeName: NODE });
    for (const name of ['b', 'foreign'])
      await createReplicaPod(admin, name, { labels: { [LEADER_LABEL]: 'true' }, nodeName: NODE });
    await report('foreign', true);
  });
  afterAll(async () => {
    await installation?.[Symbol.asyncDispose]();
    await plane?.stop();
  });

  test('after its start, a kill and a stop: one pod has the label, and no other one gets requests', async () => {
    await eventually(
      () => endpointsOf(admin, SERVICE),
      (names) => names.includes('foreign'),
    );
    const first = await start('a');
    await first.leading();
    await report('a', true);
    await leadsTo('a');

    // A standby is ready, although a repository cannot be opened, and gets no requests.
    const second = await start('b');
    await second.warm();
    await report('b', true);
    expect(await second.isLeading()).toBe(false);
    expect((await second.probe('/apis/porch.kpt.dev/v1alpha1')).status).toBe(503);
    await leadsTo('a');

    first.kill('SIGKILL');
    await first.ended;
    await report('a', false);
    await leadsTo('b');

    // The container of the pod is started again.
    const again = await start('a');
    await again.warm();
    await report('a', true);
    await leadsTo('b');
    expect(await second.stop()).toBe(0);
    await report('b', false);
    await leadsTo('a');

    // The last one removes it itself.
    expect(await again.stop()).toBe(0);
    expect(await labelledPods(admin)).toEqual([]);
    const warnings = installation.replicas
      .flatMap(({ lines }) => lines)
      .filter((line) => line.includes('leader label'));
    expect(warnings).toEqual([]);
  });

  test('a replica whose pod is missing says so once, and works on', async () => {
    const replica = await start('missing');
    await replica.leading();
    const warning = await replica.logged(/leader label/);
    expect(warning).toContain('Pod sluice-system/missing');
    expect(warning).toContain('check that POD_NAME and POD_NAMESPACE name this pod');
    await installation.served();
    expect(await replica.stop()).toBe(0);
    expect(replica.lines.filter((line) => line.includes('leader label'))).toHaveLength(1);
  });
});
