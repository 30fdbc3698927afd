import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { GitCapabilities, GitRepository, MirrorRepair, Oid, RefUpdate, RemoteNote } from '../../git-repository.ts';
import { FileSource } from '../../objects/files/file-source.ts';
import { PackedObjects } from '../../objects/files/packed-objects.ts';
import type { EngineOptions } from '../../process/engine-options.ts';
import { RefTransaction } from '../../refs/ref-transaction.ts';
import { Remotes } from '../../remote/remotes.ts';
import { writePackFile } from '../native/pack-file.ts';
import { RepositoryBase } from '../repository-base.ts';
import { looseReader } from './read-loose.ts';
import { storePack } from './store-pack.ts';

/**
 * The engine for machines without git, for repositories of some 1,000 packages: on this machine, or behind HTTP(S). isomorphic-git only
 * reads loose objects. Objects, packs and refs are written by the code that both engines share, because isomorphic-git writes them without
 * locks and in place; remotes are reached by Sluice's own client, because isomorphic-git pushes one ref at a time without an expected value.
 */
export class IsomorphicRepository extends RepositoryBase implements GitRepository {
  readonly engine = 'isomorphic-git';
  readonly capabilities: GitCapabilities;
  readonly engineNote: string;
  readonly #packed: PackedObjects;
  readonly #transactions: RefTransaction;
  protected readonly remotes: Remotes;

  constructor(path: string, options: EngineOptions, engineNote: string) {
    const packed = new PackedObjects(path);
    const source = new FileSource(packed, looseReader(path));
    const durable = options.durable ?? true;
    super(path, source, options, (objects) => writePackFile(path, objects, durable));
    this.capabilities = { sharedRefs: false, fetch: true, atomicPush: true, durable, maintain: false };
    this.engineNote = engineNote;
    this.#packed = packed;
    this.#transactions = new RefTransaction(this.refFiles, source, durable);
    const local = {
      withoutGit: true,
      listRefs: (prefixes: readonly string[]) => this.listRefs(prefixes),
      readObjects: (specifications: readonly string[]) => this.readObjects(specifications),
      statObjects: (specifications: readonly string[]) => this.statObjects(specifications),
      transaction: (updates: readonly RefUpdate[]) => this.transaction(updates),
      flushObjects: () => this.flushObjects(),
      indexPack: (pack: AsyncIterable<Uint8Array>, signal: AbortSignal) =>
        storePack(pack, { gitDir: path, packed: this.#packed, durable, signal }),
      streamPack: (_tips: readonly Oid[], _known: readonly Oid[]): AsyncIterable<Uint8Array> => {
        throw needsGit('make a large pack');
      },
    };
    this.remotes = new Remotes(options, local, undefined);
  }

  protected applyUpdates(updates: readonly RefUpdate[]): Promise<void> {
    return this.#transactions.run(updates);
  }

  get remoteNote(): RemoteNote | undefined {
    const { note } = this.remotes;
    return note === undefined ? undefined : { ...note, message: `${note.message}\n${this.engineNote}` };
  }

  async repair(): Promise<MirrorRepair> {
    throw needsGit('repair a mirror');
  }

  async maintain(): Promise<void> {
    throw needsGit('pack a repository');
  }

  async close(): Promise<void> {
    await this.finishWrites();
    this.#packed.clear();
    await this.remotes.close();
  }
}

function needsGit(what: string): SluiceError {
  return new SluiceError(
    'Unsupported',
    `the isomorphic-git engine cannot ${what}. Install git 2.39 or later and put it in PATH`,
  );
}
