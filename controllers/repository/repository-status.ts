import { timestamp } from '../../src/foundation/time/clock.ts';
import type { RemoteNote } from '../../src/git/git-repository.ts';
import type { RefusedPush } from '../../src/package/transaction/refusal-notes.ts';
import {
  POLICIES_CONDITION,
  type PoliciesReport,
  PUSHES_CONDITION,
  policyFolderOf,
  type Repository,
  TRANSPORT_CONDITION,
  TRUST_CONDITION,
} from '../../src/resource/kinds/porch/repository.ts';
import { type Condition, findCondition, type NewCondition, setCondition } from '../../src/resource/object/condition.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';

export interface RepositoryReport {
  readonly reason: 'Ready' | 'Error' | 'Reconciling';
  readonly message: string;
  /** The state of its policies, if it names some. */
  readonly policies?: PoliciesReport | undefined;
  /** Facts of the last complete sync, if there was one. */
  readonly facts?: {
    readonly packageCount: number;
    readonly gitCommitHash: string | undefined;
    /** Milliseconds since the epoch. */
    readonly syncedAt: number;
    readonly nextSyncAt: number;
    readonly ranOnceAt: string | undefined;
    /**
     * Time of the last webhook message in milliseconds since the epoch; undefined if none arrived since the repository was opened.
     */
    readonly webhookAt: number | undefined;
    /** See `GitRepository.remoteNote`. */
    readonly remoteNote: RemoteNote | undefined;
    /** Revisions whose last write a rule of the remote refused. */
    readonly refusedPushes: readonly RefusedPush[];
    /** Why this server can sign nothing; undefined if it can. */
    readonly signingProblem?: string | undefined;
    /** Problems of the keys that the repository trusts, with the one above. */
    readonly trustProblems: readonly string[];
    /** Problems of the statements about the repository itself. */
    readonly statementProblems: readonly string[];
  };
}

/** Revisions that the status names; `sluice why` shows the reason of each. */
const MAX_SHOWN_REFUSALS = 3;

/** Shortest interval between two writes that change times alone: in a cluster each is a write to etcd, which all watchers receive. */
const TIMES_INTERVAL_MS = 300_000;

/** The status after a report; undefined if it need not be written. */
export function repositoryStatusAfter(
  repository: Repository,
  { reason, message, policies, facts }: RepositoryReport,
  now: number,
): NonNullable<Repository['status']> | undefined {
  const { metadata, status: before } = repository;
  const { generation } = metadata;
  const ready = {
    type: 'Ready',
    status: reason === 'Ready' ? ('True' as const) : ('False' as const),
    reason,
    message,
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
  const { remoteNote } = facts ?? {};
  const isNamed = policyFolderOf(repository) !== undefined;
  const known = withPolicies(setCondition(before?.conditions, ready, now), isNamed, policies, now);
  const trusted = facts === undefined ? known : setCondition(known, trust(facts), now);
  const pushes = facts === undefined ? undefined : pushesAccepted(facts.refusedPushes, trusted);
  const conditions = pushes === undefined ? trusted : setCondition(trusted, pushes, now);
  const { policies: inForce, ...others } = before ?? {};
  // What cannot be read at present stays in force.
  const shownPolicies = policies?.inForce ?? (policies?.status === 'False' ? undefined : inForce);
  const status = {
    ...others,
    ...(isNamed && shownPolicies !== undefined ? { policies: shownPolicies } : {}),
    conditions: [...(remoteNote === undefined ? conditions : setCondition(conditions, transport(remoteNote), now))],
    ...(generation === undefined ? {} : { observedGeneration: generation }),
    ...(facts === undefined
      ? {}
      : {
          packageCount: facts.packageCount,
          gitCommitHash: facts.gitCommitHash,
          observedRunOnceAt: facts.ranOnceAt,
          lastFullSyncTime: timestamp(facts.syncedAt),
          nextFullSyncTime: timestamp(facts.nextSyncAt),
          ...(facts.webhookAt === undefined ? {} : { lastWebhookTime: timestamp(facts.webhookAt) }),
        }),
  };
  const isNews = !sameValue(withoutTimes(status), withoutTimes(before ?? {}));
  // Negative after the clock was set back.
  const isOld = (['lastFullSyncTime', 'lastWebhookTime'] as const).some((time) => {
    const age = timeOf(status, time) - timeOf(before, time);
    return age >= TIMES_INTERVAL_MS || age < 0;
  });
  return isNews || isOld ? status : undefined;
}

/** The reason of the condition Trust while the key of this server is missing or damaged. */
export const CANNOT_SIGN = 'CannotSign';

function trust({
  signingProblem,
  trustProblems,
  statementProblems,
}: NonNullable<RepositoryReport['facts']>): NewCondition {
  const problems = [...trustProblems, ...statementProblems];
  if (problems.length === 0) return { type: TRUST_CONDITION, status: 'True', reason: 'OwnKeyTrusted', message: '' };
  const keys = trustProblems.length > 0 ? 'KeyProblem' : 'StatementProblem';
  const reason = signingProblem === undefined ? keys : CANNOT_SIGN;
  return { type: TRUST_CONDITION, status: 'False', reason, message: problems.join('; ') };
}

/** What cannot be read at present says nothing new; without the annotation the condition is absent. */
function withPolicies(
  conditions: readonly Condition[],
  isNamed: boolean,
  report: PoliciesReport | undefined,
  now: number,
): readonly Condition[] {
  const type = POLICIES_CONDITION;
  if (!isNamed) return conditions.filter((one) => one.type !== type);
  const isKnown = findCondition(conditions, type) !== undefined;
  if (report === undefined || (report.status === 'Unknown' && isKnown)) return conditions;
  const { status, reason, message } = report;
  return setCondition(conditions, { type, status, reason, message }, now);
}

/** Persistent failures must be visible; without any failure the condition is absent. */
function pushesAccepted(
  refused: readonly RefusedPush[],
  known: readonly { readonly type: string }[],
): NewCondition | undefined {
  const type = PUSHES_CONDITION;
  if (refused.length === 0)
    return known.some((condition) => condition.type === type)
      ? { type, status: 'True', reason: 'Accepted', message: '' }
      : undefined;
  const shown = refused.slice(0, MAX_SHOWN_REFUSALS).map(({ revision, message }) => `${revision}: ${message}`);
  const more = refused.length - shown.length;
  const message = [...shown, ...(more > 0 ? [`and ${more} more revisions`] : [])].join('; ');
  return { type, status: 'False', reason: 'PushRefused', message };
}

/** The transport that is used for the remote. It is no health condition: both transports work, one is faster, and some remotes are read-only. */
function transport({ way, message }: RemoteNote): NewCondition {
  return { type: TRANSPORT_CONDITION, status: 'True', reason: way, message };
}

/** Milliseconds since the epoch; 0 for an absent time. */
function timeOf(status: Repository['status'], time: 'lastFullSyncTime' | 'lastWebhookTime'): number {
  return Date.parse(status?.[time] ?? '') || 0;
}

/** The part of the status whose change requires a write. The first message of a webhook does; further ones do not. */
function withoutTimes({
  lastFullSyncTime: _last,
  nextFullSyncTime: _next,
  lastWebhookTime,
  ...rest
}: NonNullable<Repository['status']>) {
  return { ...rest, hasWebhook: lastWebhookTime != null };
}
