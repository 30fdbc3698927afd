import type { ObjectKey } from '../../src/resource/object/object.ts';

/**
 * Returns whether a user may do something with a revision, such as approve it, by the same rules as for their requests to the API. Only `true` is a permission. Rejects with
 * Unavailable or Internal where that is not decided, for instance because the cluster does not respond.
 */
export type MayApprove = (user: string, revision: ObjectKey, signal: AbortSignal) => Promise<boolean>;

/** Returns whether a user may create revisions in a namespace, by the same rules. */
export type MayCreate = (user: string, namespace: string, signal: AbortSignal) => Promise<boolean>;
