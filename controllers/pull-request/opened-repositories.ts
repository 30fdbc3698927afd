import type { Forge } from '../../src/forge/forge.ts';
import type { SharedLists } from '../../src/forge/shared-lists.ts';
import type { Clock } from '../../src/foundation/time/clock.ts';
import type { ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import { type PackageRevision, repositoryIdOf } from '../../src/package/model/revision/package-revision.ts';
import type { RevisionStore } from '../../src/package/store/revision-store.ts';
import { keyText, type ObjectKey } from '../../src/resource/object/object.ts';
import { PullRequests } from './pull-requests.ts';

/**
 * Opens the repository of an address on the host of a policy, with the rights to merge only if they are requested. Rejects with InvalidInput if
 * the host does not have it.
 */
export type OpenForge = (review: ReviewPolicy, namespace: string, address: string, mayMerge?: boolean) => Forge;

/** What shows the repository of a revision. */
type Revision = Pick<PackageRevision, 'key' | 'namespace'>;

/** The repositories on hosts that proposals use, each opened once. */
export class OpenedRepositories {
  readonly #store: Pick<RevisionStore, 'repositoryOf'>;
  readonly #openForge: OpenForge;
  readonly #clock: Clock;
  readonly #lists: SharedLists;
  /** By repository, then by its address and branch, and the host of the policy. */
  readonly #opened = new Map<string, Map<string, PullRequests>>();
  /** Those with work in progress, and how much. */
  readonly #working = new Map<PullRequests, number>();

  constructor(store: Pick<RevisionStore, 'repositoryOf'>, openForge: OpenForge, clock: Clock, lists: SharedLists) {
    this.#store = store;
    this.#clock = clock;
    this.#lists = lists;
    this.#openForge = openForge;
  }

  /** Does work with the repository of a revision on the host of a policy, which stays open until the work has ended. */
  async use<Result>(
    revision: Revision,
    review: ReviewPolicy,
    work: (pulls: PullRequests) => Promise<Result>,
  ): Promise<Result> {
    const pulls = this.of(revision, review);
    this.#working.set(pulls, (this.#working.get(pulls) ?? 0) + 1);
    try {
      return await work(pulls);
    } finally {
      const left = (this.#working.get(pulls) ?? 1) - 1;
      if (left === 0) this.#working.delete(pulls);
      else this.#working.set(pulls, left);
    }
  }

  /** The same as `of`; undefined if it is not open. */
  find(revision: Revision, review: ReviewPolicy): PullRequests | undefined {
    return this.#opened.get(repositoryIdOf(revision))?.get(this.#idOf(revision, review));
  }

  of(revision: Revision, review: ReviewPolicy): PullRequests {
    const known = this.find(revision, review);
    if (known !== undefined) return known;
    const { url, layout } = this.#store.repositoryOf(revision);
    const ofRepository = this.#opened.get(repositoryIdOf(revision)) ?? new Map<string, PullRequests>();
    this.#opened.set(repositoryIdOf(revision), ofRepository);
    const { namespace } = revision;
    const forge = this.#openForge(review, namespace, url);
    const pulls = new PullRequests(forge, layout.branch, this.#clock, {
      lists: this.#lists.reader(listsOf(namespace, url, review)),
      openMerging: () => this.#openForge(review, namespace, url, true),
    });
    ofRepository.set(this.#idOf(revision, review), pulls);
    return pulls;
  }

  /** With teams too: a token of a GitHub App is for what it was opened for. */
  #idOf(revision: Revision, { forge, teams = [] }: ReviewPolicy): string {
    const { url, layout } = this.#store.repositoryOf(revision);
    return JSON.stringify([url, layout.branch, forge, teams.length > 0]);
  }

  /** Closes what no proposal uses any more: the last one has ended, or the policy names another host. */
  async closeUnused(repository: ObjectKey, used: ReadonlySet<PullRequests>): Promise<void> {
    const ofRepository = this.#opened.get(keyText(repository));
    for (const [id, pulls] of ofRepository ?? []) {
      if (used.has(pulls) || this.#working.has(pulls)) continue;
      ofRepository?.delete(id);
      await pulls.close();
    }
    if (ofRepository?.size === 0) this.#opened.delete(keyText(repository));
  }
}

/**
 * The name of the lists of a repository on the host of a policy, which all that read it share, also several Repositories of it in a namespace: their
 * policies have the same credentials.
 */
export function listsOf(namespace: string, address: string, { forge }: Pick<ReviewPolicy, 'forge'>): string {
  return JSON.stringify([namespace, address, forge]);
}
