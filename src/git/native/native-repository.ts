import type {
  FetchOptions,
  GitCapabilities,
  GitRemote,
  GitRepository,
  Ref,
  RefChange,
  RefUpdate,
} from '../git-repository.ts';
import type { ObjectSource } from '../object-source.ts';
import { RepositoryBase } from '../repository-base.ts';
import { CatFile } from './cat-file.ts';
import type { NativeOptions } from './native-options.ts';
import { Remotes } from './remotes.ts';
import { UpdateRef } from './update-ref.ts';

/** The engine over the system's git: kept-open processes for reading and for ref transactions, one process per remote call. */
export class NativeRepository extends RepositoryBase implements GitRepository {
  readonly engine = 'native';
  readonly capabilities: GitCapabilities = {
    sharedRefs: true,
    fetch: true,
    atomicPush: true,
    durable: true,
    maintain: true,
  };
  readonly #catFile: CatFile;
  readonly #updateRef: UpdateRef;
  readonly #remotes: Remotes;

  constructor(path: string, options: NativeOptions) {
    const { clock, timeouts } = options;
    const kept = { gitDir: path, clock, timeout: timeouts.local, idleTimeout: timeouts.idle };
    const catFile = new CatFile(kept);
    const source: ObjectSource = {
      readObjects: (specifications) => catFile.contents(specifications),
      statObjects: (specifications) => catFile.info(specifications),
    };
    super(path, source, options.signer);
    this.#catFile = catFile;
    this.#updateRef = new UpdateRef(kept);
    this.#remotes = new Remotes(path, options, this);
  }

  protected applyUpdates(updates: readonly RefUpdate[]): Promise<void> {
    return this.#updateRef.run(updates);
  }

  fetch(remote: GitRemote, options: FetchOptions): Promise<RefChange[]> {
    return this.#remotes.fetch(remote, options);
  }

  listRemoteRefs(remote: GitRemote, prefixes: readonly string[] = [], signal?: AbortSignal): Promise<Ref[]> {
    return this.#remotes.list(remote, prefixes, signal);
  }

  push(remote: GitRemote, updates: readonly RefUpdate[], signal?: AbortSignal): Promise<void> {
    return this.#remotes.push(remote, updates, signal);
  }

  async maintain(): Promise<void> {}

  async close(): Promise<void> {
    this.#catFile.close();
    this.#updateRef.close();
  }
}
