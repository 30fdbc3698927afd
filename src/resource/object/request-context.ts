/** Who asks. Always recorded with what was done. */
export interface Actor {
  /** A user's or a controller's name, such as `anna` or `controller:approval`. */
  readonly name: string;
  readonly groups?: readonly string[];
}

/** The way a request came in; `git` is a push by others. */
export type Face = 'cli' | 'api' | 'controller' | 'git';

/** What every call of a storage carries, so that it can be recorded who asked, from where and why. */
export interface RequestContext {
  readonly actor: Actor;
  readonly face: Face;
  /** Why, in the words of who asks; a rejection's reason for instance. */
  readonly reason?: string;
  /** Judges a write and tells what would come of it, and writes nothing. */
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
  /** Told what was taken otherwise than it was asked for, as a sentence for a person. */
  readonly warn?: (message: string) => void;
}
