import { randomBytes } from 'node:crypto';
import { beforeEach, inject } from 'vitest';
import { findClusterAccess } from '../../../src/kubernetes/access/kubeconfig.ts';
import { Connection, type ConnectionOptions } from '../../../src/kubernetes/connection/connection.ts';
import { HttpClient } from '../../../src/kubernetes/http-client.ts';
import { crdManifest } from '../../../src/resource/schema/crd-manifest.ts';
import { type Widget, widgetKindOf } from '../../../src/resource/schema/testing.ts';
import { beforeAllServed } from '../../conformance/support/place.ts';
import { eventually } from '../../support/api/eventually.ts';
import { DEFINITIONS } from './install-definitions.ts';

/**
 * The widgets of one test file, of a group of its own, so that it may list all namespaces. The tests of discovery leave out groups that end as
 * theirs does.
 */
export interface Widgets {
  readonly kind: ReturnType<typeof widgetKindOf>;
  /** The administrator's client. */
  readonly client: HttpClient;
  sample(name: string, namespace?: string): Widget;
  /** A client of another address that leads to the server, or of another user. Closed after the tests. */
  connect(
    changes: { readonly server?: string; readonly kubeconfig?: string },
    options?: ConnectionOptions,
  ): Promise<HttpClient>;
  deleteAll(): Promise<void>;
}

/** Defines the kind before the tests of the file, and removes it with its objects after them. */
export function useWidgets(): Widgets {
  const kind = widgetKindOf(`widgets-${randomBytes(4).toString('hex')}.conformance.example.com`);
  const connections: Connection[] = [];
  let client: HttpClient | undefined;
  beforeEach((context) => {
    if (inject('serverMissing') !== '') context.skip(inject('serverMissing'));
  });
  const widgets: Widgets = {
    kind,
    get client() {
      if (client === undefined) throw new Error('the client is there once the tests run');
      return client;
    },
    sample: (name, namespace = 'default') => kind.complete({ metadata: { name, namespace }, spec: {} }),
    async connect({ server, kubeconfig = inject('kubeconfig') }, options) {
      const access = await findClusterAccess({ kubeconfig });
      const connection = new Connection({ ...access, ...(server === undefined ? {} : { server }) }, options);
      connections.push(connection);
      return new HttpClient({ connection, face: 'controller' });
    },
    async deleteAll() {
      for (const { metadata } of (await widgets.client.list(kind)).items) {
        if (metadata.finalizers?.length) await widgets.client.patch(kind, metadata, { metadata: { finalizers: null } });
        // It may be gone with its last finalizer.
        if (await widgets.client.find(kind, metadata)) await widgets.client.delete(kind, metadata);
      }
    },
  };
  beforeAllServed(async () => {
    client = await widgets.connect({});
    await client.raw('POST', DEFINITIONS, JSON.stringify(crdManifest(kind)));
    const served = () => widgets.client.list(kind).then(() => 'served', String);
    await eventually(served, (result) => result === 'served');
    return async () => {
      await widgets.client.raw('DELETE', `${DEFINITIONS}/${kind.plural}.${kind.group}`);
      for (const connection of connections) await connection.close();
    };
  });
  return widgets;
}
