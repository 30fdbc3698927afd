import { sameValue } from '../../../resource/object/same-value.ts';
import type { ApprovalRule, FreezeRule } from '../../model/policy/approval-rules.ts';
import { type People, peopleOfBoth } from '../../model/policy/people.ts';
import { type EffectivePolicy, type Enforcement, matchesPattern } from '../../model/policy/policy.ts';

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
