import { SluiceError } from '../foundation/sluice-error.ts';
import type { RequestContext } from '../resource/request-context.ts';
import type { PackageContent } from './content.ts';
import { evaluateGates, type Gate } from './gates.ts';
import { type HistoryEntry, historyOf } from './history.ts';
import type { IndexChange } from './index/revision-index.ts';
import type { Lifecycle } from './kernel/types.ts';
import type { PackageRepository } from './package-repository.ts';
import type { PackageRevision } from './package-revision.ts';
import type { EffectivePolicy } from './policy.ts';
import type { RevisionRecord } from './record.ts';
import { currentRecord } from './record-at-tip.ts';
import { comparableAddress } from './upstream-of.ts';
import type { RevisionChange } from './write/change.ts';
import type { NewRevision } from './write/revision-source.ts';
import { factsOf, type Transition } from './write/transition.ts';
import type { RevisionUpdate } from './write/update.ts';
import { NO_UPSTREAMS, readPackageFiles, type UpstreamReader, type UpstreamRevision } from './write/upstream-reader.ts';

export interface RevisionFilter {
  readonly repository?: string;
  readonly package?: string;
  readonly workspace?: string;
  readonly lifecycle?: Lifecycle;
}

/** Everything that gates, controllers and `why` judge a revision on, read at one point in time. */
export interface Judgement {
  readonly revision: PackageRevision;
  readonly content: PackageContent;
  readonly record: RevisionRecord;
  readonly policy: EffectivePolicy;
  readonly gates: readonly Gate[];
}

export type RevisionListener = (changes: readonly IndexChange[]) => void;

export interface RevisionStoreOptions {
  /** Reads packages of repositories that are not registered; without it, only registered ones are cloned from. */
  readonly address?: UpstreamReader['address'];
  /** True for a repository that is registered and will be opened without anybody asking for it. Default: none is. */
  readonly isComing?: (repository: string) => boolean;
}

/**
 * The package revisions of all registered repositories. Lists and gets answer from the index; writes are transactions of one
 * repository and have happened in Git when their promise resolves. With `dryRun` in their context they judge the same, return what
 * would be, and change nothing.
 */
export class RevisionStore {
  readonly #repositories = new Map<string, PackageRepository>();
  readonly #upstreams: UpstreamReader;
  readonly #listeners = new Set<RevisionListener>();
  readonly #arrivals = new Set<(repository: string) => void>();
  readonly #isComing: (repository: string) => boolean;
  readonly #awaited = new Map<string, Set<() => void>>();

  constructor({ address = NO_UPSTREAMS.address, isComing = () => false }: RevisionStoreOptions = {}) {
    this.#upstreams = { address, revision: (name) => this.#upstream(name) };
    this.#isComing = isComing;
  }

  /** Adds an opened repository; its revisions are announced to the listeners. */
  add(repository: PackageRepository): void {
    if (this.#repositories.has(repository.repository)) {
      throw new SluiceError('AlreadyExists', `repository ${repository.repository} is open already`);
    }
    this.#repositories.set(repository.repository, repository);
    for (const wake of this.#awaited.get(repository.repository) ?? []) wake();
    this.announce([...repository.index.all()].map((after) => ({ before: undefined, after })));
    for (const listener of this.#arrivals) listener(repository.repository);
  }

  /** Takes a repository out and closes it. Its data stay as they are. */
  async remove(name: string): Promise<void> {
    const repository = this.#repositories.get(name);
    if (repository === undefined) return;
    this.#repositories.delete(name);
    this.announce([...repository.index.all()].map((before) => ({ before, after: undefined })));
    await repository.close();
  }

  /** Passes changes of a repository on; given to `PackageRepository.open` as `onChange`. */
  announce(changes: readonly IndexChange[]): void {
    if (changes.length === 0) return;
    const errors: unknown[] = [];
    for (const listener of this.#listeners) {
      try {
        listener(changes);
      } catch (error) {
        errors.push(error);
      }
    }
    // What one of them cannot bear is its own fault, and the others have heard.
    if (errors.length > 0) throw errors[0];
  }

  /** Calls the listener with every change from now on, in order, one call for what changed together. */
  subscribe(listener: RevisionListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Calls the listener with every repository that is added from now on, once its revisions have been announced. */
  onArrival(listener: (repository: string) => void): void {
    this.#arrivals.add(listener);
  }

  /**
   * Waits for a repository that was registered a moment ago, at most as long as the signal allows: whoever registers one and then
   * makes a package in it should not have to know when it is open. Returns at once for all others.
   */
  async arrival(repository: string, signal: AbortSignal): Promise<void> {
    if (this.#repositories.has(repository) || !this.#isComing(repository) || signal.aborted) return;
    const waiting = this.#awaited.get(repository) ?? new Set();
    this.#awaited.set(repository, waiting);
    await new Promise<void>((resolve) => {
      const end = () => {
        waiting.delete(end);
        if (waiting.size === 0) this.#awaited.delete(repository);
        signal.removeEventListener('abort', end);
        resolve();
      };
      waiting.add(end);
      signal.addEventListener('abort', end);
    });
  }

  repositories(): PackageRepository[] {
    return [...this.#repositories.values()];
  }

  repository(name: string): PackageRepository {
    const repository = this.#repositories.get(name);
    if (repository === undefined) {
      throw new SluiceError('NotFound', `repository "${name}" is not registered or not ready; see "sluice repo get"`);
    }
    return repository;
  }

  /** Revisions that match, by name. */
  list(filter: RevisionFilter = {}): PackageRevision[] {
    const found: PackageRevision[] = [];
    for (const repository of this.#candidates(filter)) {
      const rows = filter.package === undefined ? repository.index.all() : repository.index.ofPackage(filter.package);
      for (const row of rows) if (matches(row, filter)) found.push(row);
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  find(name: string): PackageRevision | undefined {
    // The name of a repository is a DNS label.
    return this.#repositories.get(name.split('.', 1)[0] ?? '')?.index.get(name);
  }

  get(name: string): PackageRevision {
    const found = this.find(name);
    if (found === undefined) {
      throw new SluiceError('NotFound', `package revision "${name}" not found; "sluice rpkg get" lists what there is`);
    }
    return found;
  }

  content(name: string): Promise<PackageContent> {
    const revision = this.get(name);
    return this.repository(revision.key.repository).content(revision);
  }

  /** Judges a revision as the kernel would: its gates with the verdicts that hold at this content. */
  async judge(name: string): Promise<Judgement> {
    const revision = this.get(name);
    const repository = this.repository(revision.key.repository);
    const content = await repository.content(revision);
    const record = await currentRecord(repository, revision, content);
    const policy = repository.policyFor(revision);
    return { revision, content, record, policy, gates: evaluateGates(factsOf(revision, record, content), policy) };
  }

  /** Names of the revisions, in all repositories, whose Kptfile names this one as upstream. */
  dependentsOf(revision: PackageRevision): string[] {
    const address = comparableAddress(this.repository(revision.key.repository).url);
    const version = revision.ref.slice(revision.ref.lastIndexOf('/') + 1);
    const refs = new Set([version, `${revision.path}/${version}`, revision.commit]);
    const names: string[] = [];
    for (const repository of this.#repositories.values()) {
      for (const other of repository.index.all()) {
        const upstream = other.kptfile?.upstream?.git;
        if (upstream?.repo === undefined || comparableAddress(upstream.repo) !== address) continue;
        const directory = upstream.directory?.replace(/^\/+|\/+$/g, '');
        if (directory === revision.path && refs.has(upstream.ref ?? '') && other.name !== revision.name)
          names.push(other.name);
      }
    }
    return names.sort();
  }

  create(repository: string, wanted: NewRevision, context: RequestContext): Promise<PackageRevision> {
    return this.repository(repository).create(wanted, context, this.#upstreams);
  }

  change(name: string, change: RevisionChange, context: RequestContext): Promise<PackageRevision> {
    return this.#of(name).change(name, change, context);
  }

  transition(name: string, transition: Transition, context: RequestContext): Promise<PackageRevision | undefined> {
    return this.#of(name).transition(name, transition, context);
  }

  /** A change and a lifecycle step in one transaction; undefined if the revision is gone afterwards. */
  update(name: string, update: RevisionUpdate, context: RequestContext): Promise<PackageRevision | undefined> {
    return this.#of(name).update(name, update, context);
  }

  /** Who did what to a revision and why, newest first, at most `limit` entries. */
  history(name: string, limit = 100): Promise<HistoryEntry[]> {
    const revision = this.get(name);
    return historyOf(this.repository(revision.key.repository), revision, limit);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#repositories.values()].map((repository) => repository.close()));
    this.#repositories.clear();
  }

  async #upstream(name: string): Promise<UpstreamRevision> {
    const revision = this.get(name);
    const { git, url } = this.repository(revision.key.repository);
    const { commit, path, ref, tip } = revision;
    return {
      revision,
      location: { repo: url, directory: path, ref: ref.replace(/^refs\/(?:heads|tags)\//, ''), commit },
      files: await readPackageFiles(git, tip.tree ?? `${commit}:${path}`),
    };
  }

  #of(name: string): PackageRepository {
    return this.repository(this.get(name).key.repository);
  }

  #candidates(filter: RevisionFilter): PackageRepository[] {
    if (filter.repository === undefined) return this.repositories();
    const repository = this.#repositories.get(filter.repository);
    return repository === undefined ? [] : [repository];
  }
}

function matches(revision: PackageRevision, filter: RevisionFilter): boolean {
  return (
    (filter.workspace === undefined || revision.key.workspace === filter.workspace) &&
    (filter.lifecycle === undefined || revision.lifecycle === filter.lifecycle)
  );
}
