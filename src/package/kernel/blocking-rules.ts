import { listed } from '../../foundation/text/counted.ts';
import { timestamp } from '../../foundation/time/clock.ts';
import { recurrenceAt, recurrenceProblem } from '../../foundation/time/recurrence.ts';
import { type ApprovalRule, freezesAt, freezeText, type NamedRecurrence } from '../model/policy/approval-rules.ts';
import type { EffectivePolicy } from '../model/policy/policy.ts';
import type { BlockingRule, RevisionState } from '../model/revision/revision-state.ts';

/** The facts of a revision that rules about time and number depend on. */
export interface BlockingFacts extends Pick<RevisionState, 'name' | 'proposal' | 'lastPublishedAt'> {
  /** It is published by the merge of a pull request that is no proposal. */
  readonly isUnproposed?: true;
}

const MAX_SHOWN_REVISIONS = 3;
/** Windows and freezes of all policies for one revision. Each costs up to a millisecond whenever its state changes. */
export const MAX_PERIODS = 1000;

/**
 * The rules that forbid to publish a proposed revision at this time, for every approver: freezes, windows, soak times and the maximum in
 * flight. All policies count; `now` is RFC 3339. A rule that cannot be evaluated blocks.
 */
export function blockingRules(
  facts: BlockingFacts,
  policy: Pick<EffectivePolicy, 'approvalRules' | 'freezes'>,
  now: string,
): BlockingRule[] {
  const time = Date.parse(now);
  const stops = freezesAt(policy.freezes, time).map((freeze): BlockingRule => {
    const { name, namespace, isInstallation, since, until } = freeze;
    return {
      ...{ rule: 'Freeze', message: freezeText(freeze), since },
      ...endsAt(until),
      resolvedBy: `users who may delete Freeze ${namespace}/${name}${isInstallation ? ', which is in force in all namespaces' : ''}`,
    };
  });
  const periods = countPeriods(policy.approvalRules);
  if (periods > MAX_PERIODS) {
    const message = `the policies of ${facts.name} have ${periods} windows and freezes together, at most ${MAX_PERIODS} are evaluated; remove some`;
    return [...stops, { rule: 'InvalidRule', message, resolvedBy: 'users who may change these policies' }];
  }
  return [...stops, ...policy.approvalRules.flatMap((rule) => rulesOf(rule, facts, time))];
}

/**
 * The rule of a proposal whose record was removed or replaced. No merge is recorded in spite of it, not even as out of band, and no break-glass
 * ends it.
 */
export function lostRecord(
  name: string,
  record: { readonly proposal?: { readonly lost?: boolean | undefined } | undefined } | undefined,
): BlockingRule | undefined {
  if (record?.proposal?.lost !== true) return undefined;
  return {
    rule: 'RecordLost',
    message: `the record of the proposal of ${name} was removed or replaced, so that it is not known which gates were required; reject it, then propose it again`,
    resolvedBy: 'users who may reject it and propose it again',
  };
}

function countPeriods(rules: readonly ApprovalRule[]): number {
  return rules.reduce((sum, { windows, freezes }) => sum + windows.length + freezes.length, 0);
}

/**
 * When rules may begin or end to block by themselves, after a time in milliseconds since the epoch; undefined if never. `blocking` are those
 * that block then. What depends on other packages is not included.
 */
export function nextRuleChange(
  { approvalRules, freezes }: Pick<EffectivePolicy, 'approvalRules' | 'freezes'>,
  blocking: readonly BlockingRule[],
  now: number,
): number | undefined {
  const isEvaluated = countPeriods(approvalRules) <= MAX_PERIODS;
  const periods = isEvaluated ? approvalRules.flatMap((rule) => [...rule.windows, ...rule.freezes]) : [];
  const times = [
    ...blocking.flatMap(({ until }) => (until === undefined ? [] : Date.parse(until))),
    ...freezesAt(freezes, now).flatMap(({ until }) => until ?? []),
    ...periods.flatMap((period) => {
      if (recurrenceProblem(period) !== undefined) return [];
      const state = recurrenceAt(period, now);
      return (state.isActive ? state.until : state.next) ?? [];
    }),
  ].filter((time) => time > now);
  return times.length === 0 ? undefined : Math.min(...times);
}

function rulesOf(rule: ApprovalRule, facts: BlockingFacts, now: number): BlockingRule[] {
  const { policy, problem } = rule;
  if (problem !== undefined) return [{ rule: 'InvalidRule', policy, ...problem }];
  if (Number.isNaN(now)) {
    const message = `the rules of policy ${policy} cannot be evaluated: the time of the decision is not known`;
    return [{ rule: 'InvalidRule', policy, message, resolvedBy: 'a decision at a valid time' }];
  }
  return [
    ...scheduledFreezes(rule, facts, now),
    ...closedWindow(rule, facts, now),
    ...soakTimes(rule, facts, now),
    ...tooManyInFlight(rule),
  ];
}

function scheduledFreezes(of: ApprovalRule, { proposal }: BlockingFacts, now: number): BlockingRule[] {
  const { policy, freezes } = of;
  return freezes.flatMap((freeze) => {
    const problem = recurrenceProblem(freeze);
    if (problem !== undefined) return [invalid(of, 'freezes', freeze, problem, proposal?.at)];
    const state = recurrenceAt(freeze, now);
    if (!state.isActive) return [];
    return [
      {
        ...{ rule: 'ScheduledFreeze', policy, since: timestamp(state.since) },
        ...endsAt(state.until),
        message: `policy ${policy} forbids approvals in its freeze ${describe(freeze)}`,
        resolvedBy: byPolicy(of),
      } as const,
    ];
  });
}

function closedWindow(of: ApprovalRule, { proposal }: BlockingFacts, now: number): BlockingRule[] {
  const { policy, windows } = of;
  if (windows.length === 0) return [];
  const invalids: BlockingRule[] = [];
  let next = Number.POSITIVE_INFINITY;
  let since = Number.NEGATIVE_INFINITY;
  for (const window of windows) {
    const problem = recurrenceProblem(window);
    if (problem !== undefined) {
      invalids.push(invalid(of, 'windows', window, problem, proposal?.at));
      continue;
    }
    const state = recurrenceAt(window, now);
    if (state.isActive) return [];
    next = Math.min(next, state.next ?? next);
    since = Math.max(since, state.since ?? since);
  }
  if (invalids.length === windows.length) return invalids;
  return [
    {
      ...{ rule: 'Window', policy },
      ...(Number.isFinite(since) ? { since: timestamp(since) } : {}),
      ...endsAt(next),
      message: `policy ${policy} permits approvals only in its windows: ${windows.map(describe).join('; ')}`,
      resolvedBy: byPolicy(of),
    },
  ];
}

function soakTimes(of: ApprovalRule, facts: BlockingFacts, now: number): BlockingRule[] {
  const { policy, soak } = of;
  const blocked: BlockingRule[] = [];
  const { proposedMs, sincePublishedMs } = soak;
  const { proposal, lastPublishedAt, name, isUnproposed } = facts;
  const common = { rule: 'Soak', policy, resolvedBy: byPolicy(of) } as const;
  if (proposedMs !== undefined && isUnproposed === true) {
    blocked.push({
      ...common,
      message: `policy ${policy} requires that ${name} was proposed for ${duration(proposedMs)} without a change, and this pull request is no proposal; adopt the package as a draft, and propose that`,
    });
  } else if (proposedMs !== undefined && proposal?.isUnchanged !== true) {
    blocked.push({
      ...common,
      ...(proposal === undefined ? {} : { since: proposal.at }),
      message: `policy ${policy} requires that ${name} was proposed for ${duration(proposedMs)} without a change, and a push changed or proposed it, at a time that only the pusher knows; reject it, then propose it again`,
    });
  } else if (proposedMs !== undefined && proposal !== undefined) {
    const due = Date.parse(proposal.at) + proposedMs;
    if (!(due <= now))
      blocked.push({
        ...{ ...common, since: proposal.at, ...endsAt(due) },
        message: `policy ${policy} requires that ${name} was proposed for ${duration(proposedMs)} without a change; it was proposed at ${proposal.at}`,
      });
  }
  if (sincePublishedMs !== undefined && lastPublishedAt !== undefined && !(lastPublishedAt + sincePublishedMs <= now))
    blocked.push({
      ...{ ...common, since: timestamp(lastPublishedAt), ...endsAt(lastPublishedAt + sincePublishedMs) },
      message: `policy ${policy} requires ${duration(sincePublishedMs)} between two revisions of a package; the previous one was published at ${timestamp(lastPublishedAt)}`,
    });
  return blocked;
}

function tooManyInFlight(rule: ApprovalRule): BlockingRule[] {
  const { policy, maxInFlight } = rule;
  if (maxInFlight === undefined) return [];
  const { inFlight } = rule;
  if (inFlight.length < maxInFlight) return [];
  const published = inFlight.filter(({ publishedAt }) => publishedAt !== undefined);
  const deciding = inFlight.filter(({ publishedAt }) => publishedAt === undefined);
  // Of those that are in flight now, so many were by this time. Unknown if approvals that are being decided take the last places.
  const since = published.map(({ publishedAt = Number.NaN }) => publishedAt).sort((a, b) => a - b)[maxInFlight - 1];
  const states = [
    [published, 'published and not yet delivered and healthy'],
    [deciding, 'not published, and being decided'],
  ] as const;
  const counts = states.flatMap(([those, state]) =>
    those.length === 0 ? [] : `${those.length} ${those.length === 1 ? 'is' : 'are'} ${state}: ${shown(those)}`,
  );
  return [
    {
      ...{ rule: 'InFlight', policy },
      ...(since === undefined || Number.isNaN(since) ? {} : { since: timestamp(since) }),
      message: `policy ${policy} permits ${maxInFlight} packages in flight, and ${counts.join('; ')}`,
      resolvedBy:
        published.length === 0
          ? `the approvals of ${shown(deciding)}, after which this one can be tried again`
          : `the targets that deliver ${shown(published)}: see why they wait`,
    },
  ];
}

function shown(inFlight: ApprovalRule['inFlight']): string {
  return listed(
    inFlight.map(({ name }) => name),
    MAX_SHOWN_REVISIONS,
  );
}

function invalid(
  of: ApprovalRule,
  field: string,
  recurrence: NamedRecurrence,
  problem: string,
  since: string | undefined,
): BlockingRule {
  return {
    ...{ rule: 'InvalidRule', policy: of.policy },
    ...(since === undefined ? {} : { since }),
    message: `policy ${of.policy} has a rule in spec.approval.${field} that cannot be evaluated (${recurrence.cron}): ${problem}`,
    resolvedBy: byPolicy(of),
  };
}

function byPolicy({ policy, origin }: ApprovalRule): string {
  if (origin !== undefined)
    return `users who may push to branch ${origin.branch} of Repository ${origin.repository}, which has ${origin.file}`;
  return `users who may change PackagePolicy ${policy}, or whom its spec.approval.breakGlass lists`;
}

function describe({ cron, durationMs, timeZone, reason }: NamedRecurrence): string {
  return `"${cron}" ${timeZone} for ${duration(durationMs)}${reason === undefined ? '' : ` (${reason})`}`;
}

/** The largest time of a date; what never ends has no end. */
const MAX_TIME_MS = 8.64e15;

function endsAt(milliseconds: number | undefined): Pick<BlockingRule, 'until'> {
  if (milliseconds === undefined || !(Math.abs(milliseconds) <= MAX_TIME_MS)) return {};
  return { until: timestamp(milliseconds) };
}

const UNITS = [
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
] as const;

/** In the form of Go, as policies have it. */
function duration(milliseconds: number): string {
  if (!Number.isFinite(milliseconds)) return 'an unlimited time';
  let rest = milliseconds;
  let text = '';
  for (const [unit, size] of UNITS) {
    const count = Math.floor(rest / size);
    rest -= count * size;
    if (count > 0) text += `${count}${unit}`;
  }
  return text === '' ? '0s' : text;
}
