import { listed } from '../../src/foundation/text/counted.ts';
import type { SourcedPolicy } from '../../src/package/store/policies/effective-policy.ts';
import { selectsByName } from '../../src/package/store/policies/selected-packages.ts';
import type { Repository } from '../../src/resource/kinds/porch/repository.ts';

/** Policies that are named. */
const MAX_NAMED = 5;

/** A sentence about policies that have spec.review for the same packages. */
export function clashText(policies: readonly string[], what: string): string {
  const names = listed([...policies].sort(), MAX_NAMED);
  return `the policies ${names} all have spec.review for ${what}, so that none of them applies there, and no pull request is opened or read`;
}

/**
 * A sentence about the policies that have spec.review for all packages of a repository, as this one has, also before there is any package; undefined
 * if there are none.
 */
export function repositoryClash(
  policy: SourcedPolicy,
  others: readonly SourcedPolicy[],
  repositories: readonly Repository[],
): string | undefined {
  for (const repository of repositories) {
    if (!isReviewedWhole(policy, repository)) continue;
    const clashing = others.filter((other) => isReviewedWhole(other, repository)).map(({ metadata }) => metadata.name);
    const { name } = repository.metadata;
    if (clashing.length > 0)
      return clashText([policy.metadata.name, ...clashing], `the packages of repository ${name}`);
  }
  return undefined;
}

/** The other policies that have spec.review for a row which this one selects too, and the first such row. */
export function rowClash<Row>(
  policy: SourcedPolicy,
  selections: ReadonlyMap<SourcedPolicy, ReadonlySet<Row>>,
): { readonly policies: readonly string[]; readonly row: Row } | undefined {
  const own = selections.get(policy);
  if (own === undefined) return undefined;
  const policies: string[] = [];
  let first: Row | undefined;
  for (const [other, rows] of selections) {
    const both = other === policy ? undefined : [...rows].find((row) => own.has(row));
    if (both === undefined) continue;
    policies.push(other.metadata.name);
    first ??= both;
  }
  return first === undefined ? undefined : { policies, row: first };
}

function isReviewedWhole({ spec: { review, selector } }: SourcedPolicy, repository: Repository): boolean {
  const { packages, packageSelector, variantSets, ...rest } = selector;
  if (review === undefined || (packages ?? packageSelector ?? variantSets) !== undefined) return false;
  const key = { repository: repository.metadata.name, package: '', workspace: '' };
  return selectsByName(rest, { key }, repository);
}
