import type { GitObject, ObjectStat, Oid, Ref, RefUpdate } from '../../git-repository.ts';

/** The operations of the local repository that a transport needs. */
export interface LocalRepository {
  /** True if no git is available for large transfers; packs must hold the bases of their deltas then. */
  readonly withoutGit: boolean;
  listRefs(prefixes: readonly string[]): Promise<Ref[]>;
  readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]>;
  statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]>;
  transaction(updates: readonly RefUpdate[]): Promise<void>;
  /** Writes the objects that were staged so far to the disk. */
  flushObjects(): Promise<void>;
  /** Stores a pack while it arrives, completely or not at all. */
  indexPack(pack: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>;
  /** A pack of all objects from the tips down to the known ones, as a stream. */
  streamPack(tips: readonly Oid[], known: readonly Oid[]): AsyncIterable<Uint8Array>;
}
