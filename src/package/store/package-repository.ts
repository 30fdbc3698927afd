import { handleReceived } from '../../foundation/concurrency/in-slices.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { isUnknownOutcome } from '../../git/errors.ts';
import type { GitRemote, GitRepository, MirrorRepair, Oid, RefUpdate } from '../../git/git-repository.ts';
import { newValue } from '../../git/refs/ref-updates.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { Origin } from '../index/facts/candidate.ts';
import { FactCache } from '../index/facts/fact-cache.ts';
import { loadFactCache, saveFactCache } from '../index/facts/fact-file.ts';
import { RevisionIndex } from '../index/revision-index.ts';
import type { IndexChange } from '../index/state/index-delta.ts';
import { type PackageContent, readPackage } from '../model/content/content.ts';
import { ContentCache } from '../model/content/content-cache.ts';
import { MAX_FILES } from '../model/content/package-size.ts';
import { type ComparedFiles, filesInGit } from '../model/diff/compared-files.ts';
import { revisionName } from '../model/identity/identity.ts';
import type { RepositoryLayout } from '../model/identity/layout.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import type { PackageRevision, PolicySubject } from '../model/revision/package-revision.ts';
import type { Action, MergedProposal } from '../model/revision/revision-state.ts';
import { type Adoptable, findAdoptable, planAdoption } from '../plan/adoption.ts';
import { planCreate } from '../plan/create/create.ts';
import { type DraftAtCommit, planDraftAt } from '../plan/create/draft-at-commit.ts';
import { type MergedPackage, planMergedPackage } from '../plan/create/merged-package.ts';
import { checkPlace } from '../plan/create/place.ts';
import type { Renderer } from '../plan/ports/renderer.ts';
import type { RepositoryContext, WritePlan } from '../plan/ports/repository-context.ts';
import { planTogether } from '../plan/shared-commit.ts';
import { mayMoveMain } from '../plan/transition.ts';
import { decideApproval, planUpdate, type RevisionUpdate } from '../plan/update.ts';
import type { SharedWrite } from '../transaction/pending-write.ts';
import { RefusalNotes } from '../transaction/refusal-notes.ts';
import type { ShownRefs } from '../transaction/shown-refs.ts';
import { type SyncScope, TrackedRefs } from '../transaction/tracked-refs.ts';
import { closingError, MAX_LOCAL_WRITES, MAX_WRITES, WriteQueue } from '../transaction/write-queue.ts';
import type { ShownStates } from '../trust/ledger/shown-states.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';
import type { NewRevision } from '../upstream/revision-source.ts';
import { NO_UPSTREAMS, type UpstreamReader } from '../upstream/upstream-reader.ts';
import type { BackgroundLimits } from './background-limits.ts';
import { deletedBranches } from './deleted-branches.ts';
import { ofRevision, treeOf } from './read-revision.ts';
import { recordedMerge } from './recorded-merge.ts';
import { RequestSlots } from './request-slots.ts';
import { SignatureBacklog } from './signature-backlog.ts';
import { transitions } from './transitions.ts';

export interface PackageRepositoryOptions {
  readonly name: string;
  readonly namespace: string;
  readonly deployment: boolean;
  /** True if another namespace registered the same packages first: controllers take no automatic steps here, so that each happens once. */
  readonly follows?: boolean;
  /** The address under which it is registered. */
  readonly url: string;
  readonly layout: RepositoryLayout;
  readonly git: GitRepository;
  readonly trust: RepositoryTrust;
  /** True if the repository was unknown before: its records may be older than the last ones. */
  readonly isFirstLook: boolean;
  /** Set if `git` is a mirror: writes go to the remote first and count only when it accepted them. */
  readonly remote?: GitRemote;
  /** What clients have been shown of the mirror. */
  readonly shown?: ShownRefs | undefined;
  /** The states that the mirror contains by a fetch for this opening. */
  readonly fetched?: ShownStates | undefined;
  /** File of the index cache; undefined keeps it in memory. */
  readonly cacheFile?: string;
  readonly clock: Clock;
  /** Shared by the repositories of a process. Default: no limits. */
  readonly background?: BackgroundLimits | undefined;
  readonly renderer?: Renderer | undefined;
  readonly identity?: { readonly name: string; readonly email: string };
  /** The policies of the repository's namespace for one of its revisions, merged. */
  policyFor(revision: PolicySubject, namespace: string): EffectivePolicy;
  /**
   * Resolves when `policyFor` reflects all writes that were acknowledged before; else rejects with Unavailable or Timeout, and nothing may be
   * decided. Absent if policies do not change.
   */
  refreshPolicies?(repository: { readonly namespace: string; readonly name: string }): Promise<void>;
  dependentsOf(revision: PackageRevision): string[];
  /** Notified of every revision that changed, in order. */
  onChange(changes: readonly IndexChange[]): void;
}

/** One registered repository: its index, and its writes as atomic transactions. */
export class PackageRepository implements RepositoryContext {
  readonly repository: string;
  readonly namespace: string;
  /** Key in all namespaces: `<namespace>/<repository>`. */
  readonly id: string;
  readonly deployment: boolean;
  /** See `PackageRepositoryOptions`; `RevisionStore.promote` ends it. */
  follows: boolean;
  /** When the Git host last refused a push to the main branch, in milliseconds of running time; see `approveProposal`. */
  mainRefusedAt: number | undefined;
  readonly url: string;
  readonly layout: RepositoryLayout;
  readonly git: GitRepository;
  readonly index: RevisionIndex;
  readonly clock: Clock;
  readonly trust: RepositoryTrust;
  readonly renderer: Renderer | undefined;
  readonly identity: { readonly name: string; readonly email: string };
  /** What the Git host refused or does not do. */
  readonly refusals: RefusalNotes;
  /** Reason why the index cache was not used, if it was not. */
  readonly note: string | undefined;
  readonly #options: PackageRepositoryOptions;
  readonly #refs: TrackedRefs;
  readonly #queue: WriteQueue;
  readonly #slots: RequestSlots;
  readonly #contents = new ContentCache();
  readonly #cache: FactCache;
  /** Number of reads when the cache file was written. */
  #savedReads = 0;
  #closed = false;
  readonly #signatures: SignatureBacklog;
  #emptyTree: Promise<Oid> | undefined;

  private constructor(options: PackageRepositoryOptions, cache: FactCache, note: string | undefined) {
    this.repository = options.name;
    this.namespace = options.namespace;
    this.id = `${options.namespace}/${options.name}`;
    this.deployment = options.deployment;
    this.follows = options.follows ?? false;
    this.url = options.url;
    this.layout = options.layout;
    this.git = options.git;
    this.clock = options.clock;
    this.trust = options.trust;
    this.renderer = options.renderer;
    this.identity = options.identity ?? { name: 'sluice', email: 'sluice@localhost' };
    this.note = note;
    this.#cache = cache;
    this.#options = options;
    const { name, namespace, git, remote, layout, trust, shown, isFirstLook, clock, background } = options;
    this.index = new RevisionIndex({ ...originOf(options), git, cache, trust, isFirstLook });
    this.refusals = new RefusalNotes({ index: this.index, mirror: remote === undefined ? undefined : git.path });
    this.#refs = new TrackedRefs({
      ...{ repository: name, namespace, git, remote, layout, index: this.index, trust, shown },
      onChange: (changes) => {
        if (this.#closed) return;
        // The pusher of a deleted revision is not the pusher of the same commit in a later push.
        this.trust.reports.supersede(this.id, deletedBranches(changes, this.layout));
        options.onChange(changes);
      },
    });
    this.#signatures = new SignatureBacklog(this.index, this.#refs, options.trust);
    const maxWrites = options.remote === undefined ? MAX_LOCAL_WRITES : MAX_WRITES;
    this.#slots = new RequestSlots({ namespace, clock, maxWrites, background });
    this.#queue = new WriteQueue(this.#refs, {
      maxWrites,
      notePush: (revision, refusal) => this.refusals.notePush(revision, refusal),
      planned: () => this.#slots.planned,
      acquirePlace: (signal) => this.#slots.acquireWrite(signal),
    });
  }

  /** Opens a repository and reads its index, from the cache as far as possible. */
  static async open(options: PackageRepositoryOptions): Promise<PackageRepository> {
    const { cacheFile } = options;
    const loaded = cacheFile === undefined ? undefined : await loadFactCache(cacheFile, originOf(options));
    const repository = new PackageRepository(options, loaded?.cache ?? new FactCache(), loaded?.note);
    await repository.refresh(options.fetched);
    return repository;
  }

  policyFor(revision: PolicySubject): EffectivePolicy {
    return this.#options.policyFor(revision, this.namespace);
  }

  /** To be called before a decision by `policyFor`; see `PackageRepositoryOptions`. */
  async refreshPolicies(): Promise<void> {
    await this.#options.refreshPolicies?.({ namespace: this.namespace, name: this.repository });
  }

  dependentsOf(revision: PackageRevision): string[] {
    return this.#options.dependentsOf(revision);
  }

  emptyTree(): Promise<Oid> {
    this.#emptyTree ??= this.git.editTree(undefined, new Map()).catch((error: unknown) => {
      this.#emptyTree = undefined;
      throw error;
    });
    return this.#emptyTree;
  }

  /** The package of a revision, read once for each version of it. */
  content(revision: PackageRevision): Promise<PackageContent> {
    const tree = treeOf(revision);
    return this.#contents.get(tree, () => ofRevision(revision, readPackage(this.git, tree, revision.kptfile)));
  }

  /** The files of a revision, for a comparison that reads only those that differ. */
  async files(revision: PackageRevision): Promise<ComparedFiles> {
    const { files, read } = await ofRevision(revision, filesInGit(this.git, treeOf(revision), MAX_FILES));
    return { files, read: (ids) => ofRevision(revision, read(ids)) };
  }

  /** Reads the refs of this repository (of the mirror, if it is one) and updates the index; see `TrackedRefs.refresh`. Returns what changed. */
  async refresh(fetched?: ShownStates): Promise<IndexChange[]> {
    this.trust.reports.retry();
    const changes = [...(await this.#refs.refresh(fetched)), ...(await this.#signatures.followKeys())];
    this.#signatures.continue();
    return changes;
  }

  /**
   * Brings the mirror up to date with the remote, then the index. Without a remote it only refreshes. `branches` reads the many
   * tags only where branches changed; see `branchesFirst` for what that can miss until the next sync of everything.
   */
  async sync(signal?: AbortSignal, scope: SyncScope = 'everything'): Promise<IndexChange[]> {
    this.trust.reports.retry();
    const again = this.trust.followId() ? await this.#refs.reassess() : [];
    const changes = [...again, ...(await this.#refs.sync(scope, signal)), ...(await this.#signatures.followKeys())];
    this.#signatures.continue();
    return changes;
  }

  /** True while signatures are checked in the background, which may change revisions. */
  get isChecking(): boolean {
    return this.#signatures.isChecking;
  }

  /** Resolves when all signatures were checked; for code that cannot handle `Unverified`. */
  checked(): Promise<void> {
    return this.#signatures.checked;
  }

  /** True if this is a copy of a remote repository, which can be deleted without a loss. */
  get isMirror(): boolean {
    return this.#options.remote !== undefined;
  }

  /** Repairs a damaged mirror; see `GitRepository.repair`. Writes wait meanwhile. */
  repair(signal?: AbortSignal): Promise<MirrorRepair> {
    const { remote } = this.#options;
    if (remote === undefined)
      throw new SluiceError('Unsupported', `${this.repository} has no remote to repair it from`);
    return this.#refs.repair(remote, signal);
  }

  /** Returns refs without a trusted statement, which an operator can adopt; see `findAdoptable`. */
  async adoptable(only?: string): Promise<Adoptable> {
    await this.checked();
    return findAdoptable(this, only);
  }

  /** Adopts the result of `adoptable`: one signed statement, and old records as signed ones, in one transaction. */
  async adopt(adoptable: Adoptable, context: RequestContext): Promise<void> {
    await this.refreshPolicies();
    this.trust.expectOwnKey();
    await this.trust.expectId();
    const refs = this.#refs;
    await refs.mutex.run(async () => {
      const { updates, marks } = await planAdoption(this, adoptable, context);
      if (updates.length === 0) return;
      await refs.commit(updates);
      // The previous content of the branch stays in band, also for an index that is rebuilt.
      const kept = adoptable.main === undefined ? [] : this.index.marksOfKept();
      refs.raiseMarks([...marks, ...kept], true);
      if (adoptable.main !== undefined) this.trust.noteMain(adoptable.main.present);
      await refs.publish(updates);
      await refs.recorded();
    });
  }

  /** Creates a draft. `upstreams` provides its source if that is in another repository. */
  async create(
    wanted: NewRevision,
    context: RequestContext,
    upstreams: UpstreamReader = NO_UPSTREAMS,
  ): Promise<PackageRevision> {
    const { package: packageName, workspace, source } = wanted;
    const name = revisionName({ repository: this.repository, package: packageName, workspace });
    const slot = await this.#slots.occupy(name, context, { plans: true });
    try {
      const made = await this.#slots.requests.run(async () => {
        await this.trust.expectId();
        await this.refreshPolicies();
        const plan = await slot.plan(() => planCreate(this, wanted, upstreams, context));
        if (context.dryRun === true) return this.#foresee(plan);
        return this.#queue.add({
          ...{ package: packageName, urgent: false, plan },
          wholePackage: source.type === 'init' || source.type === 'clone',
          // Another package may have been created meanwhile.
          check: () => checkPlace(this, wanted),
        });
      });
      if (made === undefined) throw new SluiceError('Internal', `${name} was created but cannot be found`);
      return made;
    } catch (error) {
      throw this.#failureOf(error);
    } finally {
      slot.free();
    }
  }

  /** Makes a commit of a user the tip of a new draft, as a push of its branch would. */
  async createAt(wanted: DraftAtCommit, context: RequestContext): Promise<PackageRevision | undefined> {
    const name = revisionName({ repository: this.repository, package: wanted.package, workspace: wanted.workspace });
    const slot = await this.#slots.occupy(name, context, { plans: true });
    try {
      return await this.#slots.requests.run(async () =>
        this.#queue.add({
          ...{ package: wanted.package, urgent: false, wholePackage: true },
          plan: await slot.plan(() => planDraftAt(this, wanted)),
          // Another package may have been created meanwhile.
          check: () => checkPlace(this, { ...wanted, source: { type: 'copy', source: '' } }),
        }),
      );
    } catch (error) {
      throw this.#failureOf(error);
    } finally {
      slot.free();
    }
  }

  /** The head of a branch that is no revision, fetched; undefined if the remote has none. */
  readBranch(branch: string, signal: AbortSignal): Promise<Oid | undefined> {
    return this.#refs.readBranch(branch, signal);
  }

  /** Changes a branch that is no revision. Rejects with Conflict, with nothing changed, if its head is not the expected one. */
  async writeBranch(update: RefUpdate, signal: AbortSignal): Promise<void> {
    await this.#refs.writeBranch(update, signal);
  }

  /**
   * Fetches the head of a pull request, also of a fork, under a name that is no revision, and returns its commit; undefined if the remote has none.
   * `forgetPull` removes it.
   */
  fetchPull(number: number, signal: AbortSignal): Promise<Oid | undefined> {
    return this.#refs.fetchPull(number, signal);
  }

  async forgetPull(number: number): Promise<void> {
    await this.#refs.forgetPull(number);
  }

  /**
   * Applies a change, a lifecycle step, or both in one transaction; undefined if the revision is deleted afterwards. A change without
   * a difference creates no commit.
   */
  async update(name: string, update: RevisionUpdate, context: RequestContext): Promise<PackageRevision | undefined> {
    const { action } = update;
    const isDryRun = context.dryRun === true;
    const slot = await this.#slots.occupy(name, context, { plans: action === undefined });
    try {
      // A write that changes nothing needs no I/O: without this it would end before a request that arrived with it is read.
      if (context.face === 'api') await handleReceived();
      await this.#expectTrust(name);
      const plan = (mainHead?: Oid) => planUpdate(this, name, update, context, mainHead);
      const wholePackage = mayMoveMain(action);
      const { key } = this.#expect(name);
      const write = { package: key.package, urgent: action !== undefined, wholePackage, signal: context.signal };
      const commit = async (planned: WritePlan | undefined) => {
        if (planned === undefined) {
          // What an earlier attempt wrote must be recorded before it is acknowledged.
          if (!isDryRun) await this.#refs.recorded();
          return this.#expect(name);
        }
        return isDryRun ? this.#foresee(planned) : this.#queue.add({ ...write, plan: planned });
      };
      let after: PackageRevision | undefined;
      if (wholePackage && !isDryRun) {
        const shared = this.#sharedApproval(name, update, context);
        // All of the group are in the queue before it sends the first.
        if (shared !== undefined) await context.together?.arrive();
        after = await this.#queue.add({ ...write, plan, shared });
      } else if (write.urgent) after = await commit(await plan());
      else after = await this.#slots.requests.run(async () => commit(await slot.plan(plan)));
      if (action !== undefined && !isDryRun) transitions.publish({ action, result: 'allowed' });
      return after;
    } catch (error) {
      return await this.#mergeRecordedBefore(error, name, update.merged, isDryRun ? undefined : action);
    } finally {
      slot.free();
    }
  }

  /** How an approval shares a commit with others that its caller requests at the same time; undefined for one that does not. */
  #sharedApproval(name: string, update: RevisionUpdate, context: RequestContext): SharedWrite | undefined {
    const { action, change, merged } = update;
    const group = context.together?.group;
    if (group === undefined || action !== 'approve' || change !== undefined || merged !== undefined) return undefined;
    return { group, decide: (head) => decideApproval(this, name, update, context, head), plan: planTogether };
  }

  /**
   * Publishes a package at the commit to which the Git host merged the pull request of a user, in one transaction, unless that was done before.
   * Throws TransitionRefusedError if the kernel refuses.
   */
  async publishMerged(
    wanted: MergedPackage,
    how: Pick<RevisionUpdate, 'closedNow' | 'evidence'>,
    context: RequestContext,
  ): Promise<PackageRevision | undefined> {
    const name = revisionName({ repository: this.repository, package: wanted.package, workspace: wanted.workspace });
    const slot = await this.#slots.occupy(name, context, { plans: false });
    try {
      await this.#signatures.followKeys();
      await this.trust.expectId();
      await this.refreshPolicies();
      const plan = (mainHead?: Oid) => planMergedPackage(this, wanted, how, context, mainHead);
      const { signal } = context;
      const after = await this.#queue.add({ package: wanted.package, urgent: true, wholePackage: true, signal, plan });
      transitions.publish({ action: 'approve', result: 'allowed' });
      return after;
    } catch (error) {
      return await this.#mergeRecordedBefore(error, name, wanted.merged, 'approve');
    } finally {
      slot.free();
    }
  }

  /** The publication of a merge if an earlier request or another process has recorded it, so that this one failed; else throws the error. */
  async #mergeRecordedBefore(
    error: unknown,
    name: string,
    merged: MergedProposal | undefined,
    action: Action | undefined,
  ): Promise<PackageRevision> {
    const recorded = await recordedMerge(this.index.get(name), merged, this.trust);
    if (recorded !== undefined) {
      await this.#refs.recorded();
      return recorded;
    }
    if (action !== undefined && isSluiceError(error, 'Refused')) transitions.publish({ action, result: 'refused' });
    throw this.#failureOf(error);
  }

  /**
   * Statements contain the id of the repository, so it needs one first. And no write may be planned on a record that does not
   * count only because its signature was not checked yet.
   */
  async #expectTrust(name: string): Promise<void> {
    await this.trust.expectId();
    if (this.index.get(name)?.recordDistrust?.reason === 'Unverified') await this.checked();
  }

  async current(name: string): Promise<PackageRevision> {
    // No decision may use a statement whose key was revoked, even before the next sync.
    await this.#signatures.followKeys();
    // Nor by a policy that the caller has replaced before this request.
    await this.refreshPolicies();
    return this.#expect(name);
  }

  async preview({ updates, name }: WritePlan): Promise<PackageRevision | undefined> {
    const changed = await this.#refs.preview(updates);
    const own = changed.find(({ before, after }) => (after ?? before)?.name === name);
    return own === undefined ? this.index.get(name) : own.after;
  }

  /** The result of a dry run, whose commits will not be written. */
  async #foresee(plan: WritePlan): Promise<PackageRevision | undefined> {
    try {
      return await this.preview(plan);
    } finally {
      this.index.forgetOwn(plan.updates.flatMap((update) => newValue(update) ?? []));
    }
  }

  /** Writes the index cache; what is no longer referenced is dropped from it. */
  async saveCache(): Promise<void> {
    const [{ reads }, { cacheFile }] = [this.#cache, this.#options];
    if (cacheFile === undefined || reads === this.#savedReads) return;
    await saveFactCache(cacheFile, await this.index.liveFacts(), originOf(this.#options));
    this.#savedReads = reads;
  }

  /** Takes no more writes, and resolves when those that are under way have ended. Packages can still be read, and changes are announced. */
  async endWrites(): Promise<void> {
    await Promise.all([this.#queue.drain(), this.#signatures.close()]);
  }

  /** Closes it. From here on listeners are not notified, also not of changes that are under way. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.#queue.close(this.clock), this.#signatures.close()]);
    try {
      await this.saveCache();
    } finally {
      await this.git.close();
    }
  }

  #expect(name: string): PackageRevision {
    const revision = this.index.get(name);
    if (revision === undefined) throw new SluiceError('NotFound', `package revision "${name}" not found`);
    return revision;
  }

  /** The error of a request: whatever hinders one while the repository is being closed, the caller learns that it is closed. */
  #failureOf(error: unknown): unknown {
    return this.#closed && !isUnknownOutcome(error) ? closingError() : error;
  }
}

function originOf({ name, namespace, layout, trust }: PackageRepositoryOptions): Origin {
  return { repository: name, namespace, layout, repositoryId: trust.repository };
}
