import type { Clock } from '../foundation/time/clock.ts';
import { podKind } from '../resource/kinds/core/pod.ts';
import { memoryCommitter } from '../resource/storage/memory/commit.ts';
import { ObjectStorage } from '../resource/storage/memory/object-storage.ts';
import type { Registry } from '../resource/storage/registry.ts';
import type { EventLog } from '../resource/watch/event-log.ts';

/** Serves an empty list of pods to clients that look for the pods of functions; none can be created. */
export function registerPods(
  registry: Registry,
  { log, clock }: { readonly log: EventLog; readonly clock: Clock },
): void {
  const committer = memoryCommitter(log);
  registry.register(new ObjectStorage(podKind, { clock, log, committer, verbs: ['get', 'list', 'watch'] }));
}
