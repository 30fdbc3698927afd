import { counted } from '../../src/foundation/text/counted.ts';
import type { PackagePolicy } from '../../src/resource/kinds/sluice/package-policy.ts';
import type { NewCondition } from '../../src/resource/object/condition.ts';

export const NAMES_KNOWN = 'NamesKnown';
export const SELECTED = 'Selected';

/** Sentences that a message has. */
const MAX_NAMED = 10;

export interface PolicyFacts {
  /** Numbers of packages of the namespace, and of those that the policy selects; undefined while not all are read. */
  readonly packages: { readonly all: number; readonly selected: number } | undefined;
  /** Sentences about names in the policy that nothing has. */
  readonly unknown: readonly string[];
}

/** Whether a policy selects packages, and whether what it names is known. Both only inform: the policy is in force in any case. */
export function policyConditions(
  { spec: { selector } }: Pick<PackagePolicy, 'spec'>,
  { packages, unknown }: PolicyFacts,
): NewCondition[] {
  const names: NewCondition =
    unknown.length === 0
      ? { type: NAMES_KNOWN, status: 'True', reason: 'Known', message: '' }
      : {
          ...{ type: NAMES_KNOWN, status: 'False', reason: 'UnknownNames' },
          message: `${unknown.slice(0, MAX_NAMED).join('; ')}; correct the names, or create what they mean`,
        };
  return packages === undefined ? [names] : [selected(selector, packages), names];
}

function selected(
  selector: PackagePolicy['spec']['selector'],
  { all, selected: some }: NonNullable<PolicyFacts['packages']>,
): NewCondition {
  const type = SELECTED;
  const packages = counted(all, 'package');
  if (all === 0) return { type, status: 'Unknown', reason: 'NoPackages', message: 'its namespace has no packages yet' };
  if (some === 0) {
    const message = `spec.selector selects none of the ${packages} of its namespace; correct it, or create what it means`;
    return { type, status: 'False', reason: 'NothingSelected', message };
  }
  if (Object.values(selector).every((field) => field === undefined)) {
    const message = `spec.selector is empty, so that it selects all packages of its namespace: ${all}`;
    return { type, status: 'True', reason: 'EverythingSelected', message };
  }
  return { type, status: 'True', reason: 'PackagesSelected', message: `it selects ${some} of ${packages}` };
}
