import { union } from './field-set.ts';
import { type Ownership, secondsOf } from './owners.ts';

/** As many as Kubernetes keeps. */
const MAX_UPDATERS = 10;
const OLD_UPDATERS = 'ancient-changes';

/** Keeps at most ten owners by update: the oldest become one, for each version of the kind. Owners by apply all stay. */
export function limitUpdaters(ownerships: readonly Ownership[]): readonly Ownership[] {
  const updaters = ownerships.filter((ownership) => ownership.operation === 'Update');
  if (updaters.length <= MAX_UPDATERS) return ownerships;
  updaters.sort((left, right) => ageOf(left) - ageOf(right) || (left.manager < right.manager ? -1 : 1));
  const buckets = new Map<string, Ownership>();
  const merged = new Set<Ownership>();
  let count = updaters.length;
  for (const updater of updaters) {
    if (count <= MAX_UPDATERS) break;
    const bucket = buckets.get(updater.apiVersion);
    merged.add(updater);
    if (bucket === undefined) {
      buckets.set(updater.apiVersion, updater);
      continue;
    }
    count -= 1;
    const { apiVersion, time } = updater;
    const fields = union(bucket.fields, updater.fields);
    buckets.set(apiVersion, {
      manager: OLD_UPDATERS,
      operation: 'Update',
      apiVersion,
      subresource: undefined,
      time,
      fields,
    });
  }
  return [...ownerships.filter((ownership) => !merged.has(ownership)), ...buckets.values()];
}

/** The entry of merged updaters comes first, regardless of its time, so that there is never a second one. */
function ageOf(updater: Ownership): number {
  return updater.manager === OLD_UPDATERS && updater.subresource === undefined ? -1 : secondsOf(updater);
}
