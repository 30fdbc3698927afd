import { randomBytes } from 'node:crypto';
import { beforeEach, inject } from 'vitest';
import { findClusterAccess } from '../../src/kubernetes/access/kubeconfig.ts';
import { Connection } from '../../src/kubernetes/connection/connection.ts';
import { HttpClient } from '../../src/kubernetes/http-client.ts';
import { ClusterStorage } from '../../src/kubernetes/storage/cluster-storage.ts';
import { crdManifest } from '../../src/resource/schema/crd-manifest.ts';
import { widgetKindOf } from '../../src/resource/schema/testing.ts';
import { describeStorage } from '../../src/resource/storage/storage.conformance.ts';
import { beforeAllServed } from '../conformance/support/place.ts';
import { eventually } from '../support/api/eventually.ts';
import { DEFINITIONS } from './support/install-definitions.ts';

const context = { actor: { name: 'test' }, face: 'controller' } as const;
/** A group of its own, since the suite lists all namespaces; the tests of discovery leave out groups that end so. */
const kind = widgetKindOf(`storage-${randomBytes(4).toString('hex')}.conformance.example.com`);
const definition = `${DEFINITIONS}/${kind.plural}.${kind.group}`;
const sample = (name: string) => kind.complete({ metadata: { name, namespace: 'default' }, spec: {} });

let connection: Connection;
let client: HttpClient;
let storage: ClusterStorage;

beforeEach((context) => {
  if (inject('serverMissing') !== '') context.skip(inject('serverMissing'));
});
beforeAllServed(async () => {
  connection = new Connection(await findClusterAccess({ kubeconfig: inject('kubeconfig') }));
  client = new HttpClient({ connection, face: 'controller' });
  storage = new ClusterStorage(kind, client);
  await client.raw('POST', DEFINITIONS, JSON.stringify(crdManifest(kind)));
  const served = () => client.list(kind).then(() => 'served', String);
  await eventually(served, (result) => result === 'served');
  return async () => {
    await client.raw('DELETE', definition);
    await connection.close();
  };
});

describeStorage('ClusterStorage over a kube-apiserver', { finalizers: true, remote: true }, async () => ({
  storage: new ClusterStorage(kind, client),
  sample: (index) => sample(`widget-${index}`),
  changeSpec: (object) => ({ ...object, spec: { ...object.spec, size: object.spec.size + 1 } }),
  changeStatus: (object) => ({ ...object, status: { ready: object.status?.ready !== true } }),
  close: deleteAll,
}));

async function deleteAll(): Promise<void> {
  const { items } = await client.list(kind);
  for (const { metadata } of items) {
    if ((metadata.finalizers?.length ?? 0) > 0) await client.patch(kind, metadata, { metadata: { finalizers: null } });
    await storage.delete(context, metadata).catch(() => undefined);
  }
  await eventually(
    () => client.list(kind),
    ({ items: left }) => left.length === 0,
  );
}
