import { withVisibleDirection } from '../../../foundation/text/direction.ts';
import type { Repository } from '../../../resource/kinds/porch/repository.ts';
import type { PackagePolicy } from '../../../resource/kinds/sluice/package-policy.ts';
import { parseDuration } from '../../../resource/object/duration.ts';
import type { DeepReadonly } from '../../../resource/object/object.ts';
import type {
  ApprovalRule,
  FreezeRule,
  NamedRecurrence,
  PolicyOrigin,
  RevisionInFlight,
  RuleProblem,
} from '../../model/policy/approval-rules.ts';
import type { HostUsers } from '../../model/policy/host-users.ts';
import { NO_PEOPLE, type People } from '../../model/policy/people.ts';
import {
  DEFAULT_POLICY,
  type EffectivePolicy,
  type Enforcement,
  type PolicyFolder,
} from '../../model/policy/policy.ts';
import { REVIEW_ACTOR, REVIEWED_TYPE, type ReviewPolicy, reviewOf } from '../../model/policy/review-policy.ts';
import {
  isIn,
  isPermittedBy,
  isSelectedBy,
  type SelectedRevision,
  selects,
  type VariantSets,
} from './selected-packages.ts';

function reviewPolicies(policies: readonly SourcedPolicy[]): ReviewPolicy[] {
  return policies.flatMap(({ metadata, spec: { review } }) =>
    review === undefined ? [] : { ...review, policy: metadata.name },
  );
}

/** Annotation of a Repository: how far gates are enforced in it. */
export const GATES_ANNOTATION = 'sluice.dev/gates';

/**
 * A policy of the API, or one that was read from a repository, which only restricts. What a file does not limit has the limit Infinity there.
 */
export type SourcedPolicy = DeepReadonly<PackagePolicy> & { readonly origin?: PolicyOrigin };

/** Reads what a decision about a revision depends on besides policies, when it needs it. */
export interface PolicySurroundings {
  people(): People;
  hostUsers?(): HostUsers | undefined;
  /** The Freeze objects of the namespace and of the installation. */
  freezes?(): readonly FreezeRule[];
  /** The PackageVariantSets that the revision belongs to. */
  variantSets?(): VariantSets;
  /** Why policies of repositories are not known, by the text that names them. */
  policyProblems?(): ReadonlyMap<string, RuleProblem>;
  policyFolders?(): readonly PolicyFolder[];
  /** Other revisions in flight that a policy selects. */
  inFlight?(policy: DeepReadonly<PackagePolicy>): readonly RevisionInFlight[];
}

/** Merges the policies of a revision: requirements add up, and of two limits the stricter one applies. */
export function effectivePolicy(
  revision: SelectedRevision,
  repository: DeepReadonly<Repository> | undefined,
  policies: readonly SourcedPolicy[],
  lists?: PolicySurroundings,
): EffectivePolicy {
  const selecting = policies.filter((policy) => isSelectedBy(policy, revision, repository, lists?.variantSets));
  // A repository adds limits to those that hold without it.
  const hasOwnLimits = selecting.some(({ origin }) => origin === undefined);
  const permitting = selecting.filter((policy) => isPermittedBy(policy, revision, repository, lists?.variantSets));
  const isSelecting = new Set(selecting);
  const lasting = policies.filter((policy) => !isSelecting.has(policy) && isOfProposal(policy, revision));
  const gateDeadlines: Record<string, number> = {};
  for (const { conditionType, after } of selecting.flatMap((policy) => policy.spec.gateDeadlines)) {
    const milliseconds = parseDuration(after) ?? Number.POSITIVE_INFINITY;
    gateDeadlines[conditionType] = Math.min(gateDeadlines[conditionType] ?? Number.POSITIVE_INFINITY, milliseconds);
  }
  const policyFolders = lists?.policyFolders?.() ?? [];
  return {
    enforcement: enforcementOf(repository),
    requiredGates: selecting.flatMap(({ metadata: { name: policy }, spec: { requiredGates, review }, origin }) => [
      ...requiredGates.map((gate) => ({
        conditionType: gate.conditionType,
        approveOnly: gate.approveOnly ?? false,
        ...(gate.boundTo === undefined ? {} : { boundTo: gate.boundTo }),
        ...(origin === undefined ? {} : { onlyRestricts: true }),
        policy,
      })),
      ...(review === undefined ? [] : [{ conditionType: REVIEWED_TYPE, approveOnly: true, policy }]),
    ]),
    givers: selecting.flatMap(({ metadata: { name: policy }, spec: { givers, review } }) => [
      ...givers.map((rule) => ({ ...rule, policy })),
      ...(review === undefined ? [] : [{ conditionType: REVIEWED_TYPE, actors: [REVIEW_ACTOR], policy }]),
    ]),
    validFor: selecting.flatMap((policy) =>
      policy.spec.validFor.map(({ conditionType, duration }) => ({
        conditionType,
        milliseconds: parseDuration(duration) ?? 0,
      })),
    ),
    pushDenied: selecting.flatMap((policy) => (policy.spec.pushMayGive ? policy.spec.pushDenied : ['*'])),
    validatorConditions: new Map(
      selecting.flatMap((policy) =>
        policy.spec.validatorConditions.map((rule) => [rule.function, rule.conditionType] as const),
      ),
    ),
    pinnedValidators: selecting.flatMap((policy) =>
      policy.spec.validatorConditions.flatMap(({ image, ...rule }) => (image === undefined ? [] : { ...rule, image })),
    ),
    kptfileApprovals: permitting.some((policy) => policy.spec.kptfileApprovals),
    autoPropose: policies.some(
      ({ spec: { autoPropose, selector } }) =>
        autoPropose &&
        policyFolders.length === 0 &&
        selects(selector, revision, repository) &&
        isIn(selector.variantSets, () => lists?.variantSets?.().concerning),
    ),
    forbidSelfApproval: [...selecting, ...lasting].some((policy) => policy.spec.approval.forbidSelfApproval),
    alsoApprovedIn: [],
    approvalRules: [
      ...unknownRules(lists?.policyProblems?.()),
      ...selecting.flatMap((policy) => approvalRuleOf(policy, lists)),
      ...lasting.flatMap(lastingRule),
    ],
    // No controller decides which policies there are.
    automatic:
      policyFolders.length > 0
        ? []
        : permitting.filter((policy) => policy.spec.approval.automatic).map(({ metadata }) => metadata.name),
    policyFolders,
    approvedBy: [...selecting, ...lasting].filter(requiresUsers).map(keyOfPolicy),
    get freezes() {
      return lists?.freezes?.() ?? [];
    },
    get people() {
      return lists?.people() ?? NO_PEOPLE;
    },
    get hostUsers() {
      return lists?.hostUsers?.();
    },
    breakGlass: permitting.flatMap((policy) => policy.spec.approval.breakGlass),
    commitBudgetPerHour: Math.min(
      hasOwnLimits ? Number.POSITIVE_INFINITY : DEFAULT_POLICY.commitBudgetPerHour,
      ...selecting.map((policy) => policy.spec.commitBudgetPerHour),
    ),
    dependencyLimits: selecting.flatMap(({ metadata: { name: policy }, spec: { dependencies } }) =>
      dependencies === undefined ? [] : { policy, ...dependencies },
    ),
    gateDeadlines,
    ...reviewOf(reviewPolicies(permitting), reviewPolicies(selecting)),
  };
}

function enforcementOf(repository: DeepReadonly<Repository> | undefined): Enforcement {
  const value = repository?.metadata.annotations?.[GATES_ANNOTATION];
  // A typing error must not switch the gates off.
  return value === 'warn' || value === 'off' ? value : 'enforce';
}

/** True for a policy that requires approvals of users, and not only a time or a place. */
function requiresUsers({ spec: { approval } }: SourcedPolicy): boolean {
  return approval.forbidSelfApproval || approval.quorum !== undefined;
}

/** True for a policy that required approvals of users when the revision was proposed. */
function isOfProposal(policy: SourcedPolicy, { record }: SelectedRevision): boolean {
  return requiresUsers(policy) && record?.proposal?.policies?.includes(keyOfPolicy(policy)) === true;
}

function keyOfPolicy({ metadata: { namespace = '', name } }: SourcedPolicy): string {
  return `${namespace}/${name}`;
}

/** The quorum of a policy that does not select the revision any more. */
function lastingRule({ metadata, origin, spec }: SourcedPolicy): ApprovalRule[] {
  const { quorum } = spec.approval;
  if (quorum === undefined) return [];
  return [{ policy: metadata.name, origin, quorum, windows: [], freezes: [], soak: {}, inFlight: [] }];
}

/** One rule for each problem, which blocks all approvals. */
function unknownRules(problems: ReadonlyMap<string, RuleProblem> = new Map()): ApprovalRule[] {
  return [...problems].map(([policy, problem]) => ({
    ...{ policy, problem, windows: [], freezes: [], soak: {}, inFlight: [] },
  }));
}

/** The rules of a policy for approvals; none if it has none. */
export function approvalRuleOf(policy: SourcedPolicy, lists?: PolicySurroundings): ApprovalRule[] {
  // Policies that earlier versions stored have no lists.
  const { quorum, windows = [], freezes = [], maxInFlight, soak } = policy.spec.approval;
  const hasSoak = soak?.proposed !== undefined || soak?.sincePublished !== undefined;
  const hasRule = quorum !== undefined || maxInFlight !== undefined || hasSoak || windows.length + freezes.length > 0;
  if (!hasRule) return [];
  return [
    {
      ...{ policy: policy.metadata.name, origin: policy.origin, quorum, maxInFlight },
      windows: windows.map(recurrenceOf),
      freezes: freezes.map(recurrenceOf),
      soak: { proposedMs: durationOf(soak?.proposed), sincePublishedMs: durationOf(soak?.sincePublished) },
      get inFlight() {
        return lists?.inFlight?.(policy) ?? [];
      },
    },
  ];
}

function recurrenceOf({ cron, duration, timeZone, reason }: RecurrenceField): NamedRecurrence {
  // What cannot be read is no valid recurrence, so that it blocks.
  const durationMs = parseDuration(duration) ?? Number.NaN;
  return { cron, durationMs, timeZone, reason: reason === undefined ? undefined : withVisibleDirection(reason) };
}

type RecurrenceField = DeepReadonly<PackagePolicy>['spec']['approval']['windows'][number];

function durationOf(text: string | undefined): number | undefined {
  return text === undefined ? undefined : (parseDuration(text) ?? Number.POSITIVE_INFINITY);
}
