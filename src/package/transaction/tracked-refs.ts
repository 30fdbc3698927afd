import { Mutex } from '../../foundation/concurrency/mutex.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { traced } from '../../foundation/tracing/traced.ts';
import { isUnknownOutcome } from '../../git/errors.ts';
import type {
  FetchOptions,
  GitRemote,
  GitRepository,
  MirrorRepair,
  Oid,
  RefChange,
  RefUpdate,
} from '../../git/git-repository.ts';
import { expectedValue, newValue } from '../../git/refs/ref-updates.ts';
import type { RevisionIndex } from '../index/revision-index.ts';
import type { IndexChange } from '../index/state/index-delta.ts';
import { identityRef, mainRef, parseRef, type RepositoryLayout, watchedPrefixes } from '../model/identity/layout.ts';
import { branchesFirst, MIRROR_REFSPECS } from '../model/identity/mirror-refspecs.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { ShownStates } from '../trust/ledger/shown-states.ts';
import type { NewMark } from '../trust/ledger/trust-ledger.ts';
import type { RepositoryTrust } from '../trust/repository-trust.ts';
import { OtherIdError } from './other-id-error.ts';
import { pushUpdates } from './push-updates.ts';
import type { ShownRefs } from './shown-refs.ts';
import { notRecordedError } from './unknown-outcome-errors.ts';
import type { WriteTarget } from './write-queue.ts';

export interface TrackedRefsOptions {
  readonly repository: string;
  readonly namespace: string;
  readonly git: GitRepository;
  /** Set if `git` is a mirror. */
  readonly remote: GitRemote | undefined;
  readonly layout: RepositoryLayout;
  readonly index: RevisionIndex;
  readonly trust: RepositoryTrust;
  /** Set if `git` is a mirror. */
  readonly shown: ShownRefs | undefined;
  /** Notified of what changed in the index, in order. */
  onChange(changes: readonly IndexChange[]): void;
}

/** The refs that a sync reads; see `branchesFirst`. */
export type SyncScope = 'everything' | 'branches';

/** Maximum number of attempts to bring the mirror to the state of the remote while fetches change it. */
const MAX_FOLLOW_ATTEMPTS = 3;

/**
 * The refs of revisions at the remote of a repository, in its mirror and in the index: all changes of them go through this class.
 */
export class TrackedRefs implements WriteTarget {
  /** Called where `keep` gets the removal of a revision. */
  onRemoval: (() => void) | undefined;
  readonly main: string;
  readonly #options: TrackedRefsOptions;
  /** One request to Git, or one reading of the refs, at a time. */
  readonly mutex = new Mutex();
  /** One fetch at a time, which acquires the one above for its changes of refs. */
  readonly fetches = new Mutex();
  /** One call of the index at a time. */
  readonly #indexing = new Mutex();
  readonly #unconfirmed = new Set<string>();
  /** Error of a listener during the notification of a write; the next sync throws it. */
  #listenerProblem: unknown;
  /**
   * What other changes than those of a sync have shown: revisions whose record or publication ceased to count while this process wrote something
   * else, and pushes that were noticed before. The next sync returns them, for the findings about them.
   */
  readonly #noticed: IndexChange[] = [];
  /** The id of the repository with which the index has evaluated statements. */
  #indexedId: string;
  /** The ref of the id as a sync has read it last. */
  #readIdentity: Oid | undefined;
  /** Marks of writes that were committed. */
  #unraised: NewMark[] = [];
  #mustBeDurable = false;

  constructor(options: TrackedRefsOptions) {
    this.#options = options;
    this.main = mainRef(options.layout);
    this.#indexedId = options.trust.repository;
  }

  get unconfirmedRefs(): ReadonlySet<string> {
    return this.#unconfirmed;
  }

  ref(name: string): Oid | undefined {
    return this.#options.index.ref(name);
  }

  revision(name: string): PackageRevision | undefined {
    return this.#options.index.get(name);
  }

  /** Returns the result of updates without applying them. */
  preview(updates: readonly RefUpdate[]): Promise<IndexChange[]> {
    return this.#indexing.run(() => this.#options.index.preview(changesOf(updates)));
  }

  /**
   * Reads the refs (of the mirror, if it is one) and updates the index. Returns what changed. `fetched` are the states that a fetch of all
   * refs has brought.
   */
  async refresh(fetched?: ShownStates, hasRaised = false): Promise<IndexChange[]> {
    const changed = await this.mutex.run(() => this.#readRefs(fetched, hasRaised));
    this.#throwListenerProblem();
    return [...this.#noticed.splice(0), ...changed];
  }

  /** Has the next sync return these changes. */
  keep(changes: readonly IndexChange[]): void {
    this.#noticed.push(...changes);
    if (changes.some(({ after }) => after === undefined)) this.onRemoval?.();
  }

  /** Updates the mirror from the remote, then the index. Writes continue meanwhile. */
  sync(scope: SyncScope, signal: AbortSignal | undefined): Promise<IndexChange[]> {
    const { remote, namespace, repository, trust, index } = this.#options;
    const id = { 'sluice.repository': `${namespace}/${repository}`, 'sluice.repository_id': trust.repository };
    return traced('repository.sync', { ...id, 'sluice.scope': scope }, async () => {
      await this.#followId();
      const fetched = scope === 'everything' ? this.#options.shown?.wanted : undefined;
      // Before the fetch: then it has what another process wrote before it raised them.
      const hasRaised = index.hasRaisedMarks();
      if (remote !== undefined)
        await this.fetches.run(() =>
          this.#fetch(remote, scope, {
            ...(signal === undefined ? {} : { signal }),
            exclusively: (fetch) => this.mutex.run(fetch),
          }),
        );
      return this.refresh(fetched, hasRaised);
    });
  }

  /** Repairs a damaged mirror while no write runs, and reads its refs after that. */
  repair(remote: GitRemote, signal: AbortSignal | undefined): Promise<MirrorRepair> {
    return this.fetches.run(() =>
      this.mutex.run(async () => {
        const options = { refspecs: MIRROR_REFSPECS, prune: true, ...(signal === undefined ? {} : { signal }) };
        const repaired = await this.#options.git.repair(remote, options);
        this.keep(await this.#readRefs());
        return repaired;
      }),
    );
  }

  async commit(updates: readonly RefUpdate[], marks: readonly NewMark[]): Promise<void> {
    const { git, remote, layout, trust } = this.#options;
    // The ledger announces the statements: a process that takes over must recognise them, also if this one ends right after the push.
    try {
      await trust.flushed();
    } catch (error) {
      throw new SluiceError(
        'Unavailable',
        `nothing was written: the trust ledger cannot be written: ${messageOf(error)}`,
        {
          cause: error,
        },
      );
    }
    const isOther = await this.#indexForId();
    if (isOther || marks.some(({ scope }) => scope.repository !== trust.repository)) throw new OtherIdError();
    if (remote !== undefined) {
      await pushUpdates(git, remote, layout, updates).catch((error: unknown) => {
        if (isUnknownOutcome(error)) this.#markUnconfirmed(updates);
        throw error;
      });
      await this.#follow(updates);
      await this.#prepare(updates);
      return;
    }
    try {
      await git.transaction(updates);
    } catch (error) {
      if (isSluiceError(error, 'Timeout') || isSluiceError(error, 'Unavailable')) this.#markUnconfirmed(updates);
      throw error;
    }
  }

  raiseMarks(marks: readonly NewMark[], durable: boolean): void {
    this.#unraised.push(...marks);
    this.#mustBeDurable ||= durable;
    this.#raise();
  }

  async recorded(): Promise<void> {
    try {
      await this.#options.trust.flushed();
    } catch (error) {
      throw notRecordedError(error);
    }
  }

  /** Marks that could not be written to the ledger wait for the next write or sync. */
  #raise(): void {
    if (this.#unraised.length === 0) return;
    this.#options.trust.raise(this.#unraised, this.#mustBeDurable);
    this.#unraised = [];
    this.#mustBeDurable = false;
  }

  /** Evaluates revisions again; see `RevisionIndex.reassess`. Without packages, all of them. */
  reassess(packages?: Iterable<string>): Promise<IndexChange[]> {
    return this.#indexing.run(async () => {
      const changed = await this.#options.index.reassess(packages);
      if (changed.length > 0) this.#options.onChange(changed);
      return changed;
    });
  }

  /** To be called before anything is signed; see `RepositoryTrust.expectId`. */
  async expectId(): Promise<void> {
    await this.#options.trust.expectId();
    await this.#followId();
  }

  async #followId(): Promise<void> {
    const { trust } = this.#options;
    trust.followId();
    if (trust.repository !== this.#indexedId) await this.mutex.run(() => this.#indexForId());
  }

  /** Reads all refs again if the repository has another id than before, on which it depends what counts. True if so; under the mutex. */
  async #indexForId(): Promise<boolean> {
    const { git, layout, index, trust } = this.#options;
    trust.followId();
    const { repository } = trust;
    if (repository === this.#indexedId) return false;
    const refs = await git.listRefs(watchedPrefixes(layout));
    const known = refs.flatMap(({ name, oid }) => (index.ref(name) === oid ? { name, before: oid, after: oid } : []));
    await this.#joinLedger(known);
    this.keep(await this.#index(known));
    this.#indexedId = repository;
    return true;
  }

  async publish(updates: readonly RefUpdate[]): Promise<void> {
    const changed = await this.#index(changesOf(updates), (error) => {
      // The write was committed and is in the index: the error of a listener does not make its outcome unknown.
      this.#listenerProblem ??= error;
    });
    this.keep(changed.filter(losesTrust));
  }

  /** Throws the errors of listeners that were notified of a write. */
  #throwListenerProblem(): void {
    const problem = this.#listenerProblem;
    this.#listenerProblem = undefined;
    if (problem !== undefined) throw problem;
  }

  async refetch(ref: string | undefined): Promise<void> {
    const { repository, remote } = this.#options;
    const scope = ref === undefined || ref.startsWith('refs/tags/') ? 'everything' : 'branches';
    try {
      if (remote !== undefined) await this.#fetch(remote, scope, {});
      this.keep(await this.#readRefs());
    } catch (error) {
      throw new SluiceError(
        'Unavailable',
        `cannot read the refs of ${repository} after the remote refused a write: ${messageOf(error)}; try again`,
        { cause: error },
      );
    }
    this.#unconfirmed.clear();
  }

  async #fetch(
    remote: GitRemote,
    scope: SyncScope,
    options: Pick<FetchOptions, 'signal' | 'exclusively'>,
  ): Promise<void> {
    const refs = scope === 'everything' ? { refspecs: MIRROR_REFSPECS } : branchesFirst(this.main);
    await this.#options.git.fetch(remote, { ...refs, prune: true, ...options });
  }

  /** Applies to the mirror what the remote accepted. A concurrent fetch may have added a part of it, or newer values; these stay. */
  async #follow(updates: readonly RefUpdate[]): Promise<void> {
    const { git, layout } = this.#options;
    let open = updates.filter(({ type }) => type !== 'verify');
    for (let attempt = 1; open.length > 0; attempt += 1) {
      try {
        return await git.transaction(open);
      } catch (error) {
        // The remote has it, which is what counts. The mirror is read again before these refs change the next time; what is wrong
        // with it is reported then.
        if (!isSluiceError(error, 'Conflict') || attempt >= MAX_FOLLOW_ATTEMPTS) return this.#markUnconfirmed(open);
      }
      const values = new Map((await git.listRefs(watchedPrefixes(layout))).map(({ name, oid }) => [name, oid]));
      open = open.filter((update) => (values.get(update.ref) ?? null) === expectedValue(update));
    }
  }

  /** The write is in Git, and not shown yet. If that cannot be recorded, its outcome is unknown to the caller until the refs are read again. */
  async #prepare(updates: readonly RefUpdate[]): Promise<void> {
    try {
      await this.#options.shown?.prepare(changesOf(updates), undefined);
    } catch (error) {
      this.#markUnconfirmed(updates);
      throw notRecordedError(error);
    }
  }

  #markUnconfirmed(updates: readonly RefUpdate[]): void {
    for (const { ref } of updates) this.#unconfirmed.add(ref);
  }

  async #readRefs(fetched?: ShownStates, hasRaised = false): Promise<IndexChange[]> {
    const { git, layout, index, shown, trust } = this.#options;
    this.#raise();
    const refs = await git.listRefs(watchedPrefixes(layout));
    const identity = refs.find(({ name }) => name === identityRef(layout))?.oid;
    if (identity !== this.#readIdentity) await trust.readId();
    this.#readIdentity = identity;
    // After that: the ledger has a new id before there are statements that name it.
    const isOther = await this.#indexForId();
    const changes = index.diff(refs);
    if (refs.length === 0 && changes.length > 0) throw emptiedError(this.#options.repository);
    await shown?.prepare(changes, isOther ? undefined : fetched);
    if (changes.length === 0 && !hasRaised) return [];
    await this.#joinLedger(changes);
    return this.#index(changes);
  }

  /** Another process may have written records that were fetched, and their statements to the ledger before. */
  async #joinLedger(changes: readonly RefChange[]): Promise<void> {
    const { layout, trust } = this.#options;
    const records = changes.flatMap(({ name, after }) => {
      const parsed = after === undefined ? undefined : parseRef(layout, name);
      return parsed?.kind === 'record' ? [{ package: parsed.path, workspace: parsed.workspace }] : [];
    });
    await trust.joinLatest(records);
  }

  #index(
    changes: readonly RefChange[],
    onListenerError = (error: unknown): void => {
      throw error;
    },
  ): Promise<IndexChange[]> {
    return this.#indexing.run(async () => {
      const changed = await this.#options.index.apply(changes);
      try {
        if (changed.length > 0) this.#options.onChange(changed);
      } catch (error) {
        onListenerError(error);
      }
      return changed;
    });
  }
}

/** True for a change that the ledger made, and no ref. */
function losesTrust({ before, after }: IndexChange): boolean {
  if (before === undefined || after === undefined) return false;
  if (before.refOid !== after.refOid || before.recordOid !== after.recordOid) return false;
  return (
    (before.recordDistrust === undefined && after.recordDistrust !== undefined) ||
    (before.outOfBand === undefined && after.outOfBand !== undefined)
  );
}

function changesOf(updates: readonly RefUpdate[]): RefChange[] {
  return updates.flatMap((update) =>
    update.type === 'verify'
      ? []
      : [
          {
            name: update.ref,
            before: expectedValue(update) ?? undefined,
            after: newValue(update) ?? undefined,
          },
        ],
  );
}

/** No user deletes each branch and tag one by one: the repository was replaced, and its packages must not look deleted. */
function emptiedError(repository: string): SluiceError {
  return new SluiceError(
    'Unavailable',
    `${repository} has no branches and tags any more: it was emptied or replaced, and its packages stay as they were read last. Restore it; or delete its Repository object, and register it again`,
  );
}
