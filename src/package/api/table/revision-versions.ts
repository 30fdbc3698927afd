/** A version of the object of a revision, and its state at that version. */
export interface RevisionVersion {
  readonly etag: string;
  readonly resourceVersion: string;
}

/**
 * The versions of package revisions by id, from one process to the next: revisions are read from Git again at every start, and those
 * that are as they were keep the version that clients know.
 */
export interface RevisionVersions {
  /** True until a client may have seen a list; a revision that arrives later is new to it. */
  readonly quiet: boolean;
  get(name: string): RevisionVersion | undefined;
  set(name: string, version: RevisionVersion): void;
  delete(name: string): void;
  /** Names may be deleted while they are listed. */
  names(): Iterable<string>;
}
