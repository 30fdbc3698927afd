import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import { KubeApi, type KubeObject, STRATEGIC_PATCH } from '../support/api/kube-api.ts';
import { hasKubectl, Kubectl } from '../support/kubectl.ts';
import { skipFor } from '../support/skip.ts';
import { applyObjects } from './support/apply-objects.ts';
import { ControlPlane } from './support/control-plane.ts';
import { type ClusterPrograms, clusterPrograms } from './support/programs.ts';
import { kustomize } from './support/render.ts';

const missing = inject('serverMissing');
const NAMESPACE = '/api/v1/namespaces/sluice-system';
const PODS = `${NAMESPACE}/pods`;
const DEPLOYMENT = '/apis/apps/v1/namespaces/sluice-system/deployments/sluice';
const BUDGET = '/apis/policy/v1/namespaces/sluice-system/poddisruptionbudgets/sluice';

interface Pod extends KubeObject {
  readonly spec: { readonly containers: readonly object[] };
}

describe('the overlays of deploy', skipFor(missing !== '' && missing), () => {
  let programs: ClusterPrograms;
  let plane: ControlPlane;
  let admin: KubeApi;
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

  /** Reports what a kubelet reports of a pod whose container runs: a leader is ready, a standby is not. */
  async function report(name: string, ready: boolean): Promise<void> {
    const condition = (type: string, status: boolean) => ({ type, status: status ? 'True' : 'False' });
    const conditions = [condition('Ready', ready), condition('ContainersReady', ready)];
    const status = { phase: 'Running', conditions };
    const { status: code, text } = await admin.patch(`${PODS}/${name}/status`, { status }, STRATEGIC_PATCH);
    expect(code, text).toBe(200);
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

  test('update all replicas, although a standby is never ready', async () => {
    const old = await podsBesides([], 2);
    const [leader = '', standby = ''] = old;
    await report(leader, true);
    await report(standby, false);
    const template = { metadata: { annotations: { changed: 'true' } } };
    expect((await admin.patch(DEPLOYMENT, { spec: { template } })).status).toBe(200);
    await podsBesides(old, 2);
  });

  test('let one replica at a time be evicted, the leader too, and none while no replica leads', async () => {
    const [leader = '', standby = ''] = await podsBesides([], 2);
    await report(standby, false);
    await report(leader, true);
    await allowedEvictions(1);
    expect(await evict(leader)).toBe(201);
    expect(await evict(standby)).toBe(429);
    await report(standby, true);
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
    await kubectl.ok(['delete', '-k', overlay]);
    const left = await kubectl.ok('get namespaces,clusterroles,clusterrolebindings,apiservices,crds --output=name');
    expect(left).not.toContain('sluice');
  });
});
