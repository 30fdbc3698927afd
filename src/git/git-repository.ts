import type { SluiceError } from '../foundation/sluice-error.ts';

/** Disk usage of the objects of a repository. */
export interface DiskUse {
  readonly looseObjects: number;
  readonly packs: number;
  /** Of packs, what belongs to them, and loose objects; the latter in whole blocks. */
  readonly bytes: number;
}

/**
 * The port to one bare Git repository. It deals with objects, refs and remotes and is independent of packages.
 *
 * Contract for every implementation:
 * - nothing is ever checked out, no hook and no system or user configuration is read, no shell is used;
 * - a written object can be read at once through this object, and is durable when a transaction or push that needs it has resolved.
 *   Until then it waits in memory, and other processes do not see it; objects that no transaction needs may never be written;
 * - `transaction` and `push` change all refs or none;
 * - paths are `/`-separated and relative. For writing, empty, `.`, `..` and `.git`-like segments are refused (InvalidInput); for
 *   reading, any name in a tree is accepted, except empty, `.` and `..` segments and line breaks (read those by object id).
 *   Names in trees that other programs wrote are data: check them (`checkPath`) before making files of them;
 * - every method may throw a SluiceError: Timeout, Unavailable (lost remote or child process), Corrupt (damaged repository: damaged
 *   objects are never reported as absent), LimitExceeded (objects above 64 MiB, see object-source.ts), Unsupported (see
 *   `capabilities`); methods with a remote also Refused (credentials, rights, redirects) and NotFound.
 */
export interface GitRepository {
  /** Absolute path of the bare repository. */
  readonly path: string;
  readonly engine: 'native' | 'isomorphic-git';
  readonly capabilities: GitCapabilities;
  /** True if commits and tags are signed. */
  readonly signs: boolean;
  /** Reason why another engine than the native one was chosen, and its limits. */
  readonly engineNote?: string | undefined;
  /** How Sluice connects to the remotes that it has used so far. */
  readonly remoteNote?: RemoteNote | undefined;

  /**
   * All refs whose full name starts with one of the prefixes (all refs without any), sorted by name. Without symbolic refs.
   * Transactions of this object are visible completely or not at all; those of other processes may be visible in part.
   */
  listRefs(prefixes?: readonly string[]): Promise<Ref[]>;
  /** The object a full ref name points to, or undefined; also undefined for a symbolic ref. */
  resolveRef(name: string): Promise<Oid | undefined>;

  /**
   * Reads many objects in one round trip, in the order of the request. A specification is an object id, or `<oid>:<path>` for the
   * entry of a commit or tree at a path (an empty path is its root tree). Missing ones are undefined.
   */
  readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]>;
  /** Like readObjects, without the contents: sizes are known before anything large is read. */
  statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]>;
  readCommit(oid: Oid): Promise<Commit>;
  /** The entries of one tree, in Git's order; undefined if `specification` (see readObjects) names no tree. */
  readTree(specification: string): Promise<TreeEntry[] | undefined>;
  /**
   * All entries below a tree that are not trees themselves, depth first, paths relative to it. Throws LimitExceeded above
   * `limit` entries (default 100,000).
   */
  listFiles(specification: string, limit?: number): Promise<FileEntry[]>;
  /**
   * Lists the differences between two trees (undefined is the empty tree), sorted by path. Equal subtrees are not read.
   */
  diffTrees(before: Oid | undefined, after: Oid | undefined): Promise<TreeChange[]>;

  /** Writes one blob; writing an existing blob has no effect. The data is copied before the promise resolves. */
  writeBlob(data: Uint8Array): Promise<Oid>;
  /**
   * Creates a tree from `base` (a tree or commit; undefined is the empty tree) with the edits applied: a path gets a blob, an
   * object that exists, or is removed (null; removing what is absent is no error). A tree that is given by its id can be edited
   * below in the same call; a file and a folder never replace each other unless one is removed in the same call (InvalidInput).
   * Data without a mode keeps a file executable that was. Only the trees along the edited paths are read and written; trees that
   * become empty are removed. Returns the id of the root, `EMPTY_TREE` if no entry remains.
   */
  editTree(base: Oid | undefined, edits: ReadonlyMap<string, TreeEdit>): Promise<Oid>;
  /** Writes a commit, signed by the repository's signer if there is one. */
  writeCommit(commit: NewCommit): Promise<Oid>;
  /** Writes an annotated tag, signed likewise. No ref names it yet. */
  writeTag(tag: NewTag): Promise<Oid>;

  /**
   * Writes all staged objects to the disk, then changes all refs or none; each change states the expected old value. Without updates
   * it only writes the objects. If the objects cannot be written, no ref changes and the objects stay staged. Throws
   * RefConflictError, with nothing changed, if an expected value does not match, a ref is locked, or names collide (`a/b` against
   * `a/b/c`, also where one of them is deleted in the same transaction). New values come before removals on disk: should the machine
   * stop between the two, both exist. After Timeout or Unavailable the outcome is unknown: read the refs again.
   */
  transaction(updates: readonly RefUpdate[]): Promise<void>;

  /**
   * Fetches refs from a remote, all or none. Returns the refs (local names) that changed meanwhile. With `prune`, a ref that takes
   * the place of a folder is set in a second attempt that is not atomic. Throws RefConflictError for refs that collide, are
   * locked, or do not descend from the local ones under a refspec without `+`.
   */
  fetch(remote: GitRemote, options: FetchOptions): Promise<RefChange[]>;
  /**
   * Finds out what a remote can do, for `remoteNote`. Throws what prevents fetching; what prevents pushing
   * is only noted.
   */
  probeRemote(remote: GitRemote, signal?: AbortSignal): Promise<void>;
  /** Lists refs of a remote, without fetching. */
  listRemoteRefs(remote: GitRemote, prefixes?: readonly string[], signal?: AbortSignal): Promise<Ref[]>;
  /**
   * Writes all staged objects to the disk, then pushes ref updates (remote names) in one atomic request with an expected old value
   * for every ref; the objects must exist here. Throws RefConflictError if the remote is not as expected or refuses, with nothing
   * changed there. A ref that has its new value already counts as done, so that a push whose outcome is unknown (see
   * `isUnknownOutcome`) can be repeated; a verification is valid at least for the moment at which the server lists its refs.
   */
  push(remote: GitRemote, updates: readonly RefUpdate[], signal?: AbortSignal): Promise<void>;
  /**
   * Reads exactly these refs to determine whether an interrupted push was applied. `not done` is valid for the moment of
   * reading: a server may still be applying it. The same push can be sent again then; it is never applied twice.
   */
  pushOutcome(remote: GitRemote, updates: readonly RefUpdate[], signal?: AbortSignal): Promise<PushOutcome>;

  /**
   * Packs objects and the refs outside refs/heads/ (draft branches stay loose: deleting a packed ref rewrites the whole file), and
   * removes files that killed writers left. Safe while this and other processes write.
   */
  maintain(options?: MaintainOptions): Promise<void>;
  /** The last reachable object or ref that could not be read; undefined once it was repaired. */
  readonly damage: SluiceError | undefined;
  /** Throws Corrupt if the object does not exist although something in this repository refers to it. */
  expectObject(oid: Oid): Promise<void>;
  /**
   * Repairs a damaged mirror: fetches everything again, and moves damaged files into the folder `sluice-damaged`. Readers are
   * served meanwhile; there must be no writers of this process. Throws what fetching throws, and Corrupt if it is still damaged.
   */
  repair(remote: GitRemote, options: FetchOptions): Promise<MirrorRepair>;
  /** Disk usage of the objects. */
  diskUse(): Promise<DiskUse>;
  /**
   * Waits for transactions that were started, drops objects that none of them needed, and ends child processes. Using the repository
   * afterwards is an error.
   */
  close(): Promise<void>;
}

export interface MaintainOptions {
  /**
   * Milliseconds after which unreachable objects are removed, in steps over several calls. Without it all are kept: a clone may
   * share the objects of a repository that other programs use.
   */
  readonly dropAfter?: number;
  /** Disk space is short: searches for such objects even if few objects were added since the last time. */
  readonly underPressure?: boolean;
  readonly signal?: AbortSignal;
}

export interface MirrorRepair {
  /** Files that could not be used, relative to the repository. */
  readonly damaged: readonly string[];
}

/** A SHA-1 object id, 40 lower-case hex digits. */
export type Oid = string;

export const EMPTY_TREE: Oid = '4b825dc642cb6eb9a060e54bf8d69288fbee4904';
export const ZERO_OID: Oid = '0000000000000000000000000000000000000000';

/** Operations that an engine supports safely. A caller that needs another gets Unsupported with the reason. */
export interface GitCapabilities {
  /** Transactions exclude other processes, not only other calls in this process. */
  readonly sharedRefs: boolean;
  readonly fetch: boolean;
  /** Pushes are atomic over many refs and guarded by expected old values. */
  readonly atomicPush: boolean;
  /** Refs, and the objects they need, reach the disk before the promise of their transaction resolves. */
  readonly durable: boolean;
  readonly maintain: boolean;
}

export interface Ref {
  /** Full name, `refs/…`. */
  readonly name: string;
  readonly oid: Oid;
}

export interface RefChange {
  readonly name: string;
  readonly before: Oid | undefined;
  readonly after: Oid | undefined;
}

export type RefUpdate =
  | { readonly type: 'create'; readonly ref: string; readonly new: Oid }
  | { readonly type: 'update'; readonly ref: string; readonly old: Oid; readonly new: Oid }
  | { readonly type: 'delete'; readonly ref: string; readonly old: Oid }
  /** `old: null` requires that the ref does not exist. */
  | { readonly type: 'verify'; readonly ref: string; readonly old: Oid | null };

export type ObjectType = 'commit' | 'tree' | 'blob' | 'tag';

export interface ObjectStat {
  readonly oid: Oid;
  readonly type: ObjectType;
  /** Bytes. */
  readonly size: number;
}

export interface GitObject extends ObjectStat {
  readonly data: Buffer;
}

/** `040000` tree, `100644` file, `100755` executable, `120000` symbolic link, `160000` submodule. */
export type FileMode = '040000' | '100644' | '100755' | '120000' | '160000';

export interface TreeEntry {
  readonly mode: FileMode;
  readonly name: string;
  readonly oid: Oid;
}

export interface FileEntry {
  readonly mode: FileMode;
  /** Relative to the listed tree. */
  readonly path: string;
  readonly oid: Oid;
}

export interface TreeChange {
  readonly path: string;
  readonly before: TreeEntry | undefined;
  readonly after: TreeEntry | undefined;
}

export type TreeEdit =
  | { readonly data: Uint8Array; readonly mode?: '100644' | '100755' }
  | { readonly oid: Oid; readonly mode: FileMode }
  | null;

export interface Signature {
  readonly name: string;
  readonly email: string;
  /** Milliseconds since the epoch; Git keeps whole seconds. */
  readonly time: number;
}

export interface NewCommit {
  readonly tree: Oid;
  readonly parents: readonly Oid[];
  readonly author: Signature;
  readonly committer: Signature;
  readonly message: string;
}

export interface Commit extends NewCommit {
  readonly oid: Oid;
  /** The text of a `gpgsig` header, if the commit is signed. */
  readonly signature: string | undefined;
}

export interface NewTag {
  readonly object: Oid;
  readonly type: ObjectType;
  /** Without `refs/tags/`. */
  readonly name: string;
  readonly tagger: Signature;
  readonly message: string;
}

/** Signs the bytes of a commit or tag; the text goes into the `gpgsig` header of a commit, and to the end of a tag. */
export type ObjectSigner = (payload: Buffer) => Promise<string>;

export interface GitRemote {
  /** `https://…`, `ssh://…`, `<user>@<host>:<path>`, `http://…` (loopback only unless allowed), or `file:///…`. */
  readonly url: string;
  /** Called for each request, so that short-lived tokens can be renewed. Never logged, never in arguments or environment of children. */
  readonly credentials?: () => Promise<GitCredentials>;
  /** Sent with each push, for the server and its hooks (`git push --push-option`). A remote that accepts none refuses (Unsupported). */
  readonly pushOptions?: readonly string[];
}

/** Credentials for a remote, and how Sluice verifies the identity of the remote. */
export interface GitCredentials {
  /** Where they are, for messages, such as `Secret default/git`. */
  readonly source?: string;
  /** For http and https. */
  readonly basic?: BasicCredentials;
  /** For https: certificates in PEM of authorities that are trusted for this remote besides those of the system. */
  readonly certificateAuthorities?: string;
  readonly ssh?: SshCredentials;
}

export interface BasicCredentials {
  readonly username: string;
  readonly password: string;
}

export interface SshCredentials {
  /** As in a key file of OpenSSH, without a passphrase. */
  readonly privateKey: string;
  /** Lines of a known_hosts file; a host that is not in them is refused. */
  readonly knownHosts: string;
}

export type PushOutcome = 'done' | 'not done';

/**
 * How Sluice connects to remotes: with its built-in client, with git where that is not possible; `ReadOnly` where nothing can be
 * pushed.
 */
export interface RemoteNote {
  readonly way: 'OwnClient' | 'Git' | 'ReadOnly';
  /** The transport of fetches and pushes for each remote, with the reason. Human-readable. */
  readonly message: string;
}

/** Additional refspecs of a fetch. Their refs are listed only if changes of the other refs require it. */
export interface LaterRefs {
  readonly refspecs: readonly string[];
  /** `changes`, with local names, is what the fetch would change without them. It is not called where git does the fetch. */
  isNeeded(changes: readonly RefChange[]): boolean;
}

export interface FetchOptions {
  /** Explicit refspecs, for example `+refs/heads/*:refs/heads/*`. */
  readonly refspecs: readonly string[];
  /** Removes local refs of these refspecs that the remote no longer has. */
  readonly prune?: boolean;
  /** Refspecs of refs that are numerous and seldom change unless other refs change. */
  readonly later?: LaterRefs;
  /**
   * Runs an exclusive section: while git fetches, nothing may be pushed, as git would reset refs to the values that it listed before.
   * The built-in client does not need it: it compares what it fetched with the local refs, and newer values win.
   */
  exclusively?<Result>(fetch: () => Promise<Result>): Promise<Result>;
  readonly signal?: AbortSignal;
}
