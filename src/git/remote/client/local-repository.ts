import type { GitObject, ObjectStat, Oid, Ref, RefUpdate } from '../../git-repository.ts';

/** What a transport needs of the repository here. */
export interface LocalRepository {
  /** There is no git that large jobs can be left to, and packs must hold the bases of their deltas. */
  readonly withoutGit: boolean;
  listRefs(prefixes: readonly string[]): Promise<Ref[]>;
  readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]>;
  statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]>;
  transaction(updates: readonly RefUpdate[]): Promise<void>;
  /** Brings the objects that were written so far to the disk. */
  flushObjects(): Promise<void>;
  /** Takes a pack in while it arrives, all or nothing. */
  indexPack(pack: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<void>;
  /** A pack of all from some objects down to others, piece by piece. */
  streamPack(tips: readonly Oid[], known: readonly Oid[]): AsyncIterable<Uint8Array>;
}
