import { counted, listed } from '../../src/foundation/text/counted.ts';
import { timestamp } from '../../src/foundation/time/clock.ts';
import { blockingRules } from '../../src/package/kernel/blocking-rules.ts';
import type { PolicyOrigin } from '../../src/package/model/policy/approval-rules.ts';
import { approvalRuleOf, type SourcedPolicy } from '../../src/package/store/policies/effective-policy.ts';
import { selectsToRestrict } from '../../src/package/store/policies/selected-packages.ts';
import type { PackageRevision } from '../../src/resource/kinds/porch/package-revision.ts';
import { type PackageVariant, packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { packageVariantSetKind } from '../../src/resource/kinds/porch/package-variant-set.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import type { ObjectExplanation } from '../package-variant/describe-variant.ts';

/** Revisions that are named. */
const MAX_NAMED = 5;

/** The objects of the namespace by which a policy selects. */
export interface SelectedFrom {
  readonly revisions: readonly Stored<PackageRevision>[];
  readonly repositories: readonly Repository[];
  readonly variants: readonly Stored<PackageVariant>[];
}

/** What a policy requires, what it forbids at this time, and which revisions wait that it selects. `now`: milliseconds since the epoch. */
export function describePolicy(policy: SourcedPolicy, from: SelectedFrom, now: number): ObjectExplanation {
  const { metadata, spec, origin } = policy;
  const blocked = blockedNow(policy, now);
  const selected = selectedBy(policy, from);
  const open = selected.filter(({ spec: { lifecycle } }) => lifecycle === 'Draft' || lifecycle === 'Proposed');
  const packages = new Set(from.revisions.map(({ spec }) => `${spec.repository}/${spec.packageName}`)).size;
  const proposed = open.filter((one) => one.spec.lifecycle === 'Proposed').map((one) => one.metadata.name);
  const names = proposed.length === 0 ? '' : `: ${listed(proposed, MAX_NAMED)}`;
  return {
    subject: `PackagePolicy ${metadata.name}`,
    state: blocked.length === 0 ? 'in force' : 'in force, forbids approvals now',
    reasons: [
      ...(origin === undefined ? [] : [originText(origin)]),
      `it applies to ${selectionText(spec.selector)}`,
      ...blocked,
      ...requirementsOf(spec),
      `it selects ${counted(open.length - proposed.length, 'draft')}, and ${counted(proposed.length, 'proposed revision')}${names}`,
      ...(selected.length > 0 || packages === 0
        ? []
        : [`it selects none of the ${counted(packages, 'package')} of its namespace: is spec.selector right?`]),
    ],
    next: proposed.slice(0, MAX_NAMED),
  };
}

function originText({ repository, branch, file, commit }: PolicyOrigin): string {
  return `it is in ${file} of Repository ${repository} as of commit ${commit.slice(0, 10)}; users who may push to branch ${branch} can change it, and it can only restrict`;
}

function selectionText(selector: SourcedPolicy['spec']['selector']): string {
  const { repositories, packages, repositorySelector, packageSelector, variantSets } = selector;
  const parts = [
    ...(repositories === undefined ? [] : [`repositories ${repositories.join(', ')}`]),
    ...(packages === undefined ? [] : [`packages ${packages.join(', ')}`]),
    ...(repositorySelector === undefined ? [] : [`repositories with the labels ${JSON.stringify(repositorySelector)}`]),
    ...(packageSelector === undefined ? [] : [`packages with the labels ${JSON.stringify(packageSelector)}`]),
    ...(variantSets === undefined ? [] : [`the variants of ${variantSets.join(', ')}`]),
  ];
  return parts.length === 0 ? 'all packages of its namespace' : parts.join('; ');
}

/** Windows and freezes of the policy that forbid every approval at this time. */
function blockedNow(policy: SourcedPolicy, now: number): string[] {
  const approvalRules = approvalRuleOf(policy).map((rule) => ({ ...rule, soak: {}, maxInFlight: undefined }));
  const facts = { name: '', proposal: undefined, lastPublishedAt: undefined };
  return blockingRules(facts, { approvalRules, freezes: [] }, timestamp(now)).map(
    ({ message, since, until, resolvedBy }) =>
      `${message}${since === undefined ? '' : `, since ${since}`}${until === undefined ? '' : `, until ${until}`}; resolved by ${resolvedBy}`,
  );
}

function requirementsOf({ requiredGates, approval, autoPropose, validFor, review }: SourcedPolicy['spec']): string[] {
  const { quorum, windows, freezes, maxInFlight, soak, automatic, forbidSelfApproval, breakGlass } = approval;
  const number = (count: number, noun: string) => `${count} ${noun}${count === 1 ? '' : 's'}`;
  const by = quorum === undefined || quorum.from.length === 0 ? 'users who may approve' : quorum.from.join(', ');
  return [
    ...(requiredGates.length === 0
      ? []
      : [`required gates: ${requiredGates.map((gate) => gate.conditionType).join(', ')}`]),
    ...validFor.map(({ conditionType, duration }) => `a condition ${conditionType} is valid for ${duration}`),
    ...(quorum === undefined ? [] : [`it requires ${number(quorum.required, 'approval')} by ${by}`]),
    ...tooFewApprovers({ approval, review }),
    ...(forbidSelfApproval ? ['contributors and the proposer may not approve'] : []),
    ...(windows.length === 0 ? [] : [`it permits approvals in ${number(windows.length, 'window')} only`]),
    ...(freezes.length === 0 ? [] : [`it forbids approvals in ${number(freezes.length, 'period')}`]),
    ...(maxInFlight === undefined ? [] : [`it permits ${number(maxInFlight, 'package')} in flight`]),
    ...(soak?.proposed === undefined ? [] : [`a revision must be proposed for ${soak.proposed}`]),
    ...(soak?.sincePublished === undefined ? [] : [`the revision before must be published for ${soak.sincePublished}`]),
    ...(automatic ? ['it approves automatically what meets all rules'] : []),
    ...(autoPropose ? ['it proposes drafts whose gates are all open'] : []),
    ...(breakGlass.length === 0 ? [] : [`break-glass is permitted to ${breakGlass.join(', ')}`]),
  ];
}

/** That no reviews and merges on the Git host complete the quorum of the policy. */
function tooFewApprovers({
  approval: { quorum },
  review,
}: Pick<SourcedPolicy['spec'], 'approval' | 'review'>): string[] {
  if (quorum === undefined || review === undefined || review.publishOn === 'approval') return [];
  const users = new Set(review.approvers.map(({ subject }) => subject)).size;
  if (users === 0 || users >= quorum.required) return [];
  return [
    `spec.review.approvers maps ${counted(users, 'user')}, and the quorum requires ${quorum.required}: the Git host completes it only with approvals through Sluice; add entries for other users`,
  ];
}

/** Names of the Repositories of the packages that a policy selects. */
export function selectedRepositories(policy: SourcedPolicy, from: SelectedFrom): string[] {
  return [...new Set(selectedBy(policy, from).map(({ spec }) => spec.repository))].sort();
}

/**
 * The other policies that have spec.review for a package which this one selects too, so that neither applies there, and one such package; undefined if
 * there are none.
 */
export function reviewClash(
  policy: SourcedPolicy,
  others: readonly SourcedPolicy[],
  from: SelectedFrom,
): { readonly policies: readonly string[]; readonly package: string } | undefined {
  if (policy.spec.review === undefined) return undefined;
  const selected = new Set(selectedBy(policy, from));
  const clashing = others.flatMap((other) => {
    const both = other.spec.review === undefined ? undefined : selectedBy(other, from).find((one) => selected.has(one));
    return both === undefined ? [] : { policy: other.metadata.name, spec: both.spec };
  });
  const [first] = clashing;
  if (first === undefined) return undefined;
  return {
    policies: [...clashing.map((one) => one.policy)].sort(),
    package: `${first.spec.repository}/${first.spec.packageName}`,
  };
}

function selectedBy({ spec: { selector } }: SourcedPolicy, from: SelectedFrom): Stored<PackageRevision>[] {
  const repositories = new Map(from.repositories.map((one) => [one.metadata.name, one]));
  const { variantSets, ...packages } = selector;
  const ofSets = new Set(
    from.variants
      .filter(({ metadata }) =>
        metadata.ownerReferences?.some(
          ({ kind, name }) => kind === packageVariantSetKind.kind && variantSets?.includes(name) === true,
        ),
      )
      .map(({ metadata }) => metadata.uid),
  );
  return from.revisions.filter((revision) => {
    const { metadata, spec } = revision;
    if (!selectsToRestrict(packages, labelledPackage(revision), repositories.get(spec.repository))) return false;
    if (variantSets === undefined) return true;
    return (
      metadata.ownerReferences?.some(({ kind, uid }) => kind === packageVariantKind.kind && ofSets.has(uid)) === true
    );
  });
}

/** A revision of the API as selectors of packages read it. */
export function labelledPackage({ metadata, spec }: Stored<PackageRevision>) {
  const key = { repository: spec.repository, package: spec.packageName, workspace: spec.workspaceName };
  const { labels = {} } = spec.packageMetadata ?? {};
  return { key, kptfile: { metadata: { labels } }, record: { labels: metadata.labels ?? {} } };
}
