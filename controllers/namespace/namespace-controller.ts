import type { ControllerOptions } from '../../src/controller/controller.ts';
import type { ReconcileResult } from '../../src/controller/reconciler.ts';
import { toObject, triggerSource, watchKind } from '../../src/controller/source.ts';
import { writeStatus } from '../../src/controller/write-status.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { Client } from '../../src/resource/client/client.ts';
import {
  NAMESPACE_FINALIZER,
  type Namespace,
  namespaceKind,
  SYSTEM_NAMESPACES,
} from '../../src/resource/kinds/core/namespace.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import { namespaceConditions } from './namespace-conditions.ts';
import { removeContent } from './namespace-content.ts';

export interface NamespaceOptions {
  readonly client: Client;
  readonly registry: Pick<Registry, 'storages'>;
  readonly clock: Clock;
}

/** Bounds of the interval between two checks of a Terminating namespace: a quarter of the time that it has waited, within these. */
const MIN_WAIT_MS = 500;
const MAX_WAIT_MS = 30_000;

/** Creates the namespaces that clients rely on, and deletes the objects of terminating namespaces. */
export function namespaceController(options: NamespaceOptions): ControllerOptions {
  const { registry, clock } = options;
  const client = options.client.as({ name: 'controller:namespace' }, 'controller');

  return {
    name: 'namespace',
    maxConcurrentReconciles: 4,
    sources: [
      watchKind(namespaceKind, { map: toObject }),
      triggerSource((enqueue) => {
        for (const name of SYSTEM_NAMESPACES) enqueue({ name });
        return () => undefined;
      }),
    ],
    async reconcile(key) {
      const namespace = await client.find(namespaceKind, key);
      try {
        if (namespace?.metadata.deletionTimestamp !== undefined) return await empty(namespace);
        if (namespace !== undefined) await activate(namespace);
        else if (SYSTEM_NAMESPACES.includes(key.name))
          await client.create(namespaceKind, { metadata: { name: key.name }, spec: {} });
      } catch (error) {
        // Another client created it first.
        if (!isSluiceError(error, 'NotFound') && !isSluiceError(error, 'AlreadyExists')) throw error;
      }
      return undefined;
    },
  };

  async function activate(namespace: Stored<Namespace>): Promise<void> {
    const updated = await withFinalizer(namespace);
    await writeStatus(client, namespaceKind, updated, { fields: { phase: 'Active' }, now: clock.now() });
  }

  /** A namespace that an earlier version stored has no finalizer, and its deletion would leave objects behind. */
  async function withFinalizer(namespace: Stored<Namespace>): Promise<Stored<Namespace>> {
    const finalizers = namespace.spec.finalizers ?? [];
    return finalizers.includes(NAMESPACE_FINALIZER)
      ? namespace
      : finalize(namespace, [...finalizers, NAMESPACE_FINALIZER]);
  }

  async function empty(namespace: Stored<Namespace>): Promise<ReconcileResult | undefined> {
    const { name, deletionTimestamp = '' } = namespace.metadata;
    const finalizers = namespace.spec.finalizers ?? [];
    if (!finalizers.includes(NAMESPACE_FINALIZER)) return undefined;
    // From now on the API rejects new objects in it.
    const fields = { phase: 'Terminating' } as const;
    const closed = await writeStatus(client, namespaceKind, namespace, { fields, now: clock.now() });
    const report = await removeContent(client, registry, name);
    if (report.found === 0) {
      await finalize(
        closed,
        finalizers.filter((finalizer) => finalizer !== NAMESPACE_FINALIZER),
      );
      return undefined;
    }
    const age = clock.now() - Date.parse(deletionTimestamp);
    if (report.remaining.size === 0) return { requeueAfter: 0, reason: 'the last check of the namespace' };
    await writeStatus(client, namespaceKind, closed, { conditions: namespaceConditions(report), now: clock.now() });
    return {
      requeueAfter: Math.min(MAX_WAIT_MS, Math.max(MIN_WAIT_MS, age / 4)),
      reason: 'objects in the namespace that wait for their finalizers',
    };
  }

  function finalize(namespace: Stored<Namespace>, finalizers: string[]): Promise<Stored<Namespace>> {
    return client.subResource('finalize').update(namespaceKind, { ...namespace, spec: { finalizers } });
  }
}
