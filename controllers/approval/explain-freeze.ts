import { type Explainer, sluiceCommand } from '../../src/package/api/explain/explainer.ts';
import { blockingRules } from '../../src/package/kernel/blocking-rules.ts';
import { freezesAt } from '../../src/package/model/policy/approval-rules.ts';
import type { Reason } from '../../src/package/model/revision/explanation.ts';
import type { BlockingRule } from '../../src/package/model/revision/revision-state.ts';

/** The reason of a freeze in an explanation, which clients show as a banner. */
const FROZEN_REASON = 'Frozen';

/** Reports the freezes in force, whatever the state of the revision: they stop its approval, or its delivery. */
export const freezeExplainer: Explainer = {
  explain({ evaluation: { revision, policy, at } }) {
    const facts = { name: revision.name, proposal: undefined, lastPublishedAt: undefined };
    const freezes = blockingRules(facts, { ...policy, approvalRules: [] }, at);
    const ends = freezesAt(policy.freezes, Date.parse(at)).map(({ name, namespace, isInstallation }) =>
      sluiceCommand('freeze', 'end', name, ...freezeOptions(isInstallation, namespace, revision.namespace)),
    );
    return { reasons: freezes.map((freeze) => reasonOf(freeze, FROZEN_REASON)), alternatives: ends };
  },
};

/** Options of `sluice freeze end` for a freeze, where `own` is the namespace of the command. */
export function freezeOptions(isInstallation: boolean, namespace: string, own: string): string[] {
  if (isInstallation) return ['--all-namespaces'];
  return namespace === own ? [] : ['--namespace', namespace];
}

/** A blocking rule as a reason: which rule, since when, until when, and who can resolve it. */
export function reasonOf({ message, since, until, resolvedBy }: BlockingRule, reason: string): Reason {
  const times = { ...(since === undefined ? {} : { since }), ...(until === undefined ? {} : { until }) };
  return { reason, message, ...times, resolvedBy };
}
