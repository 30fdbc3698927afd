import { type Source, watchKind } from '../../../src/controller/source.ts';
import type { PullRequest } from '../../../src/forge/forge.ts';
import type { Clock } from '../../../src/foundation/time/clock.ts';
import { proposedRef } from '../../../src/package/model/identity/layout.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRevision as Revision } from '../../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Client } from '../../../src/resource/client/client.ts';
import { packageRevisionKind } from '../../../src/resource/kinds/porch/package-revision.ts';
import { keyOf, keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import type { EventDeduplicator } from '../../event-deduplicator.ts';
import type { CommandState } from '../commands/apply-commands.ts';
import { replyToLate } from '../commands/late-commands.ts';
import type { OpenedRepositories } from '../opened-repositories.ts';
import { isPermanent } from '../pause-after.ts';
import type { PullRequests } from '../pull-requests.ts';
import { repositoryOf, type Shown } from '../shown-proposals.ts';
import { isEnd } from '../text/describe-proposal.ts';
import { proposalsIn, sectionOf, withSection } from '../text/section.ts';
import { endStepOf, endText, isRejectedByEnd } from './apply-end.ts';
import { proposeAgain, REOPEN_MS } from './propose-again.ts';

/** Comments that were written before their author knew of the end get a reply within this time after it. */
const REPLY_MS = 600_000;
/** Pull requests that are looked at by one poll: those of proposals that wait must not wait for all that have ended. */
const MAX_LOOKS = 20;

export interface EndedContext {
  readonly client: Client;
  readonly store: Pick<RevisionStore, 'find' | 'repositoryOf'>;
  readonly events: EventDeduplicator;
  readonly opened: OpenedRepositories;
  readonly clock: Clock;
}

/** A proposal that has ended, and what a process that followed it has kept of it. */
interface Ended {
  readonly key: ObjectKey;
  /** As it was before, where it was deleted. */
  readonly last?: Shown['last'];
  readonly commands?: CommandState;
  /** Milliseconds since the epoch. */
  readonly atMs: number;
  /** The pull request as it was when it was looked at. */
  looked?: PullRequest | 'none';
  /** Where it was looked for. */
  place?: { readonly pulls: PullRequests; readonly branch: string };
}

/**
 * Proposals that have ended lately, each with a pull request of its own: their pull requests get the last text, also where a process ended before it
 * had written it, commands that come too late get a reply, and one that a user opens again has its draft proposed again. What is here decides only
 * what to look at; a new process finds it in the records of the revisions.
 */
export class EndedProposals {
  readonly #context: EndedContext;
  /** By repository, then by revision. */
  readonly #ended = new Map<string, Map<string, Ended>>();

  constructor(context: EndedContext) {
    this.#context = context;
  }

  /** Wakes once for the repositories in which proposals have ended lately: an earlier process may have left something to do. */
  source(): Source<ObjectKey> {
    return watchKind(packageRevisionKind, {
      predicate: ({ type, object }) => type === 'add' && this.#takeOver(keyOf(object)),
      map: ({ object }) => [repositoryOf(keyOf(object))],
    });
  }

  /** A proposal has ended that this process has followed. */
  note({ key, last, commands }: Shown): void {
    this.#add({ key, ...(last === undefined ? {} : { last }), commands, atMs: this.#context.clock.now() });
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
        if (pull !== undefined) await this.#look(ended, { review: about.review, now }, pulls, pull, signal);
        ended.looked = (await pulls.ofBranch(branch, signal)) ?? 'none';
      }
      const mayReopen = now !== undefined && isRejectedByEnd(now) && pulls.forge.reopensWithoutBranch;
      if (clock.now() - ended.atMs > (mayReopen ? REOPEN_MS : REPLY_MS)) this.#drop(ended);
    }
  }

  async #look(
    { key, commands, last }: Ended,
    { review, now }: { readonly review: ReviewPolicy; readonly now: Revision | undefined },
    pulls: PullRequests,
    pull: PullRequest,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, store, events } = this.#context;
    try {
      if (pull.state === 'open' && now?.lifecycle === 'Draft') {
        const context = { client, store, events, signal };
        await proposeAgain(context, pulls, store.repositoryOf(now), pull, async () => [now.name]);
        if (store.find(keyText(key))?.lifecycle === 'Proposed') return;
      }
      const marked = proposalsIn(pull.body);
      if (marked.length > 0 && !isEnd(sectionOf(pull.body) ?? '')) {
        const body = withSection(pull.body, marked, endText(key, pull, now));
        pulls.note(await pulls.forge.update(pull.number, { body }, signal));
      }
      const before = last?.revision;
      await replyToLate({ key, now, before, review, pull, forge: pulls.forge, commands }, signal);
    } catch (error) {
      // What a user has locked or deleted must not hold up the others.
      if (!isPermanent(error)) throw error;
    }
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
    const at = revision === undefined ? Number.NaN : Date.parse(endStepOf(revision)?.at ?? '');
    if (!(clock.now() - at <= REOPEN_MS)) return false;
    if (this.#ended.get(keyText(repositoryOf(key)))?.has(keyText(key)) === true) return false;
    this.#add({ key, atMs: at });
    return true;
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

/** The branch of its proposal, whatever it is now. */
function branchOf(store: Pick<RevisionStore, 'repositoryOf'>, revision: Revision): string {
  return proposedRef(store.repositoryOf(revision).layout, revision.key).slice('refs/heads/'.length);
}
