import type { ManagedFieldsEntry } from '../../../resource/object/object.ts';

/**
 * The field owners of the objects of one kind, by uid. Git does not store them: without them server-side apply only detects
 * fewer conflicts.
 */
export interface FieldOwners {
  get(uid: string): readonly ManagedFieldsEntry[] | undefined;
  /** Undefined forgets. */
  set(uid: string, entries: readonly ManagedFieldsEntry[] | undefined): void;
}

/** For as long as the process lives. */
export function memoryFieldOwners(): FieldOwners {
  const entries = new Map<string, readonly ManagedFieldsEntry[]>();
  return {
    get: (uid) => entries.get(uid),
    set: (uid, value) => {
      if (value === undefined) entries.delete(uid);
      else entries.set(uid, value);
    },
  };
}
