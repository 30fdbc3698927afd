/** The caller. Always recorded with what was done. */
export interface Actor {
  /** A user's or a controller's name, such as `anna` or `controller:approval`. */
  readonly name: string;
  readonly groups?: readonly string[];
}

/** The way a request came in; `git` is a push by others. */
export type Face = 'cli' | 'api' | 'controller' | 'git';

/** What every call of a storage carries, so that the caller, the face and the reason are recorded. */
export interface RequestContext {
  readonly actor: Actor;
  readonly face: Face;
  /** Why, as the caller writes it; a rejection's reason for instance. */
  readonly reason?: string;
  /** Judges a write and returns what it would store, and writes nothing. */
  readonly dryRun?: boolean;
  /**
   * Whether the caller may read a Secret, where that is known; a caller who may read it may also have it used. This and the following
   * decisions may query a cluster. They reject, and the call must fail, where they cannot be made; those without parameters are made once for
   * a request.
   */
  readonly mayReadSecret?: (secret: { readonly namespace: string; readonly name: string }) => Promise<boolean>;
  /** Whether the caller may write the status of the object at hand; undefined where every caller may. */
  readonly mayWriteStatus?: () => Promise<boolean>;
  /** Whether the caller may approve the object at hand; undefined where every caller may. */
  readonly mayApprove?: () => Promise<boolean>;
  /** Whether the caller may read another object of the namespace in the same way; undefined where every caller may. */
  readonly mayReadOther?: (name: string) => Promise<boolean>;
  /** The caller changes the object whatever it is by now: the request names no version that they read. */
  readonly namesNoVersion?: boolean;
  /** Aborts the call where the storage can still do so without half a change. */
  readonly signal?: AbortSignal;
  /** Called with what was done otherwise than requested, as a sentence for a person. */
  readonly warn?: (message: string) => void;
}
