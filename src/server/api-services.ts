import { type Clock, timestamp } from '../foundation/clock.ts';
import { memoryCommitter } from '../resource/commit.ts';
import type { EventLog } from '../resource/event-log.ts';
import { apiServiceKind } from '../resource/kinds/api-service.ts';
import { keyOf } from '../resource/object.ts';
import { ObjectStorage } from '../resource/object-storage.ts';
import type { Registry } from '../resource/registry.ts';
import type { RequestContext } from '../resource/request-context.ts';

const SERVER: RequestContext = { actor: { name: 'sluice' }, face: 'api' };

/** Registers APIService objects that tell which group versions are served; clients may only read them. */
export function registerApiServices(registry: Registry, log: EventLog, clock: Clock): void {
  const storage = new ObjectStorage(apiServiceKind, {
    ...{ clock, log, committer: memoryCommitter(log) },
    verbs: ['get', 'list', 'watch'],
  });
  registry.register(storage);
  let last: Promise<void> = Promise.resolve();
  const update = () => {
    last = last.then(() => follow(registry, storage, clock));
  };
  registry.onChange(update);
  update();
}

async function follow(
  registry: Registry,
  storage: ObjectStorage<ReturnType<typeof apiServiceKind.complete>>,
  clock: Clock,
): Promise<void> {
  const versions = new Map(registry.kinds().map(({ group, version }) => [`${version}.${group}`, { group, version }]));
  for (const known of storage.objects())
    if (!versions.has(known.metadata.name)) await storage.delete(SERVER, keyOf(known));
  for (const [name, { group, version }] of versions) {
    if (storage.find({ name }) !== undefined) continue;
    const made = await storage.create(
      SERVER,
      apiServiceKind.complete({
        metadata: { name },
        spec: { group, version, groupPriorityMinimum: 1000, versionPriority: 15 },
      }),
    );
    const available = {
      ...{
        type: 'Available',
        status: 'True' as const,
        reason: 'Local',
        message: 'Local APIServices are always available',
      },
      lastTransitionTime: timestamp(clock.now()),
    };
    await storage.updateSubResource(SERVER, 'status', { ...made, status: { conditions: [available] } });
  }
}
