import type { Actor } from '../../../resource/object/request-context.ts';

/**
 * A gate for approvals wherever a policy has `spec.review`: True once the reviews of the pull request were read, and none requests changes. It is
 * always required, so that neither a push that removes the condition nor a host that does not respond opens it.
 */
export const REVIEWED_TYPE = 'sluice.dev/Reviewed';
/** The only issuer of that condition. */
export const REVIEW_ACTOR = 'controller:pull-request';

/** Why a verdict of this type by an actor never counts, whatever the policies permit; undefined if they decide. */
export function refuseReviewer(conditionType: string, actor: string): string | undefined {
  return conditionType === REVIEWED_TYPE && actor !== REVIEW_ACTOR
    ? `only Sluice sets ${REVIEWED_TYPE}, by the reviews of a pull request (spec.review of a PackagePolicy)`
    : undefined;
}

/** A user of the host, and the user and groups that this one is in Sluice. */
export interface ReviewApprover {
  readonly user: string;
  readonly subject: string;
  readonly groups?: readonly string[] | undefined;
}

/** How proposals are reviewed in pull requests; `spec.review` of one PackagePolicy. */
export interface ReviewPolicy {
  /** Name of the policy. */
  readonly policy: string;
  /** When the policy was created, RFC 3339. */
  readonly createdAt?: string | undefined;
  readonly forge: {
    readonly provider: 'github' | 'gitea' | 'forgejo';
    /** Address of the API. */
    readonly api: string;
    /** A Secret in the namespace of the policy. */
    readonly secretRef: { readonly name: string; readonly key: string };
  };
  readonly publishOn: 'approval' | 'review' | 'merge';
  /**
   * Since when merges in the repository publish by it: those that are part of this commit of the main branch were made before. Of a policy that was
   * not changed since its creation, only those that the host made before `createdAt`, the later of the creation of the policy and of the Repository.
   * `ofUsers` is since when those of users do, if that differs. Undefined until that is recorded; with `approval`, as soon as the end is.
   */
  readonly mergesSince?:
    | {
        readonly commit?: string | undefined;
        readonly createdAt?: string | undefined;
        readonly ofUsers?: { readonly commit?: string | undefined } | undefined;
      }
    | undefined;
  /** How the host merges where Sluice cannot push to the main branch. */
  readonly mergeMethod: 'merge' | 'squash' | 'rebase';
  /** Whose reviews count, and as whose approval. */
  readonly approvers: readonly ReviewApprover[];
  /** Teams of the host, and the groups that their members among the approvers are in. */
  readonly teams?: readonly { readonly team: string; readonly groups: readonly string[] }[] | undefined;
  /** Proposals of a repository share pull requests of at most so many; undefined for one each. */
  readonly batch?: { readonly maxPackages: number } | undefined;
  readonly reviewers: { readonly users: readonly string[]; readonly teams: readonly string[] };
  /** Of the pull requests that Sluice opens; the text is in front of its section. */
  readonly titleTemplate?: string | undefined;
  readonly bodyTemplate?: string | undefined;
  readonly labels: readonly string[];
  /** What happens with pull requests that users open. */
  readonly userPullRequests: 'check' | 'adopt' | 'ignore';
  /** Types of the gates with a check of their own. */
  readonly gateChecks: readonly string[];
}

/** The user of Sluice who a user of the host is. The first entry counts: one user must not be two subjects. */
export function approverOf(approvers: readonly ReviewApprover[], login: string | undefined): Actor | undefined {
  // Names of users are case-insensitive on all hosts.
  const found = approvers.find(({ user }) => user.toLowerCase() === login?.toLowerCase());
  if (found === undefined) return undefined;
  const { subject: name, groups = [] } = found;
  return groups.length === 0 ? { name } : { name, groups };
}

/**
 * Returns the one policy for reviews. Rules for reviews do not add up: with two of them it is unknown which users may approve, so that none
 * applies, and `reviewProblem` names both. It also names those of `selecting`, which require reviews, if none of them is among `policies`, by which
 * reviews may approve.
 */
export function reviewOf(
  policies: readonly ReviewPolicy[],
  selecting: readonly ReviewPolicy[] = policies,
): {
  readonly review?: ReviewPolicy;
  readonly reviewProblem?: string;
} {
  const [review, other] = policies;
  if (review === undefined) {
    if (selecting.length === 0) return {};
    const names = selecting.map(({ policy }) => policy).sort();
    const reviewProblem = `no pull request is opened: whether spec.review of the policies ${names.join(', ')} applies depends on labels in the Kptfile, or on labels or owners that a user without the right to approve wrote; let a user who may approve set the labels on the package revision, or change the selectors`;
    return { reviewProblem };
  }
  if (other === undefined) return { review };
  const names = policies.map(({ policy }) => policy).sort();
  const reviewProblem = `the policies ${names.join(', ')} all have spec.review for it, so that none of them applies, and no pull request is opened or read; remove spec.review from all but one, or change their selectors`;
  return { reviewProblem };
}
