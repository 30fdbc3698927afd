import { commandLine } from '../../../src/foundation/text/command-line.ts';
import { listed } from '../../../src/foundation/text/counted.ts';
import { approverOf, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { BlockingRule } from '../../../src/package/model/revision/revision-state.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';
import type { Actor } from '../../../src/resource/object/request-context.ts';
import type { MayApprove } from '../rights.ts';

/** Users whose rights are asked for; the others count as users who may approve. */
const MAX_ASKED = 10;
/** Users that a message names. */
const MAX_NAMED = 5;

/** The users whom a policy maps, by whether they may approve a revision. */
export interface MappedRights {
  /** Those whose reviews and merges count as no approval, since they may not. */
  readonly without: readonly Actor[];
  /** The policy maps users, and none of them may. */
  readonly isNone: boolean;
}

export const ALL_MAY: MappedRights = { without: [], isNone: false };

/** Which mapped users may approve a revision; where that is not known, all. */
export async function mappedRights(
  { knownRights, signal }: { readonly knownRights: MayApprove | undefined; readonly signal: AbortSignal },
  review: Pick<ReviewPolicy, 'approvers' | 'teams'>,
  revision: ObjectKey,
): Promise<MappedRights> {
  const mapped = mergersOf(review);
  if (knownRights === undefined || mapped.length === 0) return ALL_MAY;
  const without: Actor[] = [];
  for (const actor of mapped.slice(0, MAX_ASKED))
    if (!(await knownRights(actor, revision, signal))) without.push(actor);
  return { without, isNone: without.length === mapped.length };
}

/** The users whose merge can be an approval. Which teams they are in is not known before: they may be in all. */
export function mergersOf({ approvers, teams = [] }: Pick<ReviewPolicy, 'approvers' | 'teams'>): readonly Actor[] {
  const ofTeams = teams.flatMap(({ groups }) => groups);
  const actors = new Map<string, Actor>();
  for (const { user } of approvers) {
    const actor = approverOf(approvers, user);
    if (actor === undefined) continue;
    const groups = [...new Set([...(actors.get(actor.name)?.groups ?? []), ...(actor.groups ?? []), ...ofTeams])];
    actors.set(actor.name, { name: actor.name, ...(groups.length === 0 ? {} : { groups }) });
  }
  return [...actors.values()];
}

/** The entries of a policy for users who may approve, as far as that is known. */
export function countedApprovers(
  approvers: ReviewPolicy['approvers'],
  { without }: MappedRights,
): ReviewPolicy['approvers'] {
  const names = new Set(without.map(({ name }) => name));
  return approvers.filter(({ subject }) => !names.has(subject));
}

/** Which mapped users may not approve, and what follows; undefined if all may. */
export function withoutRightText(
  { approvers, policy, publishOn }: Pick<ReviewPolicy, 'approvers' | 'policy' | 'publishOn'>,
  { without, isNone }: MappedRights,
): string | undefined {
  if (without.length === 0) return undefined;
  const names = listed(
    without.map(({ name }) => namedOnHost(name, approvers)),
    MAX_NAMED,
  );
  const who = isNone
    ? `no user whom spec.review.approvers of the policy ${policy} lists may approve it yet: ${names}`
    : `of the users whom spec.review.approvers of the policy ${policy} lists, these may not approve it: ${names}`;
  const merges = publishOn === 'merge' ? ', and a merge by one of them is out of band' : '';
  return `${who} (update of packagerevisions/approval), so that their reviews count as no approval${merges}`;
}

/** A user with the names on the host, where a policy maps it. */
export function namedOnHost(name: string, approvers: ReviewPolicy['approvers']): string {
  const users = approvers.filter(({ subject }) => subject === name).map(({ user }) => user);
  return users.length === 0 || (users.length === 1 && users[0] === name) ? name : `${users.join(' and ')} (${name})`;
}

/** The rule that no review or merge of a mapped user publishes a proposal, since none of them may approve it; none if one may. */
export function noApproverRules(
  review: Pick<ReviewPolicy, 'approvers' | 'policy' | 'publishOn'>,
  rights: MappedRights,
  namespace: string | undefined,
): readonly BlockingRule[] {
  const message = rights.isNone ? withoutRightText(review, rights) : undefined;
  if (message === undefined) return [];
  const resolvedBy = `users who may grant that right: ${permitCommand(review.policy, namespace, rights.without)}`;
  return [{ rule: 'NotPermitted', policy: review.policy, message, resolvedBy }];
}

/** The command that gives these users the right to approve in a namespace. */
export function permitCommand(policy: string, namespace = '', users: readonly Actor[]): string {
  const binding = `${policy.replaceAll(/[^a-z0-9.-]/g, '-')}-approvers`;
  const create = ['kubectl', 'create', 'rolebinding', binding, '--namespace', namespace];
  return commandLine([...create, '--clusterrole=sluice:approver', ...users.map(({ name }) => `--user=${name}`)]);
}
