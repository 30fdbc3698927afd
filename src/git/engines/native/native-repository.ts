import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { isSluiceError } from '../../../foundation/sluice-error.ts';
import { ObservedFiles } from '../../disk/observed-files.ts';
import type {
  FetchOptions,
  GitCapabilities,
  GitRemote,
  GitRepository,
  MaintainOptions,
  MirrorRepair,
  Oid,
  RefUpdate,
  RemoteNote,
} from '../../git-repository.ts';
import { dropCommitGraph, writeCommitGraph } from '../../maintenance/commit-graph.ts';
import { dropGarbage } from '../../maintenance/garbage.ts';
import { isMaintenanceDisabled, packObjects, removeTemporaryFiles } from '../../maintenance/maintenance.ts';
import { packRefs } from '../../maintenance/pack-refs.ts';
import { repairMirror } from '../../maintenance/repair-mirror.ts';
import type { EngineOptions } from '../../process/engine-options.ts';
import { isHeld } from '../../refs/held-folders.ts';
import { RefFolders } from '../../refs/ref-folders.ts';
import { RefTransaction } from '../../refs/ref-transaction.ts';
import { GitTransport } from '../../remote/git/git-transport.ts';
import { Remotes } from '../../remote/remotes.ts';
import { RepositoryBase } from '../repository-base.ts';
import { CatFile } from './cat-file.ts';
import { NativeSource } from './native-source.ts';
import { writePackFile } from './pack-file.ts';
import { indexPack, streamPack } from './pack-process.ts';
import { UpdateRef } from './update-ref.ts';

/**
 * Local refs have two writers, because neither is fast for all transactions. `git update-ref` writes and syncs a file for each ref;
 * RefTransaction replaces packed-refs, which costs the same however many refs change, and grows with the refs of the repository.
 * Median milliseconds for a transaction of 1, 8 and 64 new refs, with durable writes:
 *
 * | refs in the repository | update-ref | RefTransaction |
 * |---|---|---|
 * | 500 | 4, 56, 170 | 6, 4, 10 |
 * | 30,000 | 7, 24, 202 | 44, 40, 21 |
 *
 * Most transactions change one to four refs. From this number of updates on, RefTransaction is faster in repositories of any size. In one with
 * few packed refs it takes as long as update-ref, without the start of a process (see NativeSource).
 */
const MIN_PACKED_UPDATES = 64;
/** Some 200 refs. */
const MAX_FEW_REFS_BYTES = 16 * 1024;

/** The engine over the system's git: long-lived processes for reading and for ref transactions, one process per remote call. */
export class NativeRepository extends RepositoryBase implements GitRepository {
  readonly engine = 'native';
  readonly capabilities: GitCapabilities;
  readonly #source: NativeSource;
  readonly #updateRef: UpdateRef;
  readonly #refFolders: RefFolders;
  readonly #refTransaction: RefTransaction;
  protected readonly remotes: Remotes;
  readonly #options: EngineOptions;
  readonly #observed: ObservedFiles;
  readonly #ending = new AbortController();
  #maintenance: Promise<void> | undefined;

  constructor(path: string, options: EngineOptions) {
    const { clock, timeouts } = options;
    const durable = options.durable ?? true;
    const kept = { gitDir: path, clock, timeout: timeouts.local, idleTimeout: timeouts.idle, durable };
    const catFile = new CatFile({ ...kept, quarantine: options.quarantine });
    const source = new NativeSource(path, catFile, options.quarantine !== undefined);
    const take = (pack: AsyncIterable<Uint8Array>, signal: AbortSignal) =>
      indexPack(path, pack, clock, signal, durable);
    super(path, source, options, (objects) => writePackFile(path, objects, durable));
    this.capabilities = { sharedRefs: true, fetch: true, atomicPush: true, durable, maintain: true };
    this.#options = options;
    this.#observed = new ObservedFiles(options.runningTime);
    this.#source = source;
    this.#updateRef = new UpdateRef(kept);
    this.#refFolders = new RefFolders(path);
    this.#refTransaction = new RefTransaction(this.refFiles, source, durable);
    const listRefs = (prefixes: readonly string[]) => this.listRefs(prefixes);
    const local = {
      withoutGit: false,
      listRefs,
      readObjects: (specifications: readonly string[]) => this.readObjects(specifications),
      statObjects: (specifications: readonly string[]) => this.statObjects(specifications),
      transaction: (updates: readonly RefUpdate[]) => this.transaction(updates),
      flushObjects: () => this.flushObjects(),
      indexPack: take,
      streamPack: (tips: readonly Oid[], known: readonly Oid[]) => streamPack(path, tips, known),
    };
    this.remotes = new Remotes(options, local, new GitTransport(path, options, listRefs));
  }

  protected async applyUpdates(updates: readonly RefUpdate[]): Promise<void> {
    if (this.#canPack(updates) && (await this.#pack(updates))) return;
    await this.#updateRef.run(updates);
    if (this.capabilities.durable) await this.#refFolders.sync(updates);
  }

  /** False for what only git does: refs with a log, and refs that it never packs. */
  #canPack(updates: readonly RefUpdate[]): boolean {
    // Elsewhere the locks of a process that is killed would stay for a while, where git removes its own.
    const isSmall = isHeld(this.path) && this.#hasFewRefs();
    const from = this.#options.packRefsFrom ?? (isSmall ? 1 : MIN_PACKED_UPDATES);
    return (
      updates.length >= from &&
      !updates.some(({ ref }) => /^refs\/(?:bisect|rewritten|worktree)\//.test(ref)) &&
      !existsSync(join(this.path, 'logs'))
    );
  }

  #hasFewRefs(): boolean {
    const file = statSync(join(this.path, 'packed-refs'), { throwIfNoEntry: false });
    return file === undefined || file.size <= MAX_FEW_REFS_BYTES;
  }

  /** False if a symbolic ref is among them. */
  async #pack(updates: readonly RefUpdate[]): Promise<boolean> {
    try {
      await this.#refTransaction.run(updates);
      return true;
    } catch (error) {
      if (isSluiceError(error, 'Unsupported')) return false;
      throw error;
    } finally {
      // It takes a new packed-refs for the one that it has read if size, second and inode are the same, and an inode is soon used again.
      this.#updateRef.renew();
    }
  }

  get remoteNote(): RemoteNote | undefined {
    return this.remotes.note;
  }

  async maintain(options: MaintainOptions = {}): Promise<void> {
    const signal = AbortSignal.any([this.#ending.signal, ...(options.signal === undefined ? [] : [options.signal])]);
    const run = this.#maintain({ ...options, signal });
    this.#maintenance = run.catch(() => undefined);
    await run;
  }

  async #maintain({ dropAfter, underPressure = false, signal }: MaintainOptions): Promise<void> {
    const { clock, timeouts } = this.#options;
    const { maintain: timeout, leftBehind: pause } = timeouts;
    if (dropAfter === undefined && (await isMaintenanceDisabled(this.path, clock, timeout))) return;
    await packObjects(this.path, clock, timeout, signal);
    await packRefs(this.refFiles, this.#source);
    await removeTemporaryFiles(this.path, clock, this.#observed, pause);
    if (dropAfter !== undefined)
      await dropGarbage({
        gitDir: this.path,
        observed: this.#observed,
        clock,
        timeout,
        signal,
        dropAfter,
        underPressure,
        pause,
      });
    await writeCommitGraph(this.path, clock, timeout, signal);
    // A long-lived process keeps packs open that were removed.
    this.#source.renew();
  }

  async repair(remote: GitRemote, options: FetchOptions): Promise<MirrorRepair> {
    const { clock, timeouts } = this.#options;
    const fetchInto = async (path: string) => {
      const fresh = new NativeRepository(path, this.#options);
      try {
        await fresh.fetch(remote, options);
      } finally {
        await fresh.close();
      }
    };
    const repaired = await repairMirror({ gitDir: this.path, clock, timeouts, signal: options.signal, fetchInto });
    await dropCommitGraph(this.path);
    this.#source.renew();
    this.#updateRef.renew();
    this.forgetDamage();
    return repaired;
  }

  async close(): Promise<void> {
    this.#ending.abort();
    await this.#maintenance;
    await this.finishWrites();
    this.#source.close();
    this.#updateRef.close();
    await this.remotes.close();
  }
}
