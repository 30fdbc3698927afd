import { z } from 'zod';
import { nearHints, nearMisses } from '../../src/foundation/text/near-misses.ts';
import { matchesPattern } from '../../src/package/model/policy/policy.ts';
import { policyFolderOf, type Repository } from '../../src/resource/kinds/porch/repository.ts';
import type { PackagePolicy } from '../../src/resource/kinds/sluice/package-policy.ts';

const GROUP = 'group:';

type Spec = PackagePolicy['spec'];

/** Of the status of a Repository, which has no specs if they are too large together. */
const policiesSchema = z.array(
  z.object({ spec: z.object({ requiredGates: z.array(z.object({ conditionType: z.string() })) }) }),
);

/**
 * A sentence for each condition type of a policy that is neither a condition nor a gate of any package. A gate that the policy itself requires is one
 * of its packages, also before the first of them has the condition: it is only reported if it looks like one that there is. `gates`: those of the
 * packages, and those that policies require; undefined while these are not known.
 */
export function unknownTypes(spec: Spec, known: ReadonlySet<string>, gates: ReadonlySet<string> | undefined): string[] {
  const required = new Set(spec.requiredGates.map((one) => one.conditionType));
  const wanted = [
    ...required,
    ...[...spec.givers, ...spec.validFor, ...spec.gateDeadlines].map((one) => one.conditionType),
    ...spec.pushDenied,
  ];
  const hint = nearHints(known);
  const types = [...known];
  const isKnown = (pattern: string) =>
    known.has(pattern) ||
    (required.has(pattern) && !types.some((type) => isMisspelt(pattern, type))) ||
    (pattern.endsWith('*') && types.some((type) => matchesPattern(pattern, type)));
  const gateHint = nearHints(gates ?? []);
  return [
    ...[...new Set(wanted)]
      .filter((pattern) => !isKnown(pattern))
      .map((pattern) => `no package has a condition or gate of the type ${pattern}${hint(pattern)}`),
    ...[...new Set(spec.review?.gateChecks ?? [])]
      .filter((type) => gates?.has(type) === false)
      .map((type) => `spec.review.gateChecks names ${type}, which is a gate of no package${gateHint(type)}`),
  ];
}

/** Gates that policies require: objects, and those of Repositories as their status has them. Undefined if it has not all of them. */
export function gatesRequired(
  policies: readonly Pick<PackagePolicy, 'spec'>[],
  repositories: readonly Repository[],
): string[] | undefined {
  const gates = policies.flatMap(({ spec }) => spec.requiredGates.map(({ conditionType }) => conditionType));
  for (const repository of repositories.filter((one) => policyFolderOf(one) !== undefined)) {
    const read = policiesSchema.safeParse(repository.status?.policies);
    if (!read.success) return undefined;
    gates.push(...read.data.flatMap(({ spec }) => spec.requiredGates.map(({ conditionType }) => conditionType)));
  }
  return gates;
}

/** Whether a type is like another one in its name, or in its domain: those of one domain have most letters in common. */
function isMisspelt(one: string, other: string): boolean {
  const [domain, name] = partsOf(one);
  const [otherDomain, otherName] = partsOf(other);
  if (domain === otherDomain) return nearMisses(name, [otherName]).length > 0;
  return name === otherName && nearMisses(domain, [otherDomain]).length > 0;
}

function partsOf(type: string): [string, string] {
  const end = type.lastIndexOf('/');
  return [type.slice(0, Math.max(0, end)), type.slice(end + 1)];
}

/** A sentence for each group of a policy that no binding of a role has as its subject. */
export function unknownGroups({ approval, givers }: Spec, known: ReadonlySet<string>): string[] {
  const subjects = [
    ...(approval.quorum?.from ?? []),
    ...approval.breakGlass,
    ...givers.flatMap(({ actors }) => actors),
  ];
  const groups = subjects.filter((one) => one.startsWith(GROUP)).map((one) => one.slice(GROUP.length));
  const hint = nearHints(known);
  return [...new Set(groups)]
    .filter((group) => !known.has(group))
    .map((group) => `no RoleBinding or ClusterRoleBinding names the group ${group}${hint(group)}`);
}
