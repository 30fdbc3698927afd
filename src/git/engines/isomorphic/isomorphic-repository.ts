import { SluiceError } from '../../../foundation/sluice-error.ts';
import type {
  GitCapabilities,
  GitRepository,
  MirrorRepair,
  PushOutcome,
  Ref,
  RefChange,
  RefUpdate,
} from '../../git-repository.ts';
import type { EngineOptions } from '../../process/engine-options.ts';
import { RefTransaction } from '../../refs/ref-transaction.ts';
import { RepositoryBase } from '../repository-base.ts';
import { IsomorphicSource } from './isomorphic-source.ts';

/**
 * The engine for machines without git: a local repository that one process uses. isomorphic-git reads objects; objects and refs are
 * written by our own code, because isomorphic-git writes both without locks and in place.
 */
export class IsomorphicRepository extends RepositoryBase implements GitRepository {
  readonly engine = 'isomorphic-git';
  readonly capabilities: GitCapabilities;
  readonly engineNote: string;
  readonly #source: IsomorphicSource;
  readonly #transactions: RefTransaction;

  constructor(path: string, options: EngineOptions, engineNote: string) {
    const source = new IsomorphicSource(path);
    super(path, source, options);
    const durable = options.durable ?? true;
    this.capabilities = { sharedRefs: false, fetch: false, atomicPush: false, durable, maintain: false };
    this.engineNote = engineNote;
    this.#source = source;
    this.#transactions = new RefTransaction(this.refFiles, source, durable);
  }

  protected applyUpdates(updates: readonly RefUpdate[]): Promise<void> {
    return this.#transactions.run(updates);
  }

  async fetch(): Promise<RefChange[]> {
    throw unsupported('fetch: it writes refs without locks and asks for every ref of the remote');
  }

  async probeRemote(): Promise<void> {
    throw unsupported('talk to a remote');
  }

  async listRemoteRefs(): Promise<Ref[]> {
    throw unsupported('list the refs of a remote');
  }

  async push(): Promise<void> {
    throw unsupported('push: it sends one ref at a time and cannot say which old value it expects');
  }

  async pushOutcome(): Promise<PushOutcome> {
    throw unsupported('list the refs of a remote');
  }

  async repair(): Promise<MirrorRepair> {
    throw unsupported('fetch');
  }

  async maintain(): Promise<void> {
    throw unsupported('pack a repository');
  }

  async close(): Promise<void> {
    await this.endWrites();
    this.#source.close();
  }
}

function unsupported(what: string): SluiceError {
  return new SluiceError(
    'Unsupported',
    `the isomorphic-git engine cannot ${what}. Install git 2.39 or later and put it in PATH`,
  );
}
