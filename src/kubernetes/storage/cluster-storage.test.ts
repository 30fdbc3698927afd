import { widgetKind } from '../../resource/schema/testing.ts';
import { describeStorage } from '../../resource/storage/storage.conformance.ts';
import { createWidget, startTestServer, WIDGETS } from '../../server/testing.ts';
import { Connection } from '../connection/connection.ts';
import { HttpClient } from '../http-client.ts';
import { fixedAccess } from '../testing.ts';
import { ClusterStorage } from './cluster-storage.ts';

/** The same objects behind the embedded API server; test/cluster has the tests over a kube-apiserver. */
describeStorage('ClusterStorage over the embedded API server', { finalizers: true, remote: true }, async () => {
  const server = await startTestServer({}, undefined, undefined, { maxEvents: 50 });
  const connection = new Connection(fixedAccess(server.listener.url, 'admin'));
  const storage = new ClusterStorage(widgetKind, new HttpClient({ connection, face: 'controller' }));
  // A watch from version 0 means one from any version.
  await createWidget(server, 'first');
  await server.fetch(`${WIDGETS}/first`, { method: 'DELETE' });
  const sample = (name: string) => widgetKind.complete({ metadata: { name, namespace: 'default' }, spec: {} });
  return {
    storage,
    sample: (index) => sample(`widget-${index}`),
    changeSpec: (object) => ({ ...object, spec: { ...object.spec, size: object.spec.size + 1 } }),
    changeStatus: (object) => ({ ...object, status: { ready: object.status?.ready !== true } }),
    overflow: async () => {
      const context = { actor: { name: 'filler' }, face: 'api' } as const;
      for (let round = 0; round < 100; round += 1) await storage.create(context, sample(`filler-${round}`));
    },
    close: async () => {
      await connection.close();
      await server.stop();
    },
  };
});
