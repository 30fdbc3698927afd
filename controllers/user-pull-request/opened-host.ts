import type { Forge } from '../../src/forge/forge.ts';
import type { SharedLists } from '../../src/forge/shared-lists.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import type { ReviewPolicy } from '../../src/package/model/policy/review-policy.ts';
import type { PackageRepository } from '../../src/package/store/package-repository.ts';
import { listsOf, type OpenForge } from '../pull-request/opened-repositories.ts';
import type { OwnBranches } from '../pull-request/own-branch.ts';
import { UserPulls } from './reading/user-pulls.ts';
import type { Registration } from './registrations/registrations.ts';

/** Where the members of teams are read. */
export type Teams = Pick<Forge, 'isTeamMember'>;

export interface HostOptions {
  readonly openForge: OpenForge;
  readonly lists: SharedLists;
  readonly isOwn: OwnBranches;
}

/**
 * A repository on its host. Policies may name the host with several credentials or addresses. Those of the oldest policy are used for the pull
 * requests: the check and the comments of a pull request are about all of its packages, so that one of them writes these. Teams are read with the
 * credentials of the policy that lists them.
 */
export class OpenedHost {
  readonly pulls: UserPulls;
  readonly #lead: string;
  readonly #forges = new Map<string, Forge>();
  readonly #open: (review: ReviewPolicy, namespace: string) => Forge;

  private constructor(pulls: UserPulls, lead: string, open: (review: ReviewPolicy, namespace: string) => Forge) {
    this.pulls = pulls;
    this.#lead = lead;
    this.#open = open;
  }

  /** Opens the repository by the oldest policy on whose host it is. Throws InvalidInput if it is on none. */
  static open(
    repository: PackageRepository,
    reviews: readonly ReviewPolicy[],
    { openForge, lists, isOwn }: HostOptions,
  ): OpenedHost {
    const { namespace, url, layout } = repository;
    let problem: unknown;
    for (const review of oldestOfEach(reviews)) {
      try {
        const forge = openForge(review, namespace, url);
        const reader = lists.reader(listsOf(namespace, url, review));
        const pulls = new UserPulls(forge, { base: layout.branch, isOwn }, reader, repository.clock);
        return new OpenedHost(pulls, idOf(repository, review), (other, of) => openForge(other, of, url));
      } catch (error) {
        if (!isSluiceError(error, 'InvalidInput')) throw error;
        problem ??= error;
      }
    }
    throw problem;
  }

  /** Whether these policies still name what is open. A policy that is older than that of it makes no difference. */
  isNamedBy(repository: PackageRepository, reviews: readonly ReviewPolicy[]): boolean {
    return reviews.some((review) => idOf(repository, review) === this.#lead);
  }

  /** Those of a policy of a namespace. Failures to open its host are those of the call. */
  teamsOf(review: ReviewPolicy, namespace: string): Teams {
    return {
      isTeamMember: async (team, user, signal) => {
        const id = teamsId(review, namespace);
        const forge = this.#forges.get(id) ?? this.#open(review, namespace);
        this.#forges.set(id, forge);
        return forge.isTeamMember(team, user, signal);
      },
    };
  }

  /** Closes where teams were read for other policies than these. */
  async retain(registrations: readonly Pick<Registration, 'key' | 'reviews'>[]): Promise<void> {
    const used = new Set(
      registrations.flatMap(({ key, reviews }) => reviews.map((one) => teamsId(one, key.namespace ?? ''))),
    );
    for (const [id, forge] of this.#forges) {
      if (used.has(id)) continue;
      this.#forges.delete(id);
      await forge.close();
    }
  }

  async close(): Promise<void> {
    await this.retain([]);
    await this.pulls.close();
  }
}

/** One for each host and its credentials, the oldest first. */
function oldestOfEach(reviews: readonly ReviewPolicy[]): readonly ReviewPolicy[] {
  const age = ({ createdAt = '', policy }: ReviewPolicy) => `${createdAt} ${policy}`;
  const found = new Map<string, ReviewPolicy>();
  for (const review of reviews.toSorted((a, b) => (age(a) < age(b) ? -1 : 1))) {
    const id = JSON.stringify(review.forge);
    if (!found.has(id)) found.set(id, review);
  }
  return [...found.values()];
}

function idOf({ url, layout }: PackageRepository, { forge }: ReviewPolicy): string {
  return JSON.stringify([url, layout.branch, forge]);
}

function teamsId({ forge }: ReviewPolicy, namespace: string): string {
  return JSON.stringify([namespace, forge]);
}
