import { SluiceError } from '../../foundation/sluice-error.ts';
import type { GitObject, ObjectStat, ObjectType, Oid } from '../git-repository.ts';

/** The largest object that is read into memory. */
export const MAX_OBJECT_BYTES = 64 * 1024 * 1024;
/** The most that one call reads into memory. */
export const MAX_BATCH_BYTES = 512 * 1024 * 1024;

/** Engine-specific access to objects: reading by specification, and writing. */
export interface ObjectSource {
  readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]>;
  statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]>;
}

/** An object to be written; `oid` is the hash of type and data. */
export interface NewObject {
  readonly oid: Oid;
  readonly type: ObjectType;
  readonly data: Uint8Array;
}

export function objectTooLarge(specification: string, size: number): SluiceError {
  return new SluiceError(
    'LimitExceeded',
    `object ${JSON.stringify(specification.slice(0, 200))} has ${size} bytes; at most ${MAX_OBJECT_BYTES} are read`,
    { details: { specification, size } },
  );
}

export function batchTooLarge(): SluiceError {
  return new SluiceError(
    'LimitExceeded',
    `the requested objects have more than ${MAX_BATCH_BYTES} bytes together: read fewer in one call`,
  );
}
