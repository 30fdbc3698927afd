import type { Clock } from '../foundation/clock.ts';
import { Mutex } from '../foundation/mutex.ts';
import { isSluiceError, messageOf, SluiceError } from '../foundation/sluice-error.ts';
import { RefConflictError } from '../git/errors.ts';
import type { GitRemote, GitRepository, Oid, RefChange, RefUpdate } from '../git/git-repository.ts';
import type { Face, RequestContext } from '../resource/request-context.ts';
import { type PackageContent, readPackage } from './content.ts';
import { ContentCache } from './content-cache.ts';
import { revisionName } from './identity.ts';
import { FactCache, loadFactCache, saveFactCache } from './index/fact-cache.ts';
import { type IndexChange, RevisionIndex } from './index/revision-index.ts';
import { mainRef, type RepositoryLayout, watchedPrefixes } from './layout.ts';
import { branchesFirst, MIRROR_REFSPECS } from './mirror-refspecs.ts';
import type { PackageRevision } from './package-revision.ts';
import type { EffectivePolicy } from './policy.ts';
import type { Renderer } from './renderer.ts';
import { judged } from './transitions.ts';
import type { RevisionChange } from './write/change.ts';
import { planCreate } from './write/create.ts';
import { checkPlace } from './write/place.ts';
import type { NewRevision } from './write/revision-source.ts';
import type { Transition } from './write/transition.ts';
import { planUpdate, type RevisionUpdate } from './write/update.ts';
import { NO_UPSTREAMS, type UpstreamReader } from './write/upstream-reader.ts';
import type { Workbench, WritePlan } from './write/workbench.ts';

export interface PackageRepositoryOptions {
  readonly name: string;
  readonly namespace: string;
  readonly deployment: boolean;
  /** The address under which it is registered. */
  readonly url: string;
  readonly layout: RepositoryLayout;
  readonly git: GitRepository;
  /** Set if `git` is a mirror: writes go to the remote first and count only when it took them. */
  readonly remote?: GitRemote;
  /** Where the index is kept between runs; undefined keeps it in memory. */
  readonly cacheFile?: string;
  readonly clock: Clock;
  readonly renderer?: Renderer | undefined;
  readonly identity?: { readonly name: string; readonly email: string };
  /** What the policies of the repository's namespace say about one of its revisions. */
  policyFor(revision: PackageRevision, namespace: string): EffectivePolicy;
  dependentsOf(revision: PackageRevision): string[];
  /** Told of every revision that changed, in order. */
  onChange(changes: readonly IndexChange[]): void;
}

/** A publication that loses the race for the main branch is planned anew this often. */
const MAIN_RETRIES = 8;

/** One registered repository: its index, and its writes as atomic transactions. */
export class PackageRepository implements Workbench {
  readonly repository: string;
  readonly namespace: string;
  readonly deployment: boolean;
  readonly url: string;
  readonly layout: RepositoryLayout;
  readonly git: GitRepository;
  readonly index: RevisionIndex;
  readonly clock: Clock;
  readonly renderer: Renderer | undefined;
  readonly identity: { readonly name: string; readonly email: string };
  /** Why the index cache was not used, if it was not. */
  readonly note: string | undefined;
  readonly #options: PackageRepositoryOptions;
  readonly #mutex = new Mutex();
  /** Requests that are under way, by the revision. */
  readonly #busy = new Map<string, { readonly face: Face; readonly over: Promise<void> }>();
  readonly #contents = new ContentCache();
  readonly #cache: FactCache;
  /** How many facts the cache file knows of. */
  #savedFacts: number;
  #closed = false;
  #emptyTree: Promise<Oid> | undefined;

  private constructor(options: PackageRepositoryOptions, cache: FactCache, note: string | undefined) {
    this.repository = options.name;
    this.namespace = options.namespace;
    this.deployment = options.deployment;
    this.url = options.url;
    this.layout = options.layout;
    this.git = options.git;
    this.clock = options.clock;
    this.renderer = options.renderer;
    this.identity = options.identity ?? { name: 'sluice', email: 'sluice@localhost' };
    this.note = note;
    this.#cache = cache;
    this.#savedFacts = cache.size;
    this.#options = options;
    this.index = new RevisionIndex({ ...options, repository: options.name, cache });
  }

  /** Opens a repository and reads its index, from the cache as far as that goes. */
  static async open(options: PackageRepositoryOptions): Promise<PackageRepository> {
    const loaded = options.cacheFile === undefined ? undefined : await loadFactCache(options.cacheFile);
    const repository = new PackageRepository(options, loaded?.cache ?? new FactCache(), loaded?.note);
    await repository.refresh();
    return repository;
  }

  policyFor(revision: PackageRevision): EffectivePolicy {
    return this.#options.policyFor(revision, this.namespace);
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
    // By its tree: a package on the main branch stays as it is while the commit that it was seen in may go.
    const { tree = `${revision.commit}:${revision.path}` } = revision.tip;
    return this.#contents.get(tree, () => readPackage(this.git, tree, revision.kptfile));
  }

  /** Takes in what others did to the refs of this repository (of the mirror, if it is one). Returns what changed. */
  refresh(): Promise<IndexChange[]> {
    return this.#mutex.run(async () => {
      const refs = await this.git.listRefs(watchedPrefixes(this.layout));
      return this.#take(this.index.diff(refs));
    });
  }

  /**
   * Brings the mirror up to date with the remote, then the index. Without a remote it only refreshes. `branches` looks at the many
   * tags only where the branches tell of news; see `branchesFirst` for what that can miss until the next sync of everything.
   */
  async sync(signal?: AbortSignal, scope: 'everything' | 'branches' = 'everything'): Promise<IndexChange[]> {
    const { remote } = this.#options;
    if (remote !== undefined) {
      const refs = scope === 'everything' ? { refspecs: MIRROR_REFSPECS } : branchesFirst(mainRef(this.layout));
      await this.#mutex.run(() =>
        this.git.fetch(remote, { ...refs, prune: true, ...(signal === undefined ? {} : { signal }) }),
      );
    }
    return this.refresh();
  }

  /** Makes a draft. `upstreams` gives what it is made from, where that lies elsewhere. */
  create(
    wanted: NewRevision,
    context: RequestContext,
    upstreams: UpstreamReader = NO_UPSTREAMS,
  ): Promise<PackageRevision> {
    const key = { repository: this.repository, package: wanted.package, workspace: wanted.workspace };
    return this.#exclusive(revisionName(key), context, async () => {
      const plan = await planCreate(this, wanted, upstreams, context);
      // Another package can have come into being meanwhile.
      const made = await this.#carryOut(plan, context, () => checkPlace(this, wanted));
      if (made === undefined) throw new SluiceError('Internal', `${plan.name} was created and is not there`);
      return made;
    });
  }

  /** Changes a revision without moving its lifecycle. A change that changes nothing makes no commit. */
  async change(name: string, change: RevisionChange, context: RequestContext): Promise<PackageRevision> {
    return (await this.update(name, { change }, context)) ?? this.#expect(name);
  }

  /** Moves a revision through its lifecycle; undefined if it is gone afterwards. */
  transition(name: string, transition: Transition, context: RequestContext): Promise<PackageRevision | undefined> {
    return this.update(name, transition, context);
  }

  /** A change and a lifecycle step, or one of them, in one transaction; undefined if the revision is gone afterwards. */
  update(name: string, update: RevisionUpdate, context: RequestContext): Promise<PackageRevision | undefined> {
    return judged(update.action, context, () => this.#update(name, update, context));
  }

  #update(name: string, update: RevisionUpdate, context: RequestContext): Promise<PackageRevision | undefined> {
    return this.#exclusive(name, context, async () => {
      for (let attempt = 1; ; attempt++) {
        const before = this.#expect(name);
        const foresee = async (plan: WritePlan) => (await this.#preview(plan)) ?? before;
        const plan = await planUpdate(this, before, update, context, foresee);
        if (plan === undefined) return before;
        try {
          return await this.#carryOut(plan, context);
        } catch (error) {
          // Another package was published meanwhile; this one is judged anew on the new main head.
          if (!this.#isLostMain(error) || attempt >= MAIN_RETRIES) throw error;
        }
      }
    });
  }

  /** Writes the index cache; what is no longer referenced is dropped from it. */
  async saveCache(): Promise<void> {
    const { size } = this.#cache;
    if (this.#options.cacheFile === undefined || size === this.#savedFacts) return;
    await saveFactCache(this.#options.cacheFile, this.index.liveFacts());
    this.#savedFacts = size;
  }

  /** Nobody hears of changes from here on, also not of those that are under way. */
  async close(): Promise<void> {
    this.#closed = true;
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

  /**
   * Porch's clients expect a second request on one revision to be refused, not queued. What a controller writes is no request of
   * theirs, and waited for.
   */
  async #exclusive<Result>(name: string, { face }: RequestContext, section: () => Promise<Result>): Promise<Result> {
    for (let other = this.#busy.get(name); other !== undefined; other = this.#busy.get(name)) {
      if (other.face !== 'controller') {
        throw new SluiceError(
          'Busy',
          `another request is already in progress on package revision "${this.namespace}/${name}"`,
        );
      }
      await other.over;
    }
    const over = Promise.withResolvers<void>();
    this.#busy.set(name, { face, over: over.promise });
    try {
      return await section();
    } finally {
      this.#busy.delete(name);
      over.resolve();
    }
  }

  /** What a rule of the server refuses is refused again. */
  #isLostMain(error: unknown): boolean {
    const { ref, kind } = (error instanceof RefConflictError ? error.details : undefined) ?? {};
    return ref === mainRef(this.layout) && (kind === 'moved' || kind === 'locked');
  }

  /** Commits a plan, or only looks what it would come to. Returns the revision afterwards; undefined if it is gone. */
  async #carryOut(plan: WritePlan, context: RequestContext, check?: () => void): Promise<PackageRevision | undefined> {
    if (context.dryRun === true) return this.#preview(plan);
    await this.#commit(plan, check);
    return this.index.get(plan.name);
  }

  #preview(plan: WritePlan): Promise<PackageRevision | undefined> {
    return this.#mutex.run(async () => {
      const changed = await this.index.preview(plan.updates.flatMap(changeOf));
      const own = changed.find(({ before, after }) => (after ?? before)?.name === plan.name);
      return own === undefined ? this.index.get(plan.name) : own.after;
    });
  }

  #commit(plan: WritePlan, check?: () => void): Promise<void> {
    return this.#mutex.run(async () => {
      check?.();
      try {
        await this.#updateRefs(plan.updates);
      } catch (error) {
        // Whatever was not as expected is read again, so that the caller's next look shows the truth.
        if (isSluiceError(error, 'Conflict')) await this.#reread();
        throw error;
      }
      await this.#take(plan.updates.flatMap(changeOf));
    });
  }

  async #updateRefs(updates: readonly RefUpdate[]): Promise<void> {
    const { remote } = this.#options;
    if (remote === undefined) return this.git.transaction(updates);
    await this.git.push(remote, updates);
    try {
      await this.git.transaction(updates);
    } catch (error) {
      // The remote has it, which is what counts. A fetch by another process may have brought it here already, or will.
      if (!isSluiceError(error, 'Conflict')) throw error;
    }
  }

  async #reread(): Promise<void> {
    const { remote } = this.#options;
    try {
      if (remote !== undefined) {
        await this.git.fetch(remote, { refspecs: MIRROR_REFSPECS, prune: true });
      }
      await this.#take(this.index.diff(await this.git.listRefs(watchedPrefixes(this.layout))));
    } catch (error) {
      throw new SluiceError(
        'Unavailable',
        `a write conflicted, and ${this.repository} could not be read again: ${messageOf(error)}`,
        {
          cause: error,
        },
      );
    }
  }

  async #take(changes: readonly RefChange[]): Promise<IndexChange[]> {
    if (changes.length === 0) return [];
    const changed = await this.index.apply(changes);
    if (changed.length > 0 && !this.#closed) this.#options.onChange(changed);
    return changed;
  }
}

function changeOf(update: RefUpdate): RefChange[] {
  switch (update.type) {
    case 'create':
      return [{ name: update.ref, before: undefined, after: update.new }];
    case 'update':
      return [{ name: update.ref, before: update.old, after: update.new }];
    case 'delete':
      return [{ name: update.ref, before: update.old, after: undefined }];
    case 'verify':
      return [];
  }
}
