import { nearHints } from '../../src/foundation/text/near-misses.ts';
import { matchesPattern } from '../../src/package/model/policy/policy.ts';
import type { PackagePolicy } from '../../src/resource/kinds/sluice/package-policy.ts';

const GROUP = 'group:';

type Spec = PackagePolicy['spec'];

/** A sentence for each condition type of a policy that is neither a condition nor a gate of any package. */
export function unknownTypes(spec: Spec, known: ReadonlySet<string>): string[] {
  const wanted = [
    ...[...spec.requiredGates, ...spec.givers, ...spec.validFor, ...spec.gateDeadlines].map((one) => one.conditionType),
    ...spec.pushDenied,
    ...(spec.review?.gateChecks ?? []),
  ];
  const hint = nearHints(known);
  const types = [...known];
  const isKnown = (pattern: string) =>
    known.has(pattern) || (pattern.endsWith('*') && types.some((type) => matchesPattern(pattern, type)));
  return [...new Set(wanted)]
    .filter((pattern) => !isKnown(pattern))
    .map((pattern) => `no package has a condition or gate of the type ${pattern}${hint(pattern)}`);
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
