import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { inject as injectObjects } from '../../controllers/package-variant/injection.ts';
import { SelectedObjects } from '../../controllers/package-variant/selected-objects.ts';
import { findClusterAccess } from '../../src/kubernetes/access/kubeconfig.ts';
import { Connection } from '../../src/kubernetes/connection/connection.ts';
import { HttpClient } from '../../src/kubernetes/http-client.ts';
import { workloadClusterKind } from '../../src/resource/kinds/infra/workload-cluster.ts';
import { eventually } from '../support/api/eventually.ts';
import { APPLY_PATCH, KubeApi } from '../support/api/kube-api.ts';
import { skipFor } from '../support/skip.ts';
import { ControlPlane } from './support/control-plane.ts';
import { DEFINITIONS, readDefinitions } from './support/install-definitions.ts';
import { clusterPrograms } from './support/programs.ts';

const missing = inject('serverMissing');
const NAME = 'workloadclusters.infra.nephio.org';
const CLUSTERS = '/apis/infra.nephio.org/v1alpha1/namespaces/default/workloadclusters';
/** As another product installs it: with a field that Sluice does not know, and without one that it has. */
const EXISTING = {
  ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata: { name: NAME } },
  spec: {
    group: 'infra.nephio.org',
    names: { plural: 'workloadclusters', singular: 'workloadcluster', kind: 'WorkloadCluster' },
    scope: 'Namespaced',
    versions: [
      {
        ...{ name: 'v1alpha1', served: true, storage: true },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                properties: {
                  clusterName: { type: 'string' },
                  site: { type: 'object', additionalProperties: { type: 'string' } },
                },
              },
            },
          },
        },
      },
    ],
  },
};
const POINT =
  'apiVersion: infra.nephio.org/v1alpha1\nkind: WorkloadCluster\nmetadata:\n  name: cluster\n  annotations:\n    kpt.dev/config-injection: required\nspec:\n  clusterName: example\n';

describe('a cluster that has a definition of WorkloadCluster already', skipFor(missing !== '' && missing), () => {
  let plane: ControlPlane;
  let admin: KubeApi;
  let connection: Connection;

  beforeAll(async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs) return;
    plane = await ControlPlane.start({ programs });
    admin = await KubeApi.of(plane.kubeconfig);
    expect((await admin.post(DEFINITIONS, EXISTING)).status).toBe(201);
    const object = {
      ...{ apiVersion: 'infra.nephio.org/v1alpha1', kind: 'WorkloadCluster', metadata: { name: 'edge-1' } },
      spec: { clusterName: 'edge-1', site: { region: 'us' } },
    };
    await eventually(
      () => admin.post(CLUSTERS, object),
      ({ status }) => status === 201,
    );
    connection = new Connection(await findClusterAccess({ kubeconfig: plane.kubeconfig }));
  }, 240_000);

  afterAll(async () => {
    connection?.close();
    admin?.close();
    await plane?.stop();
  });

  test('keeps it when the definitions of Sluice are applied, as a conflict', async () => {
    const own = readDefinitions().find(({ metadata }) => metadata.name === NAME);
    if (own === undefined) throw new Error('the definition is not in deploy/crds');
    const { file: _file, ...definition } = own;
    const path = `${DEFINITIONS}/${NAME}?fieldManager=install&fieldValidation=Strict`;
    const { status, text } = await admin.patch(path, definition, APPLY_PATCH);
    expect([status, text]).toEqual([409, expect.stringContaining('conflict')]);
    const { text: kept } = await admin.get(`${DEFINITIONS}/${NAME}`);
    expect(kept).toContain('"site"');
  });

  test('has objects that variants inject with all fields of their definition', async () => {
    const client = new HttpClient({ connection, face: 'controller' });
    const kinds = { kindOf: () => workloadClusterKind, onChange: () => () => undefined } as never;
    const { read } = new SelectedObjects(client, kinds).readingFor({ namespace: 'default', name: 'web' });
    const { files, conditions } = await injectObjects(
      new Map([['cluster.yaml', Buffer.from(POINT)]]),
      [{ name: 'edge-1' }],
      read,
    );
    expect(conditions).toMatchObject([{ status: 'True', reason: 'ConfigInjected' }]);
    expect(Buffer.from(files.get('cluster.yaml') ?? '').toString()).toContain(
      'spec:\n  clusterName: edge-1\n  site:\n    region: us\n',
    );
  });
});
