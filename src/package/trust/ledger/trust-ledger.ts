import type { MainHeads } from './main-heads.ts';
import type { ContainedStates, ShownStates } from './shown-states.ts';

/**
 * Facts about trust that Git cannot keep, because every user who may push can rewrite Git: which keys a server trusts, which
 * repositories it has seen, and the position in the chain of statements on each revision.
 *
 * A ledger is shared by all processes on one data folder; every method reads or writes the shared state.
 */
export interface TrustLedger {
  /**
   * Changes whenever another process or this one changed the keys; compare to know when to evaluate again. A change by another process
   * may be missing for some milliseconds, see `readKeysVersion`.
   */
  readonly keysVersion: number;
  /** The version as it is now; `keysVersion` is at least as new afterwards. For each decision: a revocation counts once it returned. */
  readKeysVersion(): number;
  /** Every key that was ever trusted, revoked ones included, in the order in which they were added. */
  keys(): readonly TrustedKey[];
  /** Adds a key, or leaves a known one as it is. Durable when it returns. A revoked key stays revoked. */
  addKey(key: Pick<TrustedKey, 'fingerprint' | 'publicKey' | 'comment' | 'origin' | 'addedAt'>): void;
  /**
   * Ends the trust in a key from now on: existing marks and the publications on the main branches stay valid, later statements do
   * not. Durable when it returns. Throws NotFound for an unknown key.
   */
  revokeKey(fingerprint: string, at: string): void;

  /** Returns the known facts about a repository; undefined before it was first seen. */
  repository(id: string): KnownRepository | undefined;
  /** The id under which an address was seen last. */
  repositoryAt(address: string): KnownRepository | undefined;
  repositories(): readonly KnownRepository[];
  /** Inserts or replaces. Durable when it returns. */
  putRepository(repository: KnownRepository): void;
  /**
   * Enters a repository that the ledger does not know, or the address of one that has moved from `movedFrom`: what the ledger knows of its
   * main branches stays. Compares and writes in one step: of two processes on one data folder that enter copies at two addresses, one
   * gets `elsewhere`. In a cluster the step is that of one process: there the lease ensures that no two of them enter repositories at a time.
   * Durable when it returns, in a cluster when `flushed` resolves.
   */
  enterRepository(repository: KnownRepository, movedFrom?: string): EnteredRepository;

  /** Records the head of a main branch of a known repository; other processes read it at once, like a mark that need not be durable. */
  noteMain(id: string, branch: string, head: string): void;

  /** Returns the position of the last statement on a revision; undefined if none was seen. */
  mark(scope: StatementScope): Mark | undefined;
  /** The states of a repository that clients have been shown. Absent where no other process takes over, with a mirror of its own. */
  shownOf?(repository: string): ShownStates;
  /** The name of this process among those that show states; undefined for one that shows nothing. */
  readonly shownBy?: string | undefined;
  /** Begins a state that this process shows, with the digest of its refs; it is durable after `flushed`. Undefined for a process that shows nothing. */
  advanceShown?(repository: string, refs: string): ContainedStates | undefined;
  /** Digests of the last known statements whose marks have at most this order; for a file that replaces the ledger elsewhere. */
  statementsUpTo(order: number): readonly string[];
  /**
   * Raises marks, all or none. A mark never decreases: an entry whose sequence is below the current one changes nothing, and so does
   * one with the current sequence, except that it may set `proven`. With `durable` it is on disk when this returns; otherwise a
   * crash of the machine may lose it, which makes the mark lower but never wrong.
   */
  raise(entries: readonly NewMark[], options: { readonly durable: boolean }): void;
  /**
   * Joins what other processes have written about these scopes by now. Absent where `mark` returns it at once. A statement that was fetched is
   * announced after this: otherwise the ledger would look older than the repository.
   */
  joinLatest?(scopes: readonly StatementScope[]): Promise<void>;
  /** Joins all that other processes have written by now. Absent where every read has it. */
  refresh?(): Promise<void>;
  /** Returns the marks that any process raised after a version that an earlier call returned; 0 for the first call. */
  raisedSince(version: number): RaisedScopes;

  /**
   * Resolves when every change before the call is durable, or every one that concerns a repository; rejects if it cannot be written now. Absent where a change is durable when its
   * method returns. A ledger in a cluster cannot do that: there, a request whose changes must be durable is acknowledged after this.
   */
  flushed?(repository?: string): Promise<void>;

  /** Writes what is not yet on disk and releases the resources. */
  close(): void;
}

export interface TrustedKey {
  /** `SHA256:…`, as ssh-keygen prints it. */
  readonly fingerprint: string;
  /** One line as in `id_ed25519.pub`, without the comment. */
  readonly publicKey: string;
  readonly comment: string;
  /** `own`: this server signs, or signed, with it; `added`: an operator trusts it. */
  readonly origin: 'own' | 'added';
  /** RFC 3339. */
  readonly addedAt: string;
  readonly revocation?: Revocation;
}

export interface Revocation {
  /** RFC 3339; for display, never compared. */
  readonly at: string;
  /** Marks up to this order keep their validity. */
  readonly order: number;
  /** Commits of main branches at the time, see `headAmong`: publications on these lines keep their validity. */
  readonly heads: Readonly<Record<string, string>>;
  /** Digests of the statements that keep their validity, where there are no marks, as in an allowed-signers file. */
  readonly statements?: ReadonlySet<string>;
}

export interface KnownRepository {
  readonly id: string;
  /** Comparable form of the address. */
  readonly address: string;
  /** The last main commits that were accepted. */
  readonly mainHeads: MainHeads;
}

/** `elsewhere`: the ledger knows the repository at another address, and nothing was changed. */
export type EnteredRepository = 'new' | 'known' | 'elsewhere';

/**
 * The subject of a chain of statements. `package` is the full path in the repository, including the directory of the
 * repository.
 */
export interface StatementScope {
  readonly repository: string;
  readonly package: string;
  readonly workspace: string;
}

/** Scopes whose marks were raised after a version. */
export interface RaisedScopes {
  /** Pass it to the next call. */
  readonly version: number;
  /** Undefined if it is not known which ones: any mark may have changed. */
  readonly scopes: readonly StatementScope[] | undefined;
}

export interface Mark {
  readonly sequence: number;
  /** Digest of the statement's payload. */
  readonly digest: string;
  /** Position among all marks of this ledger; grows with every raise. */
  readonly order: number;
  /** False for a statement that existed when the repository was first seen: it may be older than the last one. */
  readonly proven: boolean;
}

/** Digest of the mark that a deleted draft leaves behind, of which there is no statement. */
export const DELETED = '';

/**
 * The scope of the remaining content of deleted publications on the main branch: the digest of the mark is the tree of the package.
 * Workspaces have no slash, so that no statement has this scope. `path` is the full path of the package.
 */
export function deletedContentScope(path: string): Omit<StatementScope, 'repository'> {
  return { package: path, workspace: 'deleted//content' };
}

export interface NewMark extends Omit<Mark, 'order'> {
  readonly scope: StatementScope;
}
