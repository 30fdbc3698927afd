import { withVisibleDirection } from '../../../foundation/text/direction.ts';
import type { Repository } from '../../../resource/kinds/porch/repository.ts';
import type { PackagePolicy } from '../../../resource/kinds/sluice/package-policy.ts';
import { parseDuration } from '../../../resource/object/duration.ts';
import type { DeepReadonly } from '../../../resource/object/object.ts';
import { sameValue } from '../../../resource/object/same-value.ts';
import type {
  ApprovalRule,
  FreezeRule,
  NamedRecurrence,
  PolicyOrigin,
  RevisionInFlight,
  RuleProblem,
} from '../../model/policy/approval-rules.ts';
import { HOST_USERS_ANNOTATION, HOST_USERS_KEY, type HostUsers, hostUsersOf } from '../../model/policy/host-users.ts';
import {
  ALLOWED_SIGNERS_ANNOTATION,
  ALLOWED_SIGNERS_KEY,
  NO_PEOPLE,
  type People,
  peopleOf,
  peopleOfBoth,
} from '../../model/policy/people.ts';
import {
  DEFAULT_POLICY,
  type EffectivePolicy,
  type Enforcement,
  matchesPattern,
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

/** The policies with reviews that can select packages of a repository. */
export function reviewsOf(
  repository: DeepReadonly<Repository>,
  policies: readonly DeepReadonly<PackagePolicy>[],
): readonly ReviewPolicy[] {
  const revision = { key: { repository: repository.metadata.name, package: '', workspace: '' } };
  return policies.flatMap(({ metadata, spec: { review, selector } }) => {
    const { name: policy, creationTimestamp: createdAt } = metadata;
    const { packages: _packages, packageSelector: _labels, ...ofRepository } = selector;
    return review === undefined || !selects(ofRepository, revision, repository)
      ? []
      : { ...review, policy, createdAt, ...mergesSince(review, metadata, repository) };
  });
}

function reviewPolicies(policies: readonly SourcedPolicy[]): ReviewPolicy[] {
  return policies.flatMap(({ metadata, spec: { review } }) =>
    review === undefined ? [] : { ...review, policy: metadata.name },
  );
}

function mergesSince(
  { publishOn }: Pick<ReviewPolicy, 'publishOn'>,
  { name, uid }: DeepReadonly<PackagePolicy>['metadata'],
  { status }: DeepReadonly<Repository>,
): Pick<ReviewPolicy, 'mergesSince'> {
  const begun = status?.mergePublication?.find((one) => one.policy === name && one.uid === uid);
  const isOther = publishOn !== 'approval' && begun?.publishOn !== publishOn;
  return begun === undefined || isOther ? {} : { mergesSince: { commit: begun.commit } };
}

/** Annotation of a Repository: how far gates are enforced in it. */
export const GATES_ANNOTATION = 'sluice.dev/gates';

/**
 * A policy of the API, or one that was read from a repository, which only restricts. What a file does not limit has the limit Infinity there.
 */
export type SourcedPolicy = DeepReadonly<PackagePolicy> & { readonly origin?: PolicyOrigin };

/** Policies that changed, as they were and as they are; undefined: any revision of the namespace may be concerned. */
export interface PolicyChange {
  readonly namespace: string;
  readonly policies: readonly DeepReadonly<PackagePolicy>[] | undefined;
}

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

/**
 * What holds where two namespaces have registered the same packages: demands add up, and of two limits the stricter one holds. Only the
 * first one decides what controllers do automatically. What the second one demands of approvals can be met only by users who may approve
 * there, if both publish onto the same branch.
 */
export function combinePolicies(
  own: EffectivePolicy,
  other: EffectivePolicy,
  { namespace, isSameBranch }: { readonly namespace: string; readonly isSameBranch: boolean },
): EffectivePolicy {
  const prefix = `${namespace}/`;
  const named = <Rule extends { readonly policy: string }>(rules: readonly Rule[]): Rule[] =>
    rules.map((rule) => ({ ...rule, policy: `${prefix}${rule.policy}` }));
  const gateDeadlines = { ...other.gateDeadlines, ...own.gateDeadlines };
  for (const [type, after] of Object.entries(other.gateDeadlines))
    gateDeadlines[type] = Math.min(gateDeadlines[type] ?? after, after);
  return {
    enforcement: STRICTNESS.find((one) => one === own.enforcement || one === other.enforcement) ?? 'enforce',
    requiredGates: [...own.requiredGates, ...named(other.requiredGates)],
    givers: [...own.givers, ...named(other.givers)],
    pushDenied: [...own.pushDenied, ...other.pushDenied],
    validatorConditions: new Map([...other.validatorConditions, ...own.validatorConditions]),
    // Both restrict the issuers of a type, so both must pin a validator.
    pinnedValidators: own.pinnedValidators.filter(
      (pin) =>
        other.pinnedValidators.some((same) => sameValue(pin, same)) ||
        !other.givers.some(({ conditionType }) => matchesPattern(conditionType, pin.conditionType)),
    ),
    validFor: [...own.validFor, ...other.validFor],
    // As with broken glass.
    kptfileApprovals: own.kptfileApprovals && other.kptfileApprovals,
    autoPropose: own.autoPropose,
    forbidSelfApproval: own.forbidSelfApproval || other.forbidSelfApproval,
    alsoApprovedIn:
      other.forbidSelfApproval && isSameBranch && !own.alsoApprovedIn.includes(namespace)
        ? [...own.alsoApprovedIn, namespace]
        : own.alsoApprovedIn,
    approvalRules: [
      ...own.approvalRules,
      ...other.approvalRules.map((rule) => ofNamespace(rule, namespace, isSameBranch)),
    ],
    // As with what is proposed automatically.
    automatic: own.automatic,
    policyFolders: own.policyFolders,
    approvedBy: [...new Set([...own.approvedBy, ...other.approvedBy])],
    get freezes() {
      return mergedFreezes(own.freezes, other.freezes);
    },
    // Gates of both are passed, so both have to allow it.
    breakGlass: own.breakGlass.filter((pattern) => other.breakGlass.includes(pattern)),
    // Pushers are written into records, which both read: neither may decide alone about keys that the other one relies on.
    get people() {
      return other.forbidSelfApproval || other.givers.length > 0 ? sharedPeople(own.people, other.people) : own.people;
    },
    // The secret of a webhook is known in one of them alone.
    hostUsers: undefined,
    commitBudgetPerHour: Math.min(own.commitBudgetPerHour, other.commitBudgetPerHour),
    dependencyLimits: [...own.dependencyLimits, ...named(other.dependencyLimits)],
    gateDeadlines,
    // Each has a token of its own, and opens pull requests where its own policies say so.
    review: own.review,
    reviewProblem: own.reviewProblem,
  };
}

const peopleCache = new WeakMap<People, WeakMap<People, People>>();

/**
 * Returns the users whose keys both list equally; the same object for the same two lists, since signatures are cached by
 * it.
 */
function sharedPeople(own: People, other: People): People {
  const known = peopleCache.get(own) ?? new WeakMap<People, People>();
  peopleCache.set(own, known);
  const before = known.get(other);
  if (before !== undefined) return before;
  const common = peopleOfBoth(own, other);
  known.set(other, common);
  return common;
}

/** The strictest first. */
const STRICTNESS: readonly Enforcement[] = ['enforce', 'warn', 'off'];

/** Name of the ConfigMap with the keys of a repository's pushers; undefined if there is none. */
export function allowedSignersOf(repository: DeepReadonly<Repository>): string | undefined {
  return annotationOf(repository, ALLOWED_SIGNERS_ANNOTATION);
}

/** The texts of ConfigMaps that were read before. */
const cachedPeople = new WeakMap<object, People>();

/** Returns the users in a ConfigMap, read once for each version of it. */
export function parsePeople(configMap: DeepReadonly<{ data?: Record<string, string> | undefined }>): People {
  const before = cachedPeople.get(configMap);
  if (before !== undefined) return before;
  const text = configMap.data?.[ALLOWED_SIGNERS_KEY];
  const missing = { signers: [], problems: [`it has no key ${ALLOWED_SIGNERS_KEY}`] };
  const people = text === undefined ? missing : peopleOf(text);
  cachedPeople.set(configMap, people);
  return people;
}

/** Name of the ConfigMap that maps accounts of the Git host to users; undefined if reports of the host do not count. */
export function hostUsersNameOf(repository: DeepReadonly<Repository>): string | undefined {
  return annotationOf(repository, HOST_USERS_ANNOTATION);
}

function annotationOf({ metadata }: DeepReadonly<Repository>, key: string): string | undefined {
  const { annotations } = metadata;
  return annotations !== undefined && Object.hasOwn(annotations, key) ? annotations[key] : undefined;
}

const cachedHostUsers = new WeakMap<object, HostUsers>();

/** The users of the host that a ConfigMap lists, read once for each version of it; none if the ConfigMap does not exist. */
export function parseHostUsers(
  configMap: DeepReadonly<{ data?: Record<string, string> | undefined }> | undefined,
): HostUsers {
  if (configMap === undefined) return { persons: new Map(), problems: ['it does not exist'] };
  const before = cachedHostUsers.get(configMap);
  if (before !== undefined) return before;
  const text = configMap.data?.[HOST_USERS_KEY];
  const users =
    text === undefined ? { persons: new Map(), problems: [`it has no key ${HOST_USERS_KEY}`] } : hostUsersOf(text);
  cachedHostUsers.set(configMap, users);
  return users;
}

function enforcementOf(repository: DeepReadonly<Repository> | undefined): Enforcement {
  const value = repository?.metadata.annotations?.[GATES_ANNOTATION];
  // A typing error must not switch the gates off.
  return value === 'warn' || value === 'off' ? value : 'enforce';
}

/** A rule of another namespace. Its quorum is met by approvals there if both publish onto the same branch. */
function ofNamespace(rule: ApprovalRule, namespace: string, isSameBranch: boolean): ApprovalRule {
  return {
    ...{ windows: rule.windows, freezes: rule.freezes, soak: rule.soak, maxInFlight: rule.maxInFlight },
    ...{ origin: rule.origin, problem: rule.problem },
    policy: `${namespace}/${rule.policy}`,
    quorum: rule.quorum === undefined || !isSameBranch ? rule.quorum : { ...rule.quorum, namespace },
    get inFlight() {
      return rule.inFlight;
    },
  };
}

/** Freezes of the installation are those of every namespace. */
function mergedFreezes(own: readonly FreezeRule[], other: readonly FreezeRule[]): FreezeRule[] {
  const known = new Set(own.map(({ namespace, name }) => `${namespace}/${name}`));
  return [...own, ...other.filter(({ namespace, name }) => !known.has(`${namespace}/${name}`))];
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
