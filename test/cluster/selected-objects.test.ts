import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { eventually } from '../support/api/eventually.ts';
import type { KubeApi } from '../support/api/kube-api.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { created } from './support/extension-server.ts';
import { DEFINITIONS } from './support/install-definitions.ts';
import { KeptInstallation } from './support/kept-installation.ts';
import { clusterPrograms } from './support/programs.ts';

const missing = inject('serverMissing');
const ROLES = '/apis/rbac.authorization.k8s.io/v1/clusterroles';
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const SETS = '/apis/config.porch.kpt.dev/v1alpha2/namespaces/default/packagevariantsets';
const VARIANTS = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/packagevariants';
const SITES = '/apis/example.com/v1/namespaces/default/sites';
/** Longer than the pauses after which it is read again what the cluster serves, and a list is tried again. */
const MAX_NOTICE_MS = 90_000;

let plane: ControlPlane;
let kept: KeptInstallation;
let admin: KubeApi;

interface Condition {
  readonly type: string;
  readonly message: string;
}

describe('objects of a kind that users define', skipFor(missing !== '' && missing), () => {
  beforeAll(async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs) throw new Error(programs.missing);
    // It adds the rules of ClusterRoles to others.
    plane = await ControlPlane.start({ programs, controllerManager: true });
    kept = await KeptInstallation.start(plane, { replicas: 1 });
    ({ admin } = kept);
    await kept.whenReady();
    await kept.installation.served();
    await kept.register('default');
    await publish('web');
  });
  afterAll(async () => {
    await kept?.[Symbol.asyncDispose]();
    await plane?.stop();
  });

  async function publish(packageName: string): Promise<void> {
    await created(
      admin.post(REVISIONS, {
        ...{ apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision' },
        metadata: { namespace: 'default', annotations: { 'approval.nephio.org/policy': 'always' } },
        spec: {
          ...{ packageName, workspaceName: 'v1', repository: 'packages', lifecycle: 'Draft' },
          tasks: [{ type: 'init', init: { description: packageName } }],
        },
      }),
    );
    await eventually(
      () => admin.get(`${REVISIONS}/packages.${packageName}.v1`),
      ({ body }) => (body.spec as { lifecycle?: string } | undefined)?.lifecycle === 'Published',
    );
  }

  async function select(name: string, apiVersion: string, kind: string): Promise<void> {
    const template = { downstream: { repo: 'packages', packageExpr: "target.name + '-web'" } };
    await created(
      admin.post(SETS, {
        ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name } },
        spec: {
          upstream: { repo: 'packages', package: 'web' },
          targets: [{ objectSelector: { apiVersion, kind, matchLabels: { tier: 'edge' } }, template }],
        },
      }),
    );
  }

  /** Waits until the condition Stalled of a set has a message. */
  async function stalled(name: string, message: RegExp): Promise<void> {
    await eventually(
      () => admin.get(`${SETS}/${name}`),
      ({ body }) => {
        const { conditions = [] } = (body.status ?? {}) as { readonly conditions?: readonly Condition[] };
        return conditions.some((one) => one.type === 'Stalled' && message.test(one.message));
      },
      MAX_NOTICE_MS,
    );
  }

  async function site(name: string, tier: string): Promise<void> {
    const object = { apiVersion: 'example.com/v1', kind: 'Site', metadata: { name, labels: { tier } } };
    await created(admin.post(SITES, { ...object, spec: { region: name } }));
  }

  async function variants(): Promise<readonly string[]> {
    return (await admin.list(VARIANTS)).body.items.map(({ metadata }) => metadata.name).sort();
  }

  const have = (...names: string[]) =>
    eventually(variants, (present) => present.join() === names.join(), MAX_NOTICE_MS);

  test('are targets of a set once the kind is defined and the right to read it is granted', async () => {
    await select('fleet', 'example.com/v1', 'Site');
    await stalled('fleet', /no namespaced objects of type example\.com\/v1\.Site are served here; define the kind$/);

    await created(
      admin.post(DEFINITIONS, {
        ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
        metadata: { name: 'sites.example.com' },
        spec: {
          ...{ group: 'example.com', scope: 'Namespaced' },
          names: { kind: 'Site', plural: 'sites' },
          versions: [
            {
              ...{ name: 'v1', served: true, storage: true },
              schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
            },
          ],
        },
      }),
    );
    await eventually(
      () => admin.get(SITES),
      ({ status }) => status === 200,
    );
    await site('berlin', 'edge');
    await site('oslo', 'core');
    await stalled(
      'fleet',
      /^spec\.targets\[0\]: Sluice may not list sites\.example\.com in namespace default; grant it/,
    );
    expect(await variants()).toEqual([]);

    await created(
      admin.post(ROLES, {
        metadata: {
          name: 'sluice-selects-sites',
          labels: { 'sluice.dev/aggregate-to-selected-objects': 'true' },
        },
        rules: [{ apiGroups: ['example.com'], resources: ['sites'], verbs: ['list', 'watch'] }],
      }),
    );
    await have('fleet-packages-berlin-web');
    await stalled('fleet', /^all validation checks passed$/);

    await site('denver', 'edge');
    await have('fleet-packages-berlin-web', 'fleet-packages-denver-web');
    const labels = { tier: 'edge' };
    expect((await admin.patch(`${SITES}/oslo`, { metadata: { labels } })).status).toBe(200);
    await have('fleet-packages-berlin-web', 'fleet-packages-denver-web', 'fleet-packages-oslo-web');
    expect((await admin.delete(`${SITES}/berlin`)).status).toBe(200);
    await have('fleet-packages-denver-web', 'fleet-packages-oslo-web');
  });

  test('cannot be Secrets, even where Sluice may read them', async () => {
    await created(
      admin.post(ROLES, {
        metadata: { name: 'all-secrets', labels: { 'sluice.dev/aggregate-to-selected-objects': 'true' } },
        rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get', 'list', 'watch'] }],
      }),
    );
    const metadata = { name: 'key', labels: { tier: 'edge' } };
    await created(admin.post('/api/v1/namespaces/default/secrets', { metadata, stringData: { key: 'x' } }));
    await select('secrets', 'v1', 'Secret');
    await stalled('secrets', /Secret objects cannot be selected/);
    expect((await variants()).filter((name) => name.includes('key'))).toEqual([]);
  });
});
