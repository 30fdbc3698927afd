import { SluiceError } from '../../foundation/sluice-error.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { IndexChange } from '../index/state/index-delta.ts';
import { runInSlices } from '../index/steps.ts';
import type { PackageContent } from '../model/content/content.ts';
import type { ComparedFiles } from '../model/diff/compared-files.ts';
import { DEFAULT_NAMESPACE, revisionName } from '../model/identity/identity.ts';
import { type PackageRevision, repositoryIdOf } from '../model/revision/package-revision.ts';
import { type MergedPackage, previewMergedPackage } from '../plan/create/merged-package.ts';
import type { RevisionChange } from '../plan/edit/change.ts';
import { type HistoryEntry, historyOf } from '../plan/records/history.ts';
import type { RevisionUpdate } from '../plan/update.ts';
import type { NewRevision } from '../upstream/revision-source.ts';
import { NO_UPSTREAMS, type UpstreamReader } from '../upstream/upstream-reader.ts';
import { ApprovalChecks } from './approval-checks.ts';
import { approveProposal } from './approve-by-merge.ts';
import { evaluateRevision, type RevisionEvaluation } from './evaluate-revision.ts';
import { differences, etagsOf } from './index-differences.ts';
import type { PackageRepository } from './package-repository.ts';
import { readAsUpstream } from './read-revision.ts';
import { notifyAll, RevisionAnnouncements, type RevisionListener } from './revision-announcements.ts';
import { matches, type RevisionFilter } from './revision-filter.ts';
import type { OpenPurpose, RevisionStoreOptions } from './revision-store-options.ts';
import { notOpenYet, ownName, removedMeanwhile, repositoryNotFound, revisionNotFound } from './store-errors.ts';
import { tracedCreate, tracedUpdate } from './traced-request.ts';
import { dependentsAmong, UpstreamReferences } from './upstream-references.ts';

/**
 * The package revisions of all registered repositories. Lists and gets answer from the index; writes are transactions of one
 * repository and are committed to Git when their promise resolves. With `dryRun` in their context they validate, return the result,
 * and change nothing.
 *
 * Repositories and revisions have names that are unique in their namespace. They are identified by their id, `<namespace>/<name>`; a
 * name alone suffices if it is unique, for callers with only one namespace.
 */
export class RevisionStore {
  readonly #repositories = new Map<string, PackageRepository>();
  readonly #address: UpstreamReader['address'];
  /** By the repository whose revisions name an upstream. */
  readonly #references = new Map<string, UpstreamReferences>();
  readonly #announcements = new RevisionAnnouncements();
  /** Repositories that were removed, until the removal of all their revisions was announced. */
  readonly #leaving = new Map<string, Promise<void>>();
  readonly #arrivals = new Set<(repository: string) => void>();
  readonly #departures = new Set<(repository: string) => void>();
  readonly #replacements = new Set<(repository: PackageRepository) => void>();
  readonly #promotions = new Set<(repository: string) => void>();
  readonly #isComing: (repository: string) => boolean;
  readonly #open: RevisionStoreOptions['open'];
  readonly #openAll: RevisionStoreOptions['openAll'];
  readonly #approvalChecks: ApprovalChecks;
  #closed = false;

  constructor({
    address = NO_UPSTREAMS.address,
    isComing = () => false,
    open,
    openAll,
    ...approval
  }: RevisionStoreOptions = {}) {
    this.#approvalChecks = new ApprovalChecks(approval);
    this.#address = address;
    this.#isComing = isComing;
    this.#open = open;
    this.#openAll = openAll;
  }

  /**
   * Adds an opened repository. Its revisions are announced to the listeners in parts, and each is found once it was announced; the
   * caller announces changes from here on. What a listener throws, this throws after all were notified, and the repository is removed
   * again. Throws Unavailable if another caller removes it meanwhile.
   */
  async add(repository: PackageRepository): Promise<void> {
    const { id: name } = repository;
    // Listeners of the repository before must not be notified of its end when they know this one.
    while (this.#leaving.has(name)) await Promise.allSettled([this.#leaving.get(name)]);
    if (this.#closed) throw removedMeanwhile(name);
    if (this.#repositories.has(name))
      throw new SluiceError('AlreadyExists', `repository ${ownName(name)} is open already`);
    this.#repositories.set(name, repository);
    const references = new UpstreamReferences(repository.index);
    this.#references.set(name, references);
    try {
      if (!(await this.#announcements.arrive(repository))) throw removedMeanwhile(name);
      void references.read();
      notifyAll(this.#arrivals, name);
    } catch (error) {
      if (this.#repositories.get(name) === repository) await Promise.allSettled([this.remove(name)]);
      throw error;
    }
    this.#announcements.wake(name);
  }

  /**
   * Puts a repository in the place of the open one of the same registration, whose writes have ended, and closes that one. Listeners are
   * notified of what differs between the two: no revision that both have is ever absent. `onPlaced` is called at the moment from which the
   * caller has to announce changes. Throws Unavailable if the open one was removed meanwhile.
   */
  async replace(before: PackageRepository, repository: PackageRepository, onPlaced: () => void): Promise<void> {
    const { id } = repository;
    await runInSlices(etagsOf(repository));
    while (this.#announcements.isArriving(id)) await this.#announcements.next(id, new AbortController().signal);
    if (this.#closed || this.#repositories.get(id) !== before) throw removedMeanwhile(id);
    const changes = differences(before, repository);
    this.#repositories.set(id, repository);
    this.#references.get(id)?.close();
    const references = new UpstreamReferences(repository.index);
    this.#references.set(id, references);
    onPlaced();
    try {
      notifyAll(this.#replacements, repository);
      if (changes.length > 0) this.#announcements.announce(id, changes);
      if (before.follows && !repository.follows) notifyAll(this.#promotions, id);
    } finally {
      void references.read();
      await before.close();
    }
  }

  /**
   * Removes a repository and closes it. Its data stays unchanged. Its revisions can no longer be found; resolves when the
   * listeners were notified of all of them, in parts.
   */
  remove(repositoryName: string): Promise<void> {
    const name = this.#idOf(repositoryName);
    const repository = this.#repositories.get(name);
    if (repository === undefined) return this.#leaving.get(name) ?? Promise.resolve();
    const leaving = this.#leave(repository).finally(() => this.#leaving.delete(name));
    this.#leaving.set(name, leaving);
    this.#announcements.wake(name);
    return leaving;
  }

  async #leave(repository: PackageRepository): Promise<void> {
    this.#repositories.delete(repository.id);
    this.#references.get(repository.id)?.close();
    this.#references.delete(repository.id);
    notifyAll(this.#departures, repository.id);
    const ends = await Promise.allSettled([repository.close(), this.#announcements.leave(repository)]);
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  }

  /**
   * Notifies the listeners of changes of one repository; passed to `PackageRepository.open` as `onChange`. Ignored for a repository that
   * is not in the store.
   */
  announce(changes: readonly IndexChange[]): void {
    const some = changes[0]?.after ?? changes[0]?.before;
    const repository = some === undefined ? '' : repositoryIdOf(some);
    if (!this.#repositories.has(repository)) return;
    for (const { before, after } of changes)
      this.#references.get(repository)?.note((after ?? before)?.name ?? '', after);
    this.#announcements.announce(repository, changes);
  }

  /** Calls the listener with every change from now on, in order, with one call for what changed together. */
  subscribe(listener: RevisionListener): () => void {
    return this.#announcements.subscribe(listener);
  }

  /** Calls the listener with every repository that is added from now on, once its revisions have been announced. */
  onArrival(listener: (repository: string) => void): void {
    this.#arrivals.add(listener);
  }

  /** Calls the listener with the id of every repository that is removed from now on, before the removal of its revisions is announced. */
  onDeparture(listener: (repository: string) => void): void {
    this.#departures.add(listener);
  }

  /** Calls the listener with every repository that takes the place of an open one, before the differences are announced. */
  onReplacement(listener: (repository: PackageRepository) => void): void {
    this.#replacements.add(listener);
  }

  /** Calls the listener with the id of every repository that is promoted from now on. */
  onPromotion(listener: (repository: string) => void): () => void {
    this.#promotions.add(listener);
    return () => this.#promotions.delete(listener);
  }

  /** Lets controllers act for a repository that followed until now. It stays open and its revisions do not change. */
  promote(id: string): void {
    const repository = this.repository(id);
    if (!repository.follows) return;
    repository.follows = false;
    notifyAll(this.#promotions, repository.id);
  }

  /**
   * Waits for a repository that was registered a moment ago, at most as long as the signal allows: a client that
   * registers one and then creates a package in it need not wait for it to open. Returns at once for all other
   * repositories.
   */
  async arrival(name: string, signal: AbortSignal): Promise<void> {
    const repository = this.#idOf(name);
    // One that is removed meanwhile may be opened again.
    while (!signal.aborted && this.#isAwaited(repository)) await this.#announcements.next(repository, signal);
  }

  /**
   * Returns the error for the id of a repository, or of a revision of it, that is not found while the repository is registered and not
   * open: then it is unknown what there is. Undefined otherwise.
   */
  openingError(id: string): SluiceError | undefined {
    // The name of a repository is a DNS label, as is that of a namespace.
    const name = id.split('.', 1)[0] ?? '';
    const repository = name.includes('/') ? name : `${DEFAULT_NAMESPACE}/${name}`;
    return this.#isAwaited(repository) ? notOpenYet(repository, 1) : undefined;
  }

  #isAwaited(repository: string): boolean {
    if (this.#announcements.isArriving(repository)) return true;
    return !this.#repositories.has(repository) && this.#isComing(repository);
  }

  /** Opens the repository of a request, by its id, if repositories are opened on demand; does nothing otherwise. */
  async reach(repository: string, purpose: OpenPurpose = 'use'): Promise<void> {
    if (this.#open !== undefined && !this.#repositories.has(repository)) await this.#open(repository, purpose);
  }

  /** Opens all repositories, for a request that is about those of any. */
  async reachAll(): Promise<void> {
    await this.#openAll?.();
  }

  /** Those of which every revision was announced. */
  repositories(): PackageRepository[] {
    return [...this.#repositories.values()].filter(({ id }) => !this.#announcements.isArriving(id));
  }

  /** One of `repositories()`, by its id; undefined if there is none. */
  findRepository(id: string): PackageRepository | undefined {
    return this.#announcements.isArriving(id) ? undefined : this.#repositories.get(id);
  }

  /** A repository that was added, and may still be arriving. */
  repository(name: string): PackageRepository {
    const id = this.#idOf(name);
    const repository = this.#repositories.get(id);
    if (repository !== undefined) return repository;
    // A request that creates a package has waited for it already.
    throw this.#isAwaited(id) ? notOpenYet(id) : repositoryNotFound(id);
  }

  /** The repository of a revision. */
  repositoryOf(revision: Pick<PackageRevision, 'key' | 'namespace'>): PackageRepository {
    return this.repository(repositoryIdOf(revision));
  }

  /** Revisions that match, by name. */
  list(filter: RevisionFilter = {}): PackageRevision[] {
    const found: PackageRevision[] = [];
    for (const repository of this.#candidates(filter)) {
      for (const row of this.#announcements.of(repository, filter.package)) if (matches(row, filter)) found.push(row);
    }
    return found.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  find(name: string): PackageRevision | undefined {
    // The name of a repository is a DNS label, as is that of a namespace.
    const repository = this.#idOf(name.split('.', 1)[0] ?? '');
    const own = name.slice(name.indexOf('/') + 1);
    const isAnnounced = this.#announcements.has(repository, own);
    return isAnnounced ? this.#repositories.get(repository)?.index.get(own) : undefined;
  }

  get(name: string): PackageRevision {
    const found = this.find(name);
    if (found !== undefined) return found;
    throw this.openingError(name) ?? revisionNotFound(name);
  }

  content(name: string): Promise<PackageContent> {
    const revision = this.get(name);
    return this.repositoryOf(revision).content(revision);
  }

  /** The files of a revision, without their contents. */
  files(name: string): Promise<ComparedFiles> {
    const revision = this.get(name);
    return this.repositoryOf(revision).files(revision);
  }

  /** Evaluates a revision as the kernel would: its gates with the verdicts that count for this content. */
  async evaluate(name: string): Promise<RevisionEvaluation> {
    await this.repositoryOf(this.get(name)).refreshPolicies();
    const revision = this.get(name);
    return evaluateRevision(this.repositoryOf(revision), revision);
  }

  /** Names of the revisions, in all repositories, whose Kptfile names this one as upstream. */
  dependentsOf(revision: PackageRevision): string[] {
    return dependentsAmong(this.#references.values(), revision, this.repositoryOf(revision).url);
  }

  create(repository: string, wanted: NewRevision, context: RequestContext): Promise<PackageRevision> {
    const target = this.repository(repository);
    // A name means a revision of the same namespace.
    const revision = async (name: string) => {
      const upstream = this.get(name.includes('/') ? name : `${target.namespace}/${name}`);
      return readAsUpstream(this.repositoryOf(upstream), upstream);
    };
    return tracedCreate(target, wanted, context, () =>
      target.writes.create(wanted, context, { address: this.#address, revision }),
    );
  }

  /** Changes a revision without a lifecycle step. A change without a difference creates no commit. */
  async change(name: string, change: RevisionChange, context: RequestContext): Promise<PackageRevision> {
    const revision = this.get(name);
    const repository = this.repositoryOf(revision);
    const write = () => repository.writes.update(revision.name, { change }, context);
    return (await tracedUpdate(repository, revision.name, 'edit', context, write)) ?? this.get(name);
  }

  /** Applies a change and a lifecycle step in one transaction; undefined if the revision is deleted afterwards. */
  async update(name: string, update: RevisionUpdate, context: RequestContext): Promise<PackageRevision | undefined> {
    const revision = this.get(name);
    const repository = this.repositoryOf(revision);
    return tracedUpdate(repository, revision.name, update.action ?? 'edit', context, async () => {
      if (update.action !== 'approve' || revision.lifecycle !== 'Proposed')
        return repository.writes.update(revision.name, update, context);
      const evaluate = () => this.evaluate(name);
      return this.#approvalChecks.run({ revision, update, evaluate }, context, (checked) =>
        approveProposal(repository, revision, checked, context, evaluate),
      );
    });
  }

  /**
   * Publishes a package that the Git host merged without a proposal in Sluice, at the commit of the merge; see `RevisionWrites.publishMerged`.
   * `evidence` is the address of the pull request.
   */
  async publishMerged(
    repositoryId: string,
    wanted: MergedPackage,
    evidence: string,
    context: RequestContext,
  ): Promise<PackageRevision | undefined> {
    const repository = this.repository(repositoryId);
    const known = repository.index.get(revisionName({ ...wanted, repository: repository.repository }));
    if (known !== undefined) return repository.writes.publishMerged(wanted, { evidence }, context);
    await repository.refreshPolicies();
    const revision = await previewMergedPackage(repository, wanted);
    return tracedUpdate(repository, revision.name, 'approve', context, async () => {
      const evaluate = () => evaluateRevision(repository, revision);
      const update = { action: 'approve', merged: wanted.merged, evidence } as const;
      return this.#approvalChecks.run({ revision, update, evaluate }, context, (checked) =>
        repository.writes.publishMerged(wanted, checked, context),
      );
    });
  }

  /** Returns the history of a revision, newest first, at most `limit` entries. */
  history(name: string, limit = 100): Promise<HistoryEntry[]> {
    const revision = this.get(name);
    return historyOf(this.repositoryOf(revision), revision, limit);
  }

  /** Closes all repositories. From here on no more revisions are announced, except the end of those whose repository was removed before. */
  async close(): Promise<void> {
    this.#closed = true;
    const repositories = [...this.#repositories.values()];
    for (const id of this.#announcements.abort()) this.#repositories.delete(id);
    await Promise.all([...repositories.map((repository) => repository.close()), ...this.#leaving.values()]);
    this.#repositories.clear();
  }

  /** The id that a name means: of the one repository that has it, else in the default namespace. Throws InvalidInput for several. */
  #idOf(name: string): string {
    if (name.includes('/')) return name;
    const found = [...this.#repositories.values()].filter(({ repository }) => repository === name);
    if (found.length > 1) {
      const namespaces = found.map(({ namespace }) => namespace).sort();
      throw new SluiceError(
        'InvalidInput',
        `several namespaces have a repository "${name}" (${namespaces.join(', ')}); name the namespace too`,
      );
    }
    return found[0]?.id ?? `${DEFAULT_NAMESPACE}/${name}`;
  }

  #candidates(filter: RevisionFilter): PackageRepository[] {
    if (filter.repository === undefined) return [...this.#repositories.values()];
    const { repository: wanted } = filter;
    return [...this.#repositories.values()].filter(({ id, repository }) => id === wanted || repository === wanted);
  }
}
