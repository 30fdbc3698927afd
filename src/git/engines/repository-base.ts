import { join } from 'node:path';
import { Mutex } from '../../foundation/concurrency/mutex.ts';
import { retryConflicts } from '../../foundation/concurrency/retry-conflicts.ts';
import type { SluiceError } from '../../foundation/sluice-error.ts';
import { diskUse } from '../disk/disk-use.ts';
import { DamageError, RefConflictError } from '../errors.ts';
import type {
  Commit,
  DiskUse,
  FetchOptions,
  FileEntry,
  GitObject,
  GitRemote,
  NewCommit,
  NewTag,
  ObjectSigner,
  ObjectStat,
  ObjectType,
  Oid,
  PushOutcome,
  Ref,
  RefChange,
  RefUpdate,
  TreeChange,
  TreeEdit,
  TreeEntry,
} from '../git-repository.ts';
import { embedSignature, encodeCommit } from '../objects/commit-codec.ts';
import { LooseObjectWriter } from '../objects/loose-object-writer.ts';
import { ObjectAccess } from '../objects/object-access.ts';
import { hashObject } from '../objects/object-id.ts';
import type { ObjectSource } from '../objects/object-source.ts';
import { ObjectStore, type WritePack } from '../objects/object-store.ts';
import { StagedObjects } from '../objects/staged-objects.ts';
import { StagedSource } from '../objects/staged-source.ts';
import { appendSignature, encodeTag } from '../objects/tag-codec.ts';
import { applyTreeEdits } from '../objects/tree-editor.ts';
import type { EngineOptions } from '../process/engine-options.ts';
import { gitOperation } from '../process/git-operations.ts';
import { checkRefName, checkRefPrefix } from '../ref-name.ts';
import { RefFiles } from '../refs/ref-files.ts';
import { checkRefUpdates } from '../refs/ref-updates.ts';
import { checkRefspecs } from '../refs/refspec.ts';
import { type ChangedRefs, StaleLocks } from '../refs/stale-locks.ts';
import { allRefspecs, type Remotes } from '../remote/remotes.ts';

/**
 * The common part of both engines: reading through an ObjectSource, writing loose objects, reading ref files, checking
 * updates.
 */
export abstract class RepositoryBase {
  protected abstract readonly remotes: Remotes;
  readonly path: string;
  protected readonly refFiles: RefFiles;
  readonly #source: ObjectSource;
  readonly #objects: ObjectAccess;
  readonly #store: ObjectStore;
  readonly #signer: ObjectSigner | undefined;
  readonly #expectMayPush: (() => void) | undefined;
  readonly #staleLocks: StaleLocks;
  #damage: DamageError | undefined;
  /** Listings and transactions take turns, so that a listing never sees half of a transaction of this process. */
  readonly #refQueue = new Mutex();

  constructor(path: string, source: ObjectSource, options: EngineOptions, writePack?: WritePack) {
    this.#expectMayPush = options.network.expectMayPush;
    this.path = path;
    this.refFiles = new RefFiles(path);
    const writer = new LooseObjectWriter(path, options.durable);
    const stage = new StagedObjects(options.clock);
    this.#source = new StagedSource(stage, source);
    this.#objects = new ObjectAccess(this.#source, async (oid) => writer.has(oid));
    this.#store = new ObjectStore(stage, writer, writePack);
    this.#signer = options.signer;
    this.#staleLocks = new StaleLocks(path, options.timeouts.staleLock);
  }

  /** Applies checked updates, all or none, durably. Objects are on disk. */
  protected abstract applyUpdates(updates: readonly RefUpdate[]): Promise<void>;

  get signs(): boolean {
    return this.#signer !== undefined;
  }

  async listRefs(prefixes: readonly string[] = []): Promise<Ref[]> {
    for (const prefix of prefixes) checkRefPrefix(prefix);
    return this.#noting(this.#refQueue.run(() => this.refFiles.list(prefixes)));
  }

  get damage(): SluiceError | undefined {
    return this.#damage;
  }

  protected forgetDamage(): void {
    this.#damage = undefined;
  }

  /** Notes damage that a read found. */
  async #noting<Result>(work: Promise<Result>): Promise<Result> {
    try {
      return await work;
    } catch (error) {
      if (error instanceof DamageError) this.#damage = error;
      throw error;
    }
  }

  expectObject(oid: Oid): Promise<void> {
    return this.#noting(this.#objects.expectObject(oid));
  }

  async resolveRef(name: string): Promise<Oid | undefined> {
    return this.refFiles.resolve(checkRefName(name));
  }

  readObjects(specifications: readonly string[]): Promise<(GitObject | undefined)[]> {
    return this.#noting(this.#objects.readObjects(specifications));
  }

  statObjects(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]> {
    return this.#noting(this.#objects.statObjects(specifications));
  }

  readCommit(oid: Oid): Promise<Commit> {
    return this.#noting(this.#objects.readCommit(oid));
  }

  readTree(specification: string): Promise<TreeEntry[] | undefined> {
    return this.#noting(this.#objects.readTree(specification));
  }

  listFiles(specification: string, limit?: number): Promise<FileEntry[]> {
    return this.#noting(this.#objects.listFiles(specification, limit));
  }

  diffTrees(before: Oid | undefined, after: Oid | undefined): Promise<TreeChange[]> {
    return this.#noting(this.#objects.diffTrees(before, after));
  }

  writeBlob(data: Uint8Array): Promise<Oid> {
    return this.#write('blob', data);
  }

  async editTree(base: Oid | undefined, edits: ReadonlyMap<string, TreeEdit>): Promise<Oid> {
    const { root, objects } = await applyTreeEdits(this.#source, base, edits);
    await this.#store.add(objects);
    return root;
  }

  async writeCommit(commit: NewCommit): Promise<Oid> {
    const payload = encodeCommit(commit);
    const data = this.#signer === undefined ? payload : embedSignature(payload, await this.#signer(payload));
    return this.#write('commit', data);
  }

  async writeTag(tag: NewTag): Promise<Oid> {
    const payload = encodeTag(tag);
    const data = this.#signer === undefined ? payload : appendSignature(payload, await this.#signer(payload));
    return this.#write('tag', data);
  }

  async transaction(updates: readonly RefUpdate[]): Promise<void> {
    // Both begin at once, beside the refs of an earlier transaction.
    const ready = Promise.all([checkRefUpdates(updates), this.#store.flush()]);
    ready.catch(() => {
      // Thrown below, when it is this transaction's turn.
    });
    await this.#refQueue.run(async () => {
      // The objects are on disk before a ref names them, and the refs before the caller gets the result.
      await ready;
      if (updates.length === 0) return;
      const refs = updates.map(({ ref }) => ref);
      await gitOperation('transaction', () => this.retryAfterStaleLock(refs, () => this.applyUpdates(updates)));
    });
  }

  /** It changes nothing else than another fetch of the mirror, by which it may be overtaken: then it is repeated. */
  fetch(remote: GitRemote, options: FetchOptions): Promise<RefChange[]> {
    const isChanged = (ref: string) => checkRefspecs(allRefspecs(options)).covers(ref);
    const fetch = () => this.retryAfterStaleLock(isChanged, () => this.remotes.fetch(remote, options));
    return gitOperation('fetch', () => retryConflicts(fetch, { signal: options.signal, isConflict: isOvertaken }));
  }

  listRemoteRefs(remote: GitRemote, prefixes: readonly string[] = [], signal?: AbortSignal): Promise<Ref[]> {
    return gitOperation('list', () => this.remotes.list(remote, prefixes, signal));
  }

  push(remote: GitRemote, updates: readonly RefUpdate[], signal?: AbortSignal): Promise<void> {
    return gitOperation('push', async () => {
      this.#expectMayPush?.();
      await this.remotes.push(remote, updates, signal);
    });
  }

  pushOutcome(remote: GitRemote, updates: readonly RefUpdate[], signal?: AbortSignal): Promise<PushOutcome> {
    return gitOperation('list', () => this.remotes.pushOutcome(remote, updates, signal));
  }

  probeRemote(remote: GitRemote, signal?: AbortSignal): Promise<void> {
    return gitOperation('list', () => this.remotes.probe(remote, signal));
  }

  diskUse(): Promise<DiskUse> {
    return diskUse(this.path);
  }

  /** Writes the objects that were staged so far to the disk. */
  protected flushObjects(): Promise<void> {
    return this.#store.flush();
  }

  /** Waits for the transactions that were started, and drops the objects that none of them needed. */
  protected async finishWrites(): Promise<void> {
    await this.#refQueue.run(async () => {});
    await this.#store.close();
  }

  /** Retries once if the lock of a killed writer blocked the action. */
  protected async retryAfterStaleLock<T>(refs: ChangedRefs, action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (error) {
      if (!(error instanceof RefConflictError) || error.details?.kind !== 'locked') throw error;
      const { ref } = error.details;
      if (!(await this.#staleLocks.release(ref === undefined || typeof refs === 'function' ? refs : [ref, ...refs]))) {
        if (ref === undefined) throw error;
        const next = `if that does not help and no Git program works there, remove ${join(this.path, ref)}.lock`;
        // A fetch has that of its transaction.
        if (error.message.endsWith(next)) throw error;
        throw new RefConflictError(error.details, `${error.message}; ${next}`, error);
      }
      return await action();
    }
  }

  async #write(type: ObjectType, data: Uint8Array): Promise<Oid> {
    const oid = hashObject(type, data);
    await this.#store.add([{ oid, type, data }]);
    return oid;
  }
}

/** True if another writer changed or locked a local ref. */
function isOvertaken(error: unknown): boolean {
  const { ref, kind } = (error instanceof RefConflictError ? error.details : undefined) ?? {};
  return ref !== undefined && (kind === 'locked' || kind === 'moved');
}
