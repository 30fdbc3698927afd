import type { Forge } from '../../../src/forge/forge.ts';
import { type ErrorCode, isSluiceError, messageOf } from '../../../src/foundation/sluice-error.ts';
import { approverOf, type ReviewPolicy } from '../../../src/package/model/policy/review-policy.ts';
import type { ObjectKey } from '../../../src/resource/object/object.ts';
import type { Actor } from '../../../src/resource/object/request-context.ts';
import type { MayApprove } from '../rights.ts';
import { plainLine } from '../text/quote.ts';

/** A user of Sluice, as a user of the host acts in its name. */
export interface Approver {
  readonly actor: Actor;
  /** Why groups of teams may be missing; empty if none is, else it begins with a semicolon. */
  readonly problem: string;
}

/** The same with the question whether that user may approve one revision, as through the API. */
export interface RevisionApprover extends Approver {
  mayApprove(): Promise<boolean>;
}

export interface ApproverContext {
  readonly forge: Pick<Forge, 'isTeamMember'>;
  readonly mayApprove: MayApprove | undefined;
  readonly signal: AbortSignal;
}

/** In whose name a user of the host reviews or merges a revision; undefined if the policy maps that user to none. */
export async function revisionApprover(
  { forge, mayApprove, signal }: ApproverContext,
  review: Pick<ReviewPolicy, 'approvers' | 'teams'>,
  login: string | undefined,
  revision: ObjectKey,
): Promise<RevisionApprover | undefined> {
  const approver = await approverAt(forge, review, login, signal);
  if (approver === undefined) return undefined;
  const may = async () => mayApprove === undefined || (await mayApprove(approver.actor, revision, signal));
  return { ...approver, mayApprove: may };
}

/** Failures that only a user can change: the team does not count. Others are repeated, so that an outage decides nothing. */
const FINAL: ReadonlySet<ErrorCode> = new Set(['NotFound', 'Refused', 'InvalidInput', 'Corrupt', 'LimitExceeded']);

/**
 * The user of Sluice who a user of the host is, with the groups of the entry in the policy and of the teams that this user is a member of now. The
 * host is read each time, so that a user who left a team has lost its groups. Teams alone map no user: rules about people compare
 * subjects, and a member without one could approve what the same person proposed under another name.
 */
export async function approverAt(
  forge: Pick<Forge, 'isTeamMember'>,
  { approvers, teams = [] }: Pick<ReviewPolicy, 'approvers' | 'teams'>,
  login: string | undefined,
  signal: AbortSignal,
): Promise<Approver | undefined> {
  const actor = approverOf(approvers, login);
  if (actor === undefined || login === undefined) return undefined;
  const groups = new Set(actor.groups);
  const problems: string[] = [];
  for (const { team, groups: given } of teams) {
    if (given.every((group) => groups.has(group))) continue;
    try {
      if (await forge.isTeamMember(team, login, signal)) for (const group of given) groups.add(group);
    } catch (error) {
      if (!isSluiceError(error) || !FINAL.has(error.code)) throw error;
      problems.push(`; the members of team ${team} cannot be read: ${plainLine(messageOf(error), 300)}`);
    }
  }
  const { name } = actor;
  return { actor: groups.size === 0 ? { name } : { name, groups: [...groups] }, problem: problems.join('') };
}
