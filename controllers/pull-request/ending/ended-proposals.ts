import type { InformerEvent } from '../../../src/controller/informer-store.ts';
import { type Source, watchKind } from '../../../src/controller/source.ts';
import { postComment } from '../../../src/forge/comments/post-comment.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import { isPermanent } from '../../../src/forge/pause-after.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { proposedRef } from '../../../src/package/model/identity/layout.ts';
import { isPublished, type PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import { wasPublished } from '../../../src/package/plan/create/merged-package.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { type PackageRevision, packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { keyOf, keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { CommandState } from '../commands/apply-commands.ts';
import { replyToLate } from '../commands/late-commands.ts';
import { hasCommit } from '../merged/fetch-head.ts';
import { policyForMerge } from '../merged/merge-publication.ts';
import type { OpenedRepositories } from '../opened-repositories.ts';
import type { PullRequests } from '../pull-requests.ts';
import { repositoryOf, type Shown, type ShownProposals } from '../shown-proposals.ts';
import { isEnd } from '../text/describe-proposal.ts';
import { inlineCode } from '../text/quote.ts';
import { proposalsIn, sectionOf, withSection } from '../text/section.ts';
import { endText, isRejectedByEnd } from './apply-end.ts';
import { describePublishedLater, NOT_PUBLISHED_TOPIC } from './describe-bypass.ts';
import { endStepOf, isMergedAfter, REOPEN_MS } from './end-step.ts';
import { proposeAgain } from './propose-again.ts';
import { hasPackage } from './proposed-heads.ts';
import { reportLostMerge } from './report-lost-merge.ts';

/** Comments that were written before their author knew of the end get a reply within this time after it. */
const REPLY_MS = 600_000;
/**
 * One that is open for so long becomes a user's a little later (`UserPulls.isOfUser`), and its merge is published as that; what was not published after
 * the second time is reported.
 */
const OPEN_MS = 240_000;
const PUBLICATION_MS = 600_000;
/** Pull requests that are looked at by one poll: those of proposals that wait must not wait for all that have ended. */
const MAX_LOOKS = 20;

export interface EndedContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'find' | 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly opened: OpenedRepositories;
  readonly shown: Pick<ShownProposals, 'get'>;
  readonly clock: Clock;
}

/** A proposal that has ended, and what a process that followed it has kept of it. */
interface Ended {
  readonly key: ObjectKey;
  /** As it was before, where it was deleted. */
  readonly last?: Shown['last'];
  readonly commands?: CommandState;
  /** Whether it was reported before the end that its merge publishes nothing; undefined where this process has not followed it. */
  readonly isOutside?: boolean;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  /** The pull request as it was when it was looked at. */
  looked?: PullRequest | 'none';
  /** Since when this process has found it open, in milliseconds of running time. */
  openSinceMs?: number | undefined;
  /** A merge that is reported at that time, in milliseconds of running time, if it was not published as that of a user. */
  unreported?: { readonly pull: PullRequest; readonly dueMs: number } | undefined;
  /** Where it was looked for. */
  place?: { readonly pulls: PullRequests; readonly branch: string };
}

/**
 * Proposals that have ended lately, each with a pull request of its own: their pull requests get the last text, also where a process ended before it
 * had written it, a merge that came too late is reported, commands that come too late get a reply, and one that a user opens again has its draft
 * proposed again. What is here decides only what to look at; a new process finds it in the records of the revisions.
 */
export class EndedProposals {
  readonly #context: EndedContext;
  /** By repository, then by revision. */
  readonly #ended = new Map<string, Map<string, Ended>>();

  constructor(context: EndedContext) {
    this.#context = context;
  }

  /**
   * Wakes for the repositories in which proposals have ended lately that this process has not followed: before its start, where an earlier one may
   * have left something to do, or before it came to them.
   */
  source(): Source<ObjectKey> {
    const { shown } = this.#context;
    return watchKind(packageRevisionKind, {
      predicate: (event) => (event.type === 'add' || endsUnseen(event, shown)) && this.#takeOver(keyOf(event.object)),
      map: ({ object }) => [repositoryOf(keyOf(object))],
    });
  }

  /** A proposal has ended that this process has followed. */
  note({ key, last, commands, notPublished, pull: { outside } }: Shown): void {
    const isOutside = notPublished !== undefined || outside?.has(keyText(key)) === true;
    this.#add({ key, ...(last === undefined ? {} : { last }), commands, isOutside, atMs: this.#context.clock.now() });
  }

  /** The hosts of those of a repository. Others are not followed any more. */
  async pullsOf(repository: ObjectKey): Promise<readonly PullRequests[]> {
    const { opened } = this.#context;
    const all = new Set<PullRequests>();
    const left: Ended[] = [];
    for (const ended of this.#of(repository)) {
      const about = this.#about(ended);
      if (about !== undefined) all.add(opened.of(about.revision, about.review));
      else left.push(ended);
    }
    // The policies of a process that has just started may not be read yet. They are those of the repository, and are read once for all.
    if (left.some(({ last }) => last === undefined)) await this.#refreshPolicies(left);
    for (const ended of left) {
      const about = this.#about(ended);
      if (about !== undefined) all.add(opened.of(about.revision, about.review));
      else this.#drop(ended);
    }
    return [...all];
  }

  /** Does what is left to do on one host. */
  async update(repository: ObjectKey, pulls: PullRequests, signal: AbortSignal): Promise<void> {
    const { opened, store, clock } = this.#context;
    let looks = 0;
    for (const ended of this.#of(repository)) {
      const about = this.#about(ended);
      if (about === undefined || opened.of(about.revision, about.review) !== pulls) continue;
      const now = store.find(keyText(ended.key));
      if (now?.lifecycle === 'Proposed') {
        // Its pull request is followed for that.
        this.#remove(ended.key);
        continue;
      }
      const branch = branchOf(store, about.revision);
      ended.place = { pulls, branch };
      const pull = await pulls.ofBranch(branch, signal);
      if (ended.looked !== (pull ?? 'none')) {
        if (pull !== undefined) looks += 1;
        if (looks > MAX_LOOKS) break;
        if (pull !== undefined) await this.#look(ended, { ...about, now }, pulls, pull, signal);
        ended.looked = (await pulls.ofBranch(branch, signal)) ?? 'none';
      }
      await this.#reportDue(ended, { ...about, now }, pulls, signal);
      if (ended.unreported !== undefined) continue;
      const mayReopen = now !== undefined && isRejectedByEnd(now) && pulls.forge.reopensWithoutBranch;
      if (clock.now() - ended.atMs > (mayReopen ? REOPEN_MS : REPLY_MS)) this.#drop(ended);
    }
  }

  async #look(
    ended: Ended,
    { revision, review, now }: Ended['last'] & object & { readonly now: Revision | undefined },
    pulls: PullRequests,
    pull: PullRequest,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, store, events, clock } = this.#context;
    const { key, commands, last, isOutside } = ended;
    try {
      const nowMs = clock.monotonic();
      const openMs = nowMs - (ended.openSinceMs ?? nowMs);
      ended.openSinceMs = pull.state === 'open' ? nowMs - openMs : undefined;
      if (pull.state === 'open' && now?.lifecycle === 'Draft') {
        const context = { client, store, events, signal };
        await proposeAgain(context, pulls, store.repositoryOf(now), pull, async () => [now.name]);
        if (store.find(keyText(key))?.lifecycle === 'Proposed') return;
      }
      const marked = proposalsIn(pull.body);
      const hasText = isEnd(sectionOf(pull.body) ?? '');
      if (marked.length > 0 && !hasText) {
        await correctComment(pulls.forge, pull, now, signal);
        const body = withSection(pull.body, marked, endText(key, pull, now));
        pulls.note(await pulls.forge.update(pull.number, { body }, signal));
      }
      if (pull.state === 'merged' && (now === undefined || now.lifecycle === 'Draft')) {
        const repository = store.repositoryOf(revision);
        const mayPublish = async () =>
          ((await policyForMerge(client, repository, review, pull, signal)) ?? review).publishOn === 'merge';
        // Where no merge publishes, an earlier process has reported it, whether before the end or with the text, unless it was made later.
        const isEarlier = hasText && !isMergedAfter(pull, now && endStepOf(now));
        const isReported = isOutside ?? (isEarlier && !(await mayPublish()));
        // Other packages that a user has merged from a branch of this name are none of the proposal.
        const isOther = await lacksPackage(repository, revision.path, pull);
        if (!isReported && !isOther)
          ended.unreported ??= { pull, dueMs: openMs < OPEN_MS ? nowMs : nowMs + PUBLICATION_MS };
      }
      const before = last?.revision;
      await replyToLate({ key, now, before, review, pull, forge: pulls.forge, commands }, signal);
    } catch (error) {
      // What a user has locked or deleted must not hold up the others.
      if (!isPermanent(error)) throw error;
    }
  }

  async #reportDue(
    ended: Ended,
    { revision, now }: { readonly revision: Revision; readonly now: Revision | undefined },
    pulls: PullRequests,
    signal: AbortSignal,
  ): Promise<void> {
    const { store, clock } = this.#context;
    const { key, unreported } = ended;
    if (unreported === undefined) return;
    const commit = unreported.pull.merged?.commit ?? '';
    const isPublished = wasPublished(store.repositoryOf(revision), revision.key.package, commit);
    if (!isPublished && clock.monotonic() < unreported.dueMs) return;
    try {
      if (!isPublished) await this.#reportMerge(key, now, pulls, unreported.pull, signal);
    } catch (error) {
      if (!isPermanent(error)) throw error;
    }
    ended.unreported = undefined;
  }

  /** The proposal had ended before its merge was read. */
  async #reportMerge(
    key: ObjectKey,
    now: Revision | undefined,
    { forge }: PullRequests,
    pull: PullRequest,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, events } = this.#context;
    const object =
      now === undefined
        ? await client.find(repositoryKind, repositoryOf(key), { signal })
        : await client.find(packageRevisionKind, key, { signal });
    if (object === undefined) return;
    const { commit, branch } = pull.head;
    const isRejected = now !== undefined && endStepOf(now) !== undefined;
    const [end, next] =
      now === undefined
        ? ['deleted', `push ${inlineCode(commit)} to ${inlineCode(branch)} to propose it as it was merged`]
        : [isRejected ? 'rejected' : 'made a draft', 'propose it again and approve it to publish it'];
    const why = `and publishes nothing, since ${inlineCode(key.name)} had been ${end} when that was read; ${next}, or revert the merge`;
    await reportLostMerge({ client, events, forge, signal }, object, pull, why);
  }

  /** The revision with the policy by which it is reviewed; undefined if there is none. */
  #about({ key, last }: Ended): Ended['last'] {
    const { store } = this.#context;
    const revision = store.find(keyText(key));
    if (revision === undefined) return last;
    const repository = store.repositoryOf(revision);
    const { review } = repository.policyFor(revision);
    return review === undefined || repository.follows ? undefined : { revision, review };
  }

  /** Of the repository that all of these are in. */
  async #refreshPolicies(ended: readonly Ended[]): Promise<void> {
    const { store } = this.#context;
    const revision = ended.map(({ key }) => store.find(keyText(key))).find((found) => found !== undefined);
    if (revision !== undefined) await store.repositoryOf(revision).refreshPolicies();
  }

  /** Follows a revision whose proposal has ended lately. Returns false for others, and for those that are followed already. */
  #takeOver(key: ObjectKey): boolean {
    const { store, clock } = this.#context;
    const revision = store.find(keyText(key));
    const at = revision === undefined ? Number.NaN : this.#endedMs(revision);
    if (!(clock.now() - at <= REOPEN_MS)) return false;
    const followed = this.#ended.get(keyText(repositoryOf(key)))?.get(keyText(key));
    if (followed !== undefined && followed.atMs >= at) return false;
    this.#add({ key, atMs: at });
    return true;
  }

  /** When its last proposal ended; NaN if none has. Of one that a push has replaced by a draft, that is not known. */
  #endedMs(revision: Revision): number {
    const steps = revision.lifecycle === 'Draft' ? revision.record?.steps : undefined;
    if (steps?.findLast(({ action }) => action !== 'push')?.action === 'propose') return this.#context.clock.now();
    return Date.parse(endStepOf(revision)?.at ?? '');
  }

  #of(repository: ObjectKey): readonly Ended[] {
    return [...(this.#ended.get(keyText(repository))?.values() ?? [])];
  }

  #add(ended: Ended): void {
    const repository = keyText(repositoryOf(ended.key));
    const known = this.#ended.get(repository) ?? new Map<string, Ended>();
    this.#ended.set(repository, known.set(keyText(ended.key), ended));
  }

  /** Nothing is left to do: each poll would go through all pull requests that are kept. */
  #drop({ key, place }: Ended): void {
    place?.pulls.forget(place.branch);
    this.#remove(key);
  }

  #remove(key: ObjectKey): void {
    const repository = keyText(repositoryOf(key));
    const known = this.#ended.get(repository);
    known?.delete(keyText(key));
    if (known?.size === 0) this.#ended.delete(repository);
  }
}

async function lacksPackage(
  repository: Pick<PackageRepository, 'git' | 'untracked'>,
  path: string,
  { head }: PullRequest,
): Promise<boolean> {
  return (await hasCommit(repository, head.commit)) && !(await hasPackage(repository.git, path, head.commit));
}

/** A process may have ended between a publication and `leavePull`, after it had reported that the merge could not be published. */
async function correctComment(
  forge: PullRequests['forge'],
  { state, number }: PullRequest,
  now: Revision | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (state !== 'merged' || now === undefined || !isPublished(now)) return;
  if ((await forge.findComment(number, NOT_PUBLISHED_TOPIC, signal)) === undefined) return;
  await postComment(forge, number, NOT_PUBLISHED_TOPIC, describePublishedLater(now.name), signal);
}

/** Whether a proposal has ended that this process has not followed. */
export function endsUnseen(event: InformerEvent<PackageRevision>, shown: Pick<ShownProposals, 'get'>): boolean {
  if (event.type !== 'update' || event.old.spec.lifecycle !== 'Proposed') return false;
  return event.object.spec.lifecycle !== 'Proposed' && shown.get(keyOf(event.object)) === undefined;
}

/** The branch of its proposal, whatever it is now. */
function branchOf(store: Pick<RevisionStore, 'repositoryOf'>, revision: Revision): string {
  return proposedRef(store.repositoryOf(revision).layout, revision.key).slice('refs/heads/'.length);
}
