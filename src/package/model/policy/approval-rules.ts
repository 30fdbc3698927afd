import { timestamp } from '../../../foundation/time/clock.ts';
import type { Recurrence } from '../../../foundation/time/recurrence.ts';

/** Where a policy is that was read from a repository. */
export interface PolicyOrigin {
  /** Name of the policy in its file. */
  readonly name: string;
  /** Name of the Repository. */
  readonly repository: string;
  readonly branch: string;
  /** Path of the file in the repository. */
  readonly file: string;
  /** The commit at which it was read. */
  readonly commit: string;
}

/** Policies of a repository that cannot be read: then nothing is known of what they require, and no approval is permitted. */
export interface RuleProblem {
  /** One sentence without its end. */
  readonly message: string;
  /** RFC 3339. */
  readonly since: string;
  readonly resolvedBy: string;
}

/** The rules for approvals of one policy. */
export interface ApprovalRule {
  /** Name of the policy; of another namespace, `<namespace>/<name>`. */
  readonly policy: string;
  /** Set for a policy that was read from a repository. */
  readonly origin?: PolicyOrigin | undefined;
  /** Why the rules are not known; all approvals are blocked then. */
  readonly problem?: RuleProblem | undefined;
  readonly quorum?: Quorum | undefined;
  /** One of them must be active; empty: any time. */
  readonly windows: readonly NamedRecurrence[];
  /** None of them may be active. */
  readonly freezes: readonly NamedRecurrence[];
  readonly soak: {
    /** Milliseconds since the proposal. */
    readonly proposedMs?: number | undefined;
    /** Milliseconds since the publication of the previous revision. */
    readonly sincePublishedMs?: number | undefined;
  };
  readonly maxInFlight?: number | undefined;
  /** The revisions that are in flight under the policy, by name, without the one that is decided. Read only where a maximum is set. */
  readonly inFlight: readonly RevisionInFlight[];
}

export interface RevisionInFlight {
  readonly name: string;
  /** Milliseconds since the epoch; absent for one whose approval is being decided. */
  readonly publishedAt?: number | undefined;
}

export interface NamedRecurrence extends Recurrence {
  /** Text of the policy for those who wait. */
  readonly reason?: string | undefined;
}

export interface Quorum {
  readonly required: number;
  /** Names, or `group:<name>`; empty: all users who may approve. */
  readonly from: readonly string[];
  readonly excludeProposer: boolean;
  readonly excludeContributors: boolean;
  /** Set if only approvals that were given in this other namespace count; see `EffectivePolicy.alsoApprovedIn`. */
  readonly namespace?: string | undefined;
}

/** A Freeze object that applies to a revision or target. It is in force until its end. */
export interface FreezeRule {
  readonly name: string;
  readonly namespace: string;
  /** Whether it is one of the whole installation. */
  readonly isInstallation: boolean;
  readonly reason: string;
  readonly startedBy?: string | undefined;
  /** RFC 3339. */
  readonly since: string;
  /** Milliseconds since the epoch; absent: until it is deleted. */
  readonly until?: number | undefined;
}

/** The groups of a user that quorums name: only these are recorded with an approval. */
export function groupsForQuorums(
  rules: readonly ApprovalRule[],
  groups: readonly string[] = [],
): { readonly groups?: string[] } {
  const named = new Set(rules.flatMap(({ quorum }) => quorum?.from ?? []));
  const counted = [...new Set(groups)].filter((group) => named.has(`group:${group}`)).sort();
  return counted.length === 0 ? {} : { groups: counted };
}

/** The freezes that are in force at a time; all of them at a time that is none. */
export function freezesAt(freezes: readonly FreezeRule[], now: number): FreezeRule[] {
  return freezes.filter(({ until }) => until === undefined || !(until <= now));
}

/** The freezes that are in force now, or were at an earlier time; both in milliseconds since the epoch. */
export function freezesAtOrSince(freezes: readonly FreezeRule[], then: number, now: number): FreezeRule[] {
  const present = new Set(freezesAt(freezes, now));
  return freezesAt(freezes, then).filter((freeze) => present.has(freeze) || Date.parse(freeze.since) <= then);
}

/** The largest time of a date. */
const MAX_TIME_MS = 8.64e15;

/** What a warning about a freeze begins with. */
export const FROZEN_PREFIX = 'FROZEN: ';

/** Warnings about the freezes in force at a time in milliseconds since the epoch, for users of what they stop. */
export function freezeWarnings(freezes: readonly FreezeRule[], now: number): string[] {
  return freezesAt(freezes, now).map((freeze) => `${FROZEN_PREFIX}${freezeText(freeze)}`);
}

/** One sentence without its end: which freeze, why, by whom, and how it ends. */
export function freezeText({ name, namespace, isInstallation, reason, startedBy, since, until }: FreezeRule): string {
  const where = isInstallation ? 'all namespaces are' : `namespace ${namespace} is`;
  const by = startedBy === undefined ? '' : ` by ${startedBy}`;
  const isDate = until !== undefined && Math.abs(until) <= MAX_TIME_MS;
  const end = isDate ? timestamp(until) : 'it is ended';
  return `${where} frozen by Freeze ${namespace}/${name} since ${since}${by} until ${end} (${reason})`;
}
