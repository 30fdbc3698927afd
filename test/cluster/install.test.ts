import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { KubeApi, type KubeObject } from '../support/api/kube-api.ts';
import { hasKubectl, Kubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';
import { applyObjects } from './support/apply-objects.ts';
import { ControlPlane } from './support/control-plane.ts';
import { type ClusterPrograms, clusterPrograms } from './support/programs.ts';
import { kustomize } from './support/render.ts';
import { PODS, reportReplicaPod } from './support/replica-pod.ts';

const missing = inject('serverMissing');
const NAMESPACE = '/api/v1/namespaces/sluice-system';
const DEPLOYMENT = '/apis/apps/v1/namespaces/sluice-system/deployments/sluice';
const BUDGET = '/apis/policy/v1/namespaces/sluice-system/poddisruptionbudgets/sluice';

interface Pod extends KubeObject {
  readonly spec: { readonly containers: readonly object[] };
}

describe('the overlays of deploy', skipFor(missing !== '' && missing), () => {
  let programs: ClusterPrograms;
  let plane: ControlPlane;
  let admin: KubeApi;
  /** By the name of the pod. */
  const addresses = new Map<string, string>();
  beforeAll(async () => {
    const built = await clusterPrograms(() => undefined);
    if ('missing' in built) throw new Error(built.missing);
    programs = built;
    // No scheduler, so that pods run and are ready when a test says so.
    plane = await ControlPlane.start({ programs, controllerManager: true });
    admin = await KubeApi.of(plane.kubeconfig);
  });
  afterAll(async () => {
    admin?.close();
    await plane?.stop();
  });

  async function apply(overlay: string): Promise<readonly string[]> {
    return applyObjects(admin, await kustomize(programs, `overlays/${overlay}`));
  }

  async function pods(): Promise<readonly Pod[]> {
    const { body } = await admin.list(PODS);
    return (body.items as readonly Pod[]).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  }

  /** The names of the pods when there are so many of them that are not among `others`. */
  async function podsBesides(others: readonly string[], count: number): Promise<readonly string[]> {
    const all = await eventually(pods, (found) => {
      const names = found.map(({ metadata }) => metadata.name);
      return names.length === count && !names.some((name) => others.includes(name));
    });
    return all.map(({ metadata }) => metadata.name);
  }

  /** Reports what a kubelet reports of a pod whose container runs: once a replica is warm, it is ready. */
  async function report(name: string, ready: boolean): Promise<void> {
    addresses.set(name, addresses.get(name) ?? `10.1.0.${addresses.size + 1}`);
    await reportReplicaPod(admin, name, { ready, ip: addresses.get(name) ?? '' });
  }

  async function namesOfPods(): Promise<readonly string[]> {
    return (await pods()).map(({ metadata }) => metadata.name);
  }

  /** Waits until the Deployment has a condition. */
  async function condition(type: string, status: string, reason = ''): Promise<void> {
    await eventually(
      () => admin.get(DEPLOYMENT),
      ({ body }) => {
        const { conditions = [] } = body.status as { conditions?: readonly Record<string, string>[] };
        return conditions.some((one) => one.type === type && one.status === status && one.reason?.includes(reason));
      },
    );
  }

  async function evict(name: string): Promise<number> {
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace: 'sluice-system' } };
    return (await admin.post(`${PODS}/${name}/eviction`, eviction)).status;
  }

  async function allowedEvictions(count: number): Promise<void> {
    await eventually(
      () => admin.get(BUDGET),
      ({ body }) => (body.status as { disruptionsAllowed?: number } | undefined)?.disruptionsAllowed === count,
    );
  }

  test('are accepted without a warning, one after the other', async () => {
    for (const overlay of ['minimal', 'ha', 'with-webhook', 'ha']) expect(await apply(overlay), overlay).toEqual([]);
  });

  test('have pods that the pod security of the level restricted accepts', async () => {
    const { labels } = (await admin.get(NAMESPACE)).body.metadata as unknown as { labels: Record<string, string> };
    expect(labels).toMatchObject({ 'pod-security.kubernetes.io/enforce': 'restricted' });
    const [first = ''] = await podsBesides([], 2);
    const { body } = await admin.get(`${PODS}/${first}`);
    // That the label has an effect: the same pod, whose container may become root.
    const { containers } = (body as Pod).spec;
    const free = containers.map((container) => ({ ...container, securityContext: {} }));
    const pod = { metadata: { name: 'free' }, spec: { ...(body.spec as object), containers: free } };
    const refused = await admin.post(PODS, pod);
    expect([refused.status, refused.text]).toEqual([403, expect.stringContaining('violates PodSecurity')]);
  });

  test('update one replica after the other, and stop an old one only when a new one is ready', async () => {
    const old = await podsBesides([], 2);
    for (const name of old) await report(name, true);
    await condition('Available', 'True');
    const template = { metadata: { annotations: { changed: 'true' } } };
    expect((await admin.patch(DEPLOYMENT, { spec: { template } })).status).toBe(200);
    let known = old;
    for (const remaining of [1, 0]) {
      const next = await eventually(
        namesOfPods,
        (names) => names.length === 3 && names.some((name) => !known.includes(name)),
      );
      const added = next.filter((name) => !known.includes(name));
      expect(added).toHaveLength(1);
      // Until it is ready, the controller has to leave the old replicas alone: it has seen the new pod, and reports so.
      await eventually(
        () => admin.get(DEPLOYMENT),
        ({ body }) => {
          const { updatedReplicas, unavailableReplicas } = body.status as Record<string, number | undefined>;
          return updatedReplicas === 2 - remaining && unavailableReplicas === 1;
        },
      );
      expect((await namesOfPods()).filter((name) => old.includes(name))).toHaveLength(remaining + 1);
      await report(added[0] ?? '', true);
      known = next;
      await eventually(namesOfPods, (names) => names.filter((name) => old.includes(name)).length === remaining);
    }
    await podsBesides(old, 2);
    // What `kubectl rollout status` waits for.
    const { body } = await eventually(
      () => admin.get(DEPLOYMENT),
      ({ body: { status } }) => (status as { availableReplicas?: number }).availableReplicas === 2,
    );
    expect(body.status).toMatchObject({ updatedReplicas: 2, replicas: 2 });
    await condition('Progressing', 'True', 'NewReplicaSetAvailable');
  });

  test('let one of two warm replicas be evicted, and not the last one', async () => {
    const [leader = '', standby = ''] = await podsBesides([], 2);
    await report(leader, true);
    await report(standby, true);
    await allowedEvictions(1);
    expect(await evict(leader)).toBe(201);
    await allowedEvictions(0);
    expect(await evict(standby)).toBe(429);
    // One that cannot become ready does not keep its node from being drained.
    const [replacement = ''] = (await podsBesides([leader], 2)).filter((name) => name !== standby);
    await report(replacement, false);
    expect(await evict(replacement)).toBe(201);
    const [next = ''] = (await podsBesides([leader, replacement], 2)).filter((name) => name !== standby);
    await report(next, true);
    await allowedEvictions(1);
    expect(await evict(standby)).toBe(201);
  });

  test('have the cluster refuse what Sluice cannot check, and nothing else', async () => {
    expect(await apply('with-webhook')).toEqual([]);
    const configMap = (name: string, data: object) => ({ metadata: { name }, data });
    const configMaps = `${NAMESPACE}/configmaps`;
    // The webhook takes effect some time after it is created, and there is no server.
    const refused = await eventually(
      () => admin.post(`${configMaps}?dryRun=All`, configMap('people', { allowed_signers: '' })),
      ({ status }) => status !== 201,
    );
    expect([refused.status, refused.text]).toEqual([500, expect.stringContaining('users.sluice.dev')]);
    expect((await admin.post(configMaps, configMap('other', { key: 'value' }))).status).toBe(201);
    expect((await admin.delete(`${configMaps}/other`)).status).toBe(200);
    const spec = { type: 'git', git: { repo: 'https://git.example.com/a.git' } };
    const repositories = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
    const repository = {
      ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name: 'a' } },
      spec,
    };
    const answer = await admin.post(repositories, repository);
    expect([answer.status, answer.text]).toEqual([500, expect.stringContaining('objects.sluice.dev')]);
  });

  test('are applied and deleted with one command', skipFor(!hasKubectl() && 'kubectl is not installed'), async () => {
    await using another = await ControlPlane.start({ programs, controllerManager: true });
    const kubectl = new Kubectl(another.kubeconfig, join(another.folder, 'cache'));
    const overlay = fileURLToPath(new URL('../../deploy/overlays/with-webhook', import.meta.url));
    // Warnings are on stderr.
    for (const round of ['first', 'again'])
      expect(await kubectl.run(['apply', '-k', overlay]), round).toMatchObject({ code: 0, stderr: '' });
    // On a loaded machine the controllers of the cluster take longer than kubectl of the tests may; they may remove what is in the namespace
    // before kubectl does.
    await kubectl.ok(['delete', '-k', overlay, '--ignore-not-found', '--wait=false']);
    // kube-apiserver repeats the deletion of a kind that fails with "storage is (re)initializing" after pauses that double, up to minutes; a
    // change of the definition ends the pause.
    const left = async () => {
      await kubectl.run(['annotate', 'crds', '--all', '--overwrite', `changed-at=${Date.now()}`]);
      return kubectl.ok('get namespaces,clusterroles,clusterrolebindings,apiservices,crds --output=name');
    };
    await expect.poll(left, { timeout: 120_000, interval: 2000 }).not.toContain('sluice');
  });
});
