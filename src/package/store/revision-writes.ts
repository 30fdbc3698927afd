import { handleReceived } from '../../foundation/concurrency/in-slices.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { isUnknownOutcome } from '../../git/errors.ts';
import type { Oid } from '../../git/git-repository.ts';
import { newValue } from '../../git/refs/ref-updates.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import { revisionName } from '../model/identity/identity.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import type { Action, MergedProposal } from '../model/revision/revision-state.ts';
import { planCreate } from '../plan/create/create.ts';
import { type DraftAtCommit, planDraftAt } from '../plan/create/draft-at-commit.ts';
import { type MergedPackage, planMergedPackage } from '../plan/create/merged-package.ts';
import { checkPlace } from '../plan/create/place.ts';
import type { RepositoryContext, WritePlan } from '../plan/ports/repository-context.ts';
import { planTogether } from '../plan/shared-commit.ts';
import { mayMoveMain } from '../plan/transition.ts';
import { decideApproval, planUpdate, type RevisionUpdate } from '../plan/update.ts';
import type { SharedWrite } from '../transaction/pending-write.ts';
import type { RefusalNotes } from '../transaction/refusal-notes.ts';
import type { TrackedRefs } from '../transaction/tracked-refs.ts';
import { closingError, WriteQueue } from '../transaction/write-queue.ts';
import type { NewRevision } from '../upstream/revision-source.ts';
import { NO_UPSTREAMS, type UpstreamReader } from '../upstream/upstream-reader.ts';
import type { BackgroundLimits } from './limits/background-limits.ts';
import { RequestSlots } from './limits/request-slots.ts';
import { expectRevision } from './read-revision.ts';
import { recordedMerge } from './recorded-merge.ts';
import type { SignatureBacklog } from './signature-backlog.ts';
import { transitions } from './transitions.ts';

/** The repository that is written. */
interface WrittenRepository extends RepositoryContext {
  readonly refusals: RepositoryContext['refusals'] & Pick<RefusalNotes, 'notePush'>;
  /** To be called before a decision by `policyFor`. */
  refreshPolicies(): Promise<void>;
}

export interface RevisionWritesOptions {
  readonly repository: WrittenRepository;
  readonly refs: TrackedRefs;
  readonly signatures: SignatureBacklog;
  /** Maximum number of writes in one request to Git. */
  readonly maxWrites: number;
  readonly background: BackgroundLimits | undefined;
}

/**
 * The requests that write revisions of one repository. Each reserves its revision, plans, and is committed with others by the queue; the promise of a
 * method resolves when its write is in Git. With `dryRun` in its context it returns the result, and changes nothing.
 */
export class RevisionWrites {
  readonly #repository: WrittenRepository;
  readonly #refs: TrackedRefs;
  readonly #signatures: SignatureBacklog;
  readonly #queue: WriteQueue;
  readonly #slots: RequestSlots;
  #closed = false;

  constructor({ repository, refs, signatures, maxWrites, background }: RevisionWritesOptions) {
    const { namespace, clock, refusals } = repository;
    this.#repository = repository;
    this.#refs = refs;
    this.#signatures = signatures;
    this.#slots = new RequestSlots({ namespace, clock, maxWrites, background });
    this.#queue = new WriteQueue(refs, {
      maxWrites,
      notePush: (revision, refusal) => refusals.notePush(revision, refusal),
      planned: () => this.#slots.planned,
      acquirePlace: (signal) => this.#slots.acquireWrite(signal),
    });
  }

  /** Creates a draft. `upstreams` provides its source if that is in another repository. */
  async create(
    wanted: NewRevision,
    context: RequestContext,
    upstreams: UpstreamReader = NO_UPSTREAMS,
  ): Promise<PackageRevision> {
    const { package: packageName, workspace, source } = wanted;
    const name = revisionName({ repository: this.#repository.repository, package: packageName, workspace });
    const slot = await this.#slots.occupy(name, context, { plans: true });
    try {
      const made = await this.#slots.requests.run(async () => {
        await this.#refs.expectId();
        await this.#repository.refreshPolicies();
        const plan = await slot.plan(() => planCreate(this.#repository, wanted, upstreams, context));
        if (context.dryRun === true) return this.#foresee(plan);
        return this.#queue.add({
          ...{ package: packageName, urgent: false, plan },
          wholePackage: source.type === 'init' || source.type === 'clone',
          // Another package may have been created meanwhile.
          check: () => checkPlace(this.#repository, wanted),
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
    const name = revisionName({ ...wanted, repository: this.#repository.repository });
    const slot = await this.#slots.occupy(name, context, { plans: true });
    try {
      return await this.#slots.requests.run(async () =>
        this.#queue.add({
          ...{ package: wanted.package, urgent: false, wholePackage: true },
          plan: await slot.plan(() => planDraftAt(this.#repository, wanted)),
          // Another package may have been created meanwhile.
          check: () => checkPlace(this.#repository, { ...wanted, source: { type: 'copy', source: '' } }),
        }),
      );
    } catch (error) {
      throw this.#failureOf(error);
    } finally {
      slot.free();
    }
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
      const plan = (mainHead?: Oid) => planUpdate(this.#repository, name, update, context, mainHead);
      const wholePackage = mayMoveMain(action);
      const { key } = expectRevision(this.#repository.index, name);
      const write = { package: key.package, urgent: action !== undefined, wholePackage, signal: context.signal };
      const commit = async (planned: WritePlan | undefined) => {
        if (planned === undefined) {
          // What an earlier attempt wrote must be recorded before it is acknowledged.
          if (!isDryRun) await this.#refs.recorded();
          return expectRevision(this.#repository.index, name);
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

  /**
   * Publishes a package at the commit to which the Git host merged the pull request of a user, in one transaction, unless that was done before.
   * Throws TransitionRefusedError if the kernel refuses.
   */
  async publishMerged(
    wanted: MergedPackage,
    how: Pick<RevisionUpdate, 'closedNow' | 'evidence'>,
    context: RequestContext,
  ): Promise<PackageRevision | undefined> {
    const name = revisionName({ ...wanted, repository: this.#repository.repository });
    const slot = await this.#slots.occupy(name, context, { plans: false });
    try {
      await this.#signatures.followKeys();
      await this.#refs.expectId();
      await this.#repository.refreshPolicies();
      const plan = (mainHead?: Oid) => planMergedPackage(this.#repository, wanted, how, context, mainHead);
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

  /** Takes no more writes, and resolves when those that are under way have ended. */
  drain(): Promise<void> {
    return this.#queue.drain();
  }

  /** Takes no more writes, and waits for a limited time for the request to Git that is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#queue.close(this.#repository.clock);
  }

  /** How an approval shares a commit with others that its caller requests at the same time; undefined for one that does not. */
  #sharedApproval(name: string, update: RevisionUpdate, context: RequestContext): SharedWrite | undefined {
    const { action, change, merged } = update;
    const group = context.together?.group;
    if (group === undefined || action !== 'approve' || change !== undefined || merged !== undefined) return undefined;
    return {
      group,
      decide: (head) => decideApproval(this.#repository, name, update, context, head),
      plan: planTogether,
    };
  }

  /** The publication of a merge if an earlier request or another process has recorded it, so that this one failed; else throws the error. */
  async #mergeRecordedBefore(
    error: unknown,
    name: string,
    merged: MergedProposal | undefined,
    action: Action | undefined,
  ): Promise<PackageRevision> {
    const recorded = await recordedMerge(this.#repository.index.get(name), merged, this.#repository.trust);
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
    await this.#refs.expectId();
    if (this.#repository.index.get(name)?.recordDistrust?.reason === 'Unverified') await this.#signatures.checked;
  }

  /** The result of a dry run, whose commits will not be written. */
  async #foresee(plan: WritePlan): Promise<PackageRevision | undefined> {
    try {
      return await this.#repository.preview(plan);
    } finally {
      this.#repository.index.forgetOwn(plan.updates.flatMap((update) => newValue(update) ?? []));
    }
  }

  /** The error of a request: whatever hinders one while the repository is being closed, the caller learns that it is closed. */
  #failureOf(error: unknown): unknown {
    return this.#closed && !isUnknownOutcome(error) ? closingError() : error;
  }
}
