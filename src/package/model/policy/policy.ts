import type { Actor, EntryPoint } from '../../../resource/object/request-context.ts';
import type { ApprovalRule, FreezeRule } from './approval-rules.ts';
import { parseConditionType } from './condition-type.ts';
import type { HostUsers } from './host-users.ts';
import { NO_PEOPLE, type People } from './people.ts';
import type { ReviewPolicy } from './review-policy.ts';

/** Enforcement of gates in a repository (annotation `sluice.dev/gates`); `off` and `warn` help users who migrate from Porch. */
export type Enforcement = 'enforce' | 'warn' | 'off';

/** All policies for one package revision, merged. */
export interface EffectivePolicy {
  readonly enforcement: Enforcement;
  readonly requiredGates: readonly RequiredGate[];
  readonly givers: readonly IssuerRule[];
  /** Validity of verdicts in milliseconds, by condition type or prefix ending in `*`. */
  readonly validFor: readonly { readonly conditionType: string; readonly milliseconds: number }[];
  /** Condition types (or prefixes ending in `*`) that a plain push must not give. */
  readonly pushDenied: readonly string[];
  /**
   * Condition type by the name, or the short image name, of a validator whose results are reported as a separate condition.
   */
  readonly validatorConditions: ReadonlyMap<string, string>;
  /** Validators whose function, version and configuration a policy fixes: what they issue does not come from the package. */
  readonly pinnedValidators: readonly PinnedValidator[];
  /** Whether annotations of the Kptfile can request automatic steps; every user who may push can write them. */
  readonly kptfileApprovals: boolean;
  /** Proposes revisions whose gates are open automatically. */
  readonly autoPropose: boolean;
  readonly forbidSelfApproval: boolean;
  /**
   * Other namespaces that have registered the same branch and whose policies forbid self-approval: an approval by a user who may approve
   * there is required as well.
   */
  readonly alsoApprovedIn: readonly string[];
  /** Of each policy with rules for approvals; all must be met. */
  readonly approvalRules: readonly ApprovalRule[];
  /** Names of the policies by which controllers approve what meets all rules; empty: by none. */
  readonly automatic: readonly string[];
  /** Policies that require approvals of users, as `<namespace>/<name>`. */
  readonly approvedBy: readonly string[];
  /** The folders with policies of Repositories that the package is in, above or below: what it publishes can change these policies. */
  readonly policyFolders: readonly PolicyFolder[];
  /** The Freeze objects of the namespace and of the installation, also those whose end has passed. */
  readonly freezes: readonly FreezeRule[];
  /** Actors, or `group:<name>`, who may publish with closed gates and blocking rules, with a reason. */
  readonly breakGlass: readonly string[];
  /** The users whose signatures on pushed commits identify their authors. */
  readonly people: People;
  /** The users behind accounts of the Git host whose push reports count; undefined if they do not count. */
  readonly hostUsers?: HostUsers | undefined;
  /** Commits that controllers may make on one revision within an hour. */
  readonly commitBudgetPerHour: number;
  /** Of each policy with limits on the drafts that are opened since required packages have changed. */
  readonly dependencyLimits: readonly DependencyLimit[];
  /** Condition type to the milliseconds after which a closed gate is overdue. */
  readonly gateDeadlines: Readonly<Record<string, number>>;
  /** Absent if proposals are not reviewed in pull requests. */
  readonly review?: ReviewPolicy | undefined;
  /** Reason why `review` is absent although a policy has one, with the next step. */
  readonly reviewProblem?: string | undefined;
}

/** A folder that a Repository names for policies. */
export interface PolicyFolder {
  readonly namespace: string;
  readonly repository: string;
  /** Relative to the root of the repository. */
  readonly folder: string;
}

export interface PinnedValidator {
  /** Name, or short image name, of the pipeline entry. */
  readonly function: string;
  readonly conditionType: string;
  /** With a tag or a digest. */
  readonly image: string;
  /** The `configMap` that the entry must have, or its configuration as an object. Without either it must have none. */
  readonly configMap?: Readonly<Record<string, string>> | undefined;
  readonly config?: Readonly<Record<string, unknown>> | undefined;
}

export interface RequiredGate {
  readonly conditionType: string;
  /** Required at approval, not at proposal. */
  readonly approveOnly: boolean;
  /** Required input of the condition if its type resembles the name of an object. Default: the whole content. */
  readonly boundTo?: 'content' | 'object' | undefined;
  /** Name of the policy. */
  readonly policy: string;
  /** True for a policy of a repository: it makes no gate that holds without it less strict. */
  readonly onlyRestricts?: boolean | undefined;
}

/** A limit for all packages that a policy selects together; an absent number is none. */
export interface DependencyLimit {
  readonly policy: string;
  readonly maxDraftsPerMinute?: number | undefined;
  readonly maxOpenDrafts?: number | undefined;
}

export interface IssuerRule {
  /** Exact type, or a prefix ending in `*`. */
  readonly conditionType: string;
  /** Actor names, or `group:<name>`. */
  readonly actors: readonly string[];
  readonly policy: string;
}

export const DEFAULT_POLICY: EffectivePolicy = {
  enforcement: 'enforce',
  requiredGates: [],
  givers: [],
  validFor: [],
  pushDenied: [],
  validatorConditions: new Map(),
  pinnedValidators: [],
  kptfileApprovals: false,
  autoPropose: false,
  forbidSelfApproval: false,
  alsoApprovedIn: [],
  approvalRules: [],
  automatic: [],
  approvedBy: [],
  policyFolders: [],
  freezes: [],
  breakGlass: [],
  people: NO_PEOPLE,
  commitBudgetPerHour: 50,
  dependencyLimits: [],
  gateDeadlines: {},
};

/** Exact match, or prefix match for a pattern that ends in `*`. */
export function matchesPattern(pattern: string, value: string): boolean {
  return pattern.endsWith('*') ? value.startsWith(pattern.slice(0, -1)) : pattern === value;
}

/**
 * Returns why this actor may not issue a verdict of this type; undefined if it may. Every rule for the type must permit the actor.
 */
export function refuseIssuer(
  policy: EffectivePolicy,
  conditionType: string,
  actor: Actor,
  face: EntryPoint,
): string | undefined {
  if (face === 'git') {
    const denied = policy.pushDenied.find((pattern) => matchesPattern(pattern, conditionType));
    if (denied !== undefined) return `policy does not permit a plain push to set ${conditionType}`;
  }
  for (const rule of policy.givers) {
    if (!matchesPattern(rule.conditionType, conditionType)) continue;
    if (!rule.actors.some((name) => isActor(name, actor))) {
      return `policy ${rule.policy} permits only ${rule.actors.join(', ')} to set ${conditionType}`;
    }
  }
  return undefined;
}

/**
 * True if a policy requires a condition of this type for the whole content although its type resembles the name of an object: every
 * user who may edit a package could add a small object of that name, and all other content could change while the gate stays open.
 */
export function bindsContent({ requiredGates }: Pick<EffectivePolicy, 'requiredGates'>, type: string): boolean {
  return (
    parseConditionType(type) !== undefined &&
    requiredGates.some(({ conditionType, boundTo }) => conditionType === type && boundTo !== 'object')
  );
}

/** Returns the condition types in policies; other types must not resemble them. */
export function typesOf(policy: EffectivePolicy): Set<string> {
  const { requiredGates, givers, validFor, pushDenied, validatorConditions, gateDeadlines } = policy;
  const named = [...requiredGates, ...givers, ...validFor].map(({ conditionType }) => conditionType);
  const all = [...named, ...pushDenied, ...validatorConditions.values(), ...Object.keys(gateDeadlines)];
  return new Set(all.filter((type) => !type.endsWith('*')));
}

/** `group:<name>` matches the members of a group, anything else the actor of that name. */
export function isActor(pattern: string, actor: Actor): boolean {
  if (pattern.startsWith('group:')) return actor.groups?.includes(pattern.slice('group:'.length)) ?? false;
  return pattern === actor.name;
}
