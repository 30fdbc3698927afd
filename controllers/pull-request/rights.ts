import type { ObjectKey } from '../../src/resource/object/object.ts';
import type { Actor } from '../../src/resource/object/request-context.ts';

/**
 * Returns whether a user may do something with a revision, such as approve it, by the same rules as for their requests to the API. Only `true` is a permission. Rejects with
 * Unavailable or Internal where that is not decided, for instance because the cluster does not respond.
 */
export type MayApprove = (user: Actor, revision: ObjectKey, signal: AbortSignal) => Promise<boolean>;

/** Returns whether a user may create revisions in a namespace, by the same rules. */
export type MayCreate = (user: Actor, namespace: string, signal: AbortSignal) => Promise<boolean>;
