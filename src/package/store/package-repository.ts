import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { GitRemote, GitRepository, MirrorRepair, Oid } from '../../git/git-repository.ts';
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
import type { RepositoryLayout } from '../model/identity/layout.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import type { PackageRevision, PolicySubject } from '../model/revision/package-revision.ts';
import { type Adoptable, findAdoptable, planAdoption } from '../plan/adoption.ts';
import type { Renderer } from '../plan/ports/renderer.ts';
import type { RepositoryContext, WritePlan } from '../plan/ports/repository-context.ts';
import { ComparedForeignFiles } from '../plan/records/compared-foreign-files.ts';
import { RefusalNotes } from '../transaction/refusal-notes.ts';
import type { ShownRefs } from '../transaction/shown-refs.ts';
import { type SyncScope, TrackedRefs } from '../transaction/tracked-refs.ts';
import { UntrackedRefs } from '../transaction/untracked-refs.ts';
import { MAX_LOCAL_WRITES, MAX_WRITES } from '../transaction/write-queue.ts';
import type { ShownStates } from '../trust/ledger/shown-states.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';
import { deletedBranches } from './deleted-branches.ts';
import type { BackgroundLimits } from './limits/background-limits.ts';
import { expectRevision, ofRevision, treeOf } from './read-revision.ts';
import { RevisionWrites } from './revision-writes.ts';
import { SignatureBacklog } from './signature-backlog.ts';

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
  readonly foreign: ComparedForeignFiles;
  readonly clock: Clock;
  readonly trust: RepositoryTrust;
  readonly renderer: Renderer | undefined;
  readonly identity: { readonly name: string; readonly email: string };
  /** What the Git host refused or does not do. */
  readonly refusals: RefusalNotes;
  /** What writes its revisions. */
  readonly writes: RevisionWrites;
  /** Its branches and pull requests that are no revisions. */
  readonly untracked: UntrackedRefs;
  /** Reason why the index cache was not used, if it was not. */
  readonly note: string | undefined;
  readonly #options: PackageRepositoryOptions;
  readonly #refs: TrackedRefs;
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
    const { name, namespace, git, remote, layout, trust, shown, isFirstLook, background } = options;
    this.index = new RevisionIndex({ ...originOf(options), git, cache, trust, isFirstLook });
    this.foreign = new ComparedForeignFiles(git, this.index);
    const mirror = remote === undefined ? undefined : git.path;
    this.refusals = new RefusalNotes({ index: this.index, mirror, registration: this.id });
    this.#refs = new TrackedRefs({
      ...{ repository: name, namespace, git, remote, layout, index: this.index, trust, shown },
      onChange: (changes) => {
        if (this.#closed) return;
        // The pusher of a deleted revision is not the pusher of the same commit in a later push.
        this.trust.reports.supersede(this.id, deletedBranches(changes, this.layout));
        options.onChange(changes);
      },
    });
    this.untracked = new UntrackedRefs({ git, remote, locks: this.#refs });
    this.#signatures = new SignatureBacklog(this.index, this.#refs, options.trust);
    const maxWrites = options.remote === undefined ? MAX_LOCAL_WRITES : MAX_WRITES;
    this.writes = new RevisionWrites({
      ...{ repository: this, refs: this.#refs, signatures: this.#signatures, maxWrites, background },
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
    const changes = [...(await this.#refs.sync(scope, signal)), ...(await this.#signatures.followKeys())];
    this.#signatures.continue();
    return changes;
  }

  /** The same for a request that needs the present refs: what others have changed is left for the next sync, whose findings report it. */
  async catchUp(signal?: AbortSignal, scope: SyncScope = 'everything'): Promise<void> {
    this.#refs.keep(await this.sync(signal, scope));
  }

  /** `listener` is called when a request has found that others removed revisions, which a sync has to report: until then they are just not there. */
  onRemoval(listener: () => void): void {
    this.#refs.onRemoval = listener;
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
    const refs = this.#refs;
    await refs.expectId();
    await refs.mutex.run(async () => {
      const { updates, marks } = await planAdoption(this, adoptable, context);
      if (updates.length === 0) return;
      await refs.commit(updates, marks);
      // The previous content of the branch stays in band, also for an index that is rebuilt.
      const kept = adoptable.main === undefined ? [] : this.index.marksOfKept();
      refs.raiseMarks([...marks, ...kept], true);
      if (adoptable.main !== undefined) this.trust.noteMain(adoptable.main.present);
      await refs.publish(updates);
      await refs.recorded();
    });
  }

  async current(name: string): Promise<PackageRevision> {
    // No decision may use a statement whose key was revoked, even before the next sync.
    await this.#signatures.followKeys();
    // Nor by a policy that the caller has replaced before this request.
    await this.refreshPolicies();
    return expectRevision(this.index, name);
  }

  async preview({ updates, name }: WritePlan): Promise<PackageRevision | undefined> {
    const changed = await this.#refs.preview(updates);
    const own = changed.find(({ before, after }) => (after ?? before)?.name === name);
    return own === undefined ? this.index.get(name) : own.after;
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
    await Promise.all([this.writes.drain(), this.#signatures.close()]);
  }

  /** Closes it. From here on listeners are not notified, also not of changes that are under way. */
  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all([this.writes.close(), this.#signatures.close()]);
    try {
      await this.saveCache();
    } finally {
      await this.git.close();
    }
  }
}

function originOf({ name, namespace, layout, trust }: PackageRepositoryOptions): Origin {
  return { repository: name, namespace, layout, repositoryId: trust.repository };
}
