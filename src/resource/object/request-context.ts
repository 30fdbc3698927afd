import type { GroupMember } from './request-group.ts';

/** The caller. Sluice records it with each change. */
export interface Actor {
  /** A user's or a controller's name, such as `anna` or `controller:approval`. */
  readonly name: string;
  readonly groups?: readonly string[];
}

/** The interface through which a request arrived; `git` is a push by another Git client. */
export type EntryPoint = 'cli' | 'api' | 'controller' | 'git';

/** The context of every call of a storage, so that the caller, the face and the reason are recorded. */
export interface RequestContext {
  readonly actor: Actor;
  readonly face: EntryPoint;
  /** Reason that the caller gives, for instance for a rejection. */
  readonly reason?: string;
  /** Address of the review in which the caller approved. */
  readonly evidence?: string;
  /** Id of that review on its host. */
  readonly review?: string;
  /** If true, validates a write and returns the object that it would store, without storing it. */
  readonly dryRun?: boolean;
  /**
   * Whether the caller may read a Secret, if that is known; a caller who may read a Secret may also let Sluice use it. This and the
   * following decisions may query a cluster. If one cannot be made, it rejects and the call must fail; decisions without parameters
   * are made once for each request.
   */
  readonly mayReadSecret?: (secret: { readonly namespace: string; readonly name: string }) => Promise<boolean>;
  /** Whether the caller may write the status of the object of the request; undefined if every caller may. */
  readonly mayWriteStatus?: () => Promise<boolean>;
  /** Whether the caller may approve the object of the request; undefined if every caller may. */
  readonly mayApprove?: () => Promise<boolean>;
  /**
   * Whether the caller may change PackagePolicies in a namespace. Undefined if every caller may, for a request of the command line; otherwise if none
   * may: it was decided by other rights.
   */
  readonly mayChangePolicies?: (namespace: string) => Promise<boolean>;
  /** Whether the caller may read another object of the namespace in the same way; undefined if every caller may. */
  readonly mayReadOther?: (name: string) => Promise<boolean>;
  /** Whether the caller may read a DeliveryTarget, and so what it delivers; undefined if every caller may. */
  readonly mayReadTarget?: (target: { readonly namespace: string; readonly name: string }) => Promise<boolean>;
  /** The caller changes the object whatever it is by now: the request names no version that they read. */
  readonly namesNoVersion?: boolean;
  /** The caller makes other requests at the same time, with which this one may be carried out as one change. */
  readonly together?: GroupMember;
  /** Aborts the call where the storage can still do so without half a change. */
  readonly signal?: AbortSignal;
  /** Called with a human-readable sentence about a deviation from the request. */
  readonly warn?: (message: string) => void;
}
