import type { ObjectExplanation } from '../../../controllers/package-variant/describe-variant.ts';
import { unlessMissing } from '../../foundation/sluice-error.ts';
import { nearMisses } from '../../foundation/text/near-misses.ts';
import { packageVariantSetKind } from '../../resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { Access } from '../access/access.ts';

/** The objects that a selector names. */
interface NamedObjects {
  readonly repositories?: readonly string[] | undefined;
  readonly variantSets?: readonly string[] | undefined;
}

/** Adds the objects that a selector names and that do not exist: a misspelt name selects nothing, and is no error. */
export async function withUnknownNames(
  { client, namespace }: Access,
  explanation: ObjectExplanation,
  { repositories = [], variantSets = [] }: NamedObjects,
): Promise<ObjectExplanation> {
  const reasons: string[] = [];
  if (repositories.length > 0) {
    const known = (await client.list(repositoryKind, { namespace })).items.map(({ metadata }) => metadata.name);
    reasons.push(...unknown('repository', 'is not registered', repositories, known));
  }
  if (variantSets.length > 0) {
    const sets = await unlessMissing(client.list(packageVariantSetKind, { namespace }));
    const known = (sets?.items ?? []).map(({ metadata }) => metadata.name);
    reasons.push(...unknown('PackageVariantSet', 'does not exist', variantSets, known));
  }
  return { ...explanation, reasons: [...explanation.reasons, ...reasons] };
}

function unknown(kind: string, what: string, wanted: readonly string[], known: readonly string[]): string[] {
  return wanted
    .filter((name) => !known.includes(name))
    .map((name) => {
      const near = nearMisses(name, known);
      const hint = near.length === 0 ? '' : `; did you mean ${near.join(' or ')}?`;
      return `its selector names the ${kind} ${name}, which ${what}${hint}`;
    });
}
