import type { Client } from '../resource/client/client.ts';
import { type Condition, type NewCondition, setCondition } from '../resource/object/condition.ts';
import type { KubernetesObject, Stored } from '../resource/object/object.ts';
import { sameValue } from '../resource/object/same-value.ts';
import type { Kind } from '../resource/schema/kind.ts';

/** An object with conditions in its status. */
export type WithConditions = KubernetesObject & {
  readonly status?: { readonly conditions?: readonly Condition[] | undefined } | undefined;
};

export interface StatusUpdate<T extends WithConditions> {
  /** Conditions to set; others stay. Their observedGeneration is that of the object. */
  readonly conditions?: readonly NewCondition[];
  /** Further fields of the status to set; others stay. */
  readonly fields?: Partial<Omit<NonNullable<T['status']>, 'conditions'>>;
  /** Milliseconds since the epoch, for conditions whose status changes. */
  readonly now: number;
}

/**
 * For the one controller that owns the status of a kind: writes conditions and fields into the status of the observed
 * object, if they differ, and returns the resulting object. A concurrent change of the spec is no conflict, since
 * observedGeneration identifies the observed spec; another object with the same name is.
 */
export async function writeStatus<T extends WithConditions>(
  client: Client,
  kind: Kind<T>,
  object: Stored<T>,
  update: StatusUpdate<T>,
): Promise<Stored<T>> {
  const observedGeneration = object.metadata.generation;
  let conditions = object.status?.conditions;
  for (const condition of update.conditions ?? [])
    conditions = setCondition(conditions, { ...condition, observedGeneration }, update.now);
  const status = { ...object.status, ...update.fields, ...(conditions === undefined ? {} : { conditions }) };
  if (sameValue(object.status ?? {}, status)) return object;
  const { resourceVersion: _evaluated, ...metadata } = object.metadata;
  return client.updateStatus(kind, { ...object, metadata, status });
}
