import { Mutex } from '../foundation/concurrency/mutex.ts';
import { isSluiceError } from '../foundation/sluice-error.ts';
import { type Clock, timestamp } from '../foundation/time/clock.ts';
import type { Client } from '../resource/client/client.ts';
import { apiServiceKind } from '../resource/kinds/apiregistration/api-service.ts';
import { serviceKind } from '../resource/kinds/core/service.ts';
import { DEFAULT_NAMESPACE, keyOf } from '../resource/object/object.ts';
import type { RequestContext } from '../resource/object/request-context.ts';
import { memoryCommitter } from '../resource/storage/memory/commit.ts';
import { ObjectStorage } from '../resource/storage/memory/object-storage.ts';
import type { Registry } from '../resource/storage/registry.ts';
import type { EventLog } from '../resource/watch/event-log.ts';

const SERVER: RequestContext = { actor: { name: 'sluice' }, face: 'api' };

/** The Service that clients of an aggregated API look for; `ensureServerService` makes it. */
const SERVER_SERVICE = { namespace: DEFAULT_NAMESPACE, name: 'kubernetes', port: 443 };

/**
 * Registers APIService objects for the served group versions; clients may only read them. Groups of `aggregated` refer to a
 * Service, as with an extension server: clients follow the reference.
 */
export function registerApiServices(
  registry: Registry,
  { log, clock, aggregated }: { readonly log: EventLog; readonly clock: Clock; readonly aggregated: readonly string[] },
): void {
  const storage = new ObjectStorage(apiServiceKind, {
    ...{ clock, log, committer: memoryCommitter(log) },
    verbs: ['get', 'list', 'watch'],
  });
  registry.register(storage);
  const updates = new Mutex();
  const update = () => void updates.run(() => follow(registry, storage, { clock, aggregated }));
  registry.onChange(update);
  update();
}

async function follow(
  registry: Registry,
  storage: ObjectStorage<ReturnType<typeof apiServiceKind.complete>>,
  { clock, aggregated }: { readonly clock: Clock; readonly aggregated: readonly string[] },
): Promise<void> {
  const versions = new Map(registry.kinds().map(({ group, version }) => [`${version}.${group}`, { group, version }]));
  const { items } = await storage.list(SERVER);
  for (const known of items) if (!versions.has(known.metadata.name)) await storage.delete(SERVER, keyOf(known));
  for (const [name, { group, version }] of versions) {
    if (items.some(({ metadata }) => metadata.name === name)) continue;
    const isAggregated = aggregated.includes(group);
    const made = await storage.create(
      SERVER,
      apiServiceKind.complete({
        metadata: { name },
        spec: {
          ...{ group, version, groupPriorityMinimum: 1000, versionPriority: 15 },
          ...(isAggregated ? { service: SERVER_SERVICE } : {}),
        },
      }),
    );
    const available = {
      ...{
        type: 'Available',
        status: 'True' as const,
        reason: isAggregated ? 'Passed' : 'Local',
        message: isAggregated ? 'all checks passed' : 'Local APIServices are always available',
      },
      lastTransitionTime: timestamp(clock.now()),
    };
    await storage.updateSubResource(SERVER, 'status', { ...made, status: { conditions: [available] } });
  }
}

/** Creates the Service of this server if it does not exist, since every cluster has one. It selects no pods. */
export async function ensureServerService(client: Client): Promise<void> {
  const { namespace, name, port } = SERVER_SERVICE;
  try {
    await client.create(
      serviceKind,
      serviceKind.complete({
        metadata: { name, namespace, labels: { component: 'apiserver', provider: 'kubernetes' } },
        spec: { ports: [{ name: 'https', port }] },
      }),
    );
  } catch (error) {
    if (!isSluiceError(error, 'AlreadyExists')) throw error;
  }
}
