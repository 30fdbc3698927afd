import type { Comment, Forge, PullRequest } from '../../../src/forge/forge.ts';
import { isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import { counted } from '../../../src/foundation/text/counted.ts';
import { revisionName } from '../../../src/package/model/identity/identity.ts';
import type { ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { PackageRevision } from '../../../src/package/model/revision/package-revision.ts';
import type { PackageRepository } from '../../../src/package/store/package-repository.ts';
import type { RevisionStore } from '../../../src/package/store/revision-store.ts';
import type { Actor, RequestContext } from '../../../src/resource/object/request-context.ts';
import { isEdited } from '../../pull-request/commands/edited-comments.ts';
import { approverAt } from '../../pull-request/reviews/approver-at.ts';
import type { MayCreate } from '../../pull-request/rights.ts';
import { inlineCode, plainLine } from '../../pull-request/text/quote.ts';
import { isAdopted, PULL_ANNOTATION, PULL_COMMIT_ANNOTATION } from './adopted-draft.ts';

/** Packages that a refusal names. */
const MAX_NAMED = 5;

const COMMAND = /^ {0,3}\/sluice[ \t]+adopt(?:[ \t]+([0-9a-f]{7,64}))?[ \t]*(?:\n|$)/i;

/** The workspace of the drafts of a pull request. */
export function workspaceOf(number: number): string {
  return `pr-${number}`;
}

export interface AdoptRequest {
  readonly author: string;
  /** The commit that the author has seen, or the beginning of it. */
  readonly commit: string | undefined;
  readonly url: string;
  readonly comment: Comment;
}

/**
 * The requests for adoption in the comments of a pull request, the last one first. One that was edited does not count: on some hosts others may edit
 * the comments of a user.
 */
export function adoptRequestsIn(comments: readonly Comment[]): readonly AdoptRequest[] {
  return comments.toReversed().flatMap((comment) => {
    const { author, body, url } = comment;
    const found = COMMAND.exec(body);
    return found === null || isEdited(comment) || !/^\d{1,30}$/.test(comment.id)
      ? []
      : [{ author, commit: found[1]?.toLowerCase(), url, comment }];
  });
}

/** Packages of one Repository with the same policy, by names relative to the directory of the repository. */
export interface PolicyPackages {
  /** The one that has them. */
  readonly repository: PackageRepository;
  readonly review: ReviewPolicy;
  readonly names: readonly string[];
}

/** The packages of a request of one policy, and the user in whose name it counts for these. */
export interface AuthorizedPackages extends PolicyPackages {
  readonly actor: Actor;
}

export interface AdoptionRules {
  /** The branch was not pushed to the repository. */
  readonly isRestricted: boolean;
  /** Where the members of the teams of a policy are read. */
  teamsOf(review: ReviewPolicy, namespace: string): Pick<Forge, 'isTeamMember'>;
  readonly mayCreate: MayCreate | undefined;
}

/**
 * In whose name a request counts for the packages of each policy, or why it does not. Each policy decides about its packages; without the permission
 * of one of them the request counts for none.
 */
export async function authorizeAdoption(
  { author, commit }: AdoptRequest,
  pull: PullRequest,
  wanted: readonly PolicyPackages[],
  { isRestricted, teamsOf, mayCreate }: AdoptionRules,
  signal: AbortSignal,
): Promise<{ readonly authorized: readonly AuthorizedPackages[] } | { readonly refusal: string }> {
  const authorized: AuthorizedPackages[] = [];
  const unmapped: PolicyPackages[] = [];
  for (const { repository, review, names } of wanted) {
    const { actor } = (await approverAt(teamsOf(review, repository.namespace), review, author, signal)) ?? {};
    if (actor === undefined) unmapped.push({ repository, review, names });
    else authorized.push({ repository, review, names, actor });
  }
  if (unmapped.length > 0) {
    const policies = unmapped.map(
      ({ review, names }) =>
        `spec.review.approvers of the policy ${review.policy}, which selects ${counted(names.length, 'package')} (${listOf(names)}), does not list ${plainLine(author, 100)}`,
    );
    return { refusal: policies.join('; ') };
  }
  for (const { repository, actor, names } of authorized)
    if (mayCreate !== undefined && !(await mayCreate(actor, repository.namespace, signal)))
      return {
        refusal: `User "${actor.name}" may not create packagerevisions in this namespace, such as of ${listOf(names)}; grant that right`,
      };
  const head = pull.head.commit;
  // What a stranger pushes after the request was not seen by its author, and two commits with the same beginning are made in seconds.
  if (isRestricted && commit?.length !== head.length)
    return { refusal: `the branch was not pushed to this repository; name the whole commit: /sluice adopt ${head}` };
  if (commit !== undefined && !head.startsWith(commit))
    return { refusal: `the branch is at ${head.slice(0, 12)} now, and not at ${commit}; request it again` };
  return { authorized };
}

function listOf(names: readonly string[]): string {
  const more = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : '';
  return `${names
    .slice(0, MAX_NAMED)
    .map((name) => plainLine(name, 100))
    .join(', ')}${more}`;
}

export interface Adoption {
  readonly store: Pick<RevisionStore, 'find' | 'change'>;
  readonly repository: PackageRepository;
  readonly pull: PullRequest;
  /** Names of packages, relative to the directory of the repository. */
  readonly packages: readonly string[];
  readonly context: RequestContext;
}

/**
 * Makes the head of a pull request the tip of a draft for each package. Drafts that exist stay as they are, so that a repetition changes nothing;
 * one that is not of the pull request is a problem. Returns what could not be adopted, in Markdown.
 */
export async function adoptPackages({
  store,
  repository,
  pull,
  packages,
  context,
}: Adoption): Promise<readonly string[]> {
  const problems: string[] = [];
  const workspace = workspaceOf(pull.number);
  for (const name of packages) {
    const id = `${repository.namespace}/${revisionName({ repository: repository.repository, package: name, workspace })}`;
    try {
      if (store.find(id) === undefined)
        await repository.writes.createAt({ package: name, workspace, commit: pull.head.commit }, context);
      const draft = store.find(id);
      if (draft !== undefined && !(await isAdopted(repository, draft, pull.head.commit, context.signal))) {
        problems.push(`${inlineCode(name)} was not adopted: ${describeOther(draft, pull)}`);
        continue;
      }
      // A process can have ended between the two writes.
      if (draft?.lifecycle !== 'Draft' || draft.record?.annotations?.[PULL_ANNOTATION] !== undefined) continue;
      const annotations = {
        ...draft.record?.annotations,
        ...{ [PULL_ANNOTATION]: pull.url, [PULL_COMMIT_ANNOTATION]: draft.commit },
      };
      await store.change(id, { metadata: { annotations }, recordPush: true }, context);
    } catch (error) {
      if (!isSluiceError(error) || !REPORTED.has(error.code)) throw error;
      problems.push(`${inlineCode(name)} was not adopted: ${inlineCode(messageOf(error), 500)}`);
    }
  }
  return problems;
}

/**
 * Why a draft is not the adopted one. Each user who may change it can write its annotations, so that these decide nothing; but what may have been
 * adopted before a force-push is work of users, who must not be led to delete it.
 */
function describeOther({ name, record }: PackageRevision, { url, head }: PullRequest): string {
  const draft = inlineCode(name);
  const { [PULL_ANNOTATION]: of, [PULL_COMMIT_ANNOTATION]: began } = record?.annotations ?? {};
  const differs = `has neither the content nor the commits of ${inlineCode(head.commit.slice(0, 12))}, the present head`;
  if (of === url && began !== undefined)
    return `by its annotations the draft ${draft} was adopted from this pull request at ${inlineCode(began.slice(0, 12))}; it ${differs}, as after a force-push to the branch. The draft stays as it is, and can be continued: push to it what it lacks of the head. To begin again at the head, first save the changes that only the draft has, then delete it and request the adoption again`;
  return `${draft} has the name of its draft, and ${differs}, so that it is not known to be of this pull request. It may be the work of another user: ask its creator. Once it is not needed any more and deleted, request the adoption again`;
}

/** Failures that only a user can change; others are tried again. */
const REPORTED: ReadonlySet<string> = new Set([
  'InvalidInput',
  'AlreadyExists',
  'Refused',
  'PushRefused',
  'LimitExceeded',
]);
