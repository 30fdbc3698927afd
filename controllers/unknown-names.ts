import { unlessMissing } from '../src/foundation/sluice-error.ts';
import { nearHints } from '../src/foundation/text/near-misses.ts';
import type { Client } from '../src/resource/client/client.ts';
import { packageVariantSetKind } from '../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../src/resource/kinds/porch/repository.ts';
import type { KubernetesObject } from '../src/resource/object/object.ts';

/** Names of Repositories and PackageVariantSets. */
export interface ObjectNames {
  readonly repositories?: readonly string[] | undefined;
  readonly variantSets?: readonly string[] | undefined;
}

/** A sentence for each object that a selector names and that does not exist: a misspelt name selects nothing, and is no error. */
export function unknownNames(
  { repositories = [], variantSets = [] }: ObjectNames,
  known: { readonly [Kind in keyof Required<ObjectNames>]: readonly string[] },
): string[] {
  return [
    ...unknown('repository', 'is not registered', repositories, known.repositories),
    ...unknown('PackageVariantSet', 'does not exist', variantSets, known.variantSets),
  ];
}

/** `unknownNames` for the objects that there are in a namespace. */
export async function readUnknownNames(
  client: Pick<Client, 'list'>,
  namespace: string,
  names: ObjectNames,
): Promise<string[]> {
  const namesOf = (objects: readonly KubernetesObject[]) => objects.map(({ metadata }) => metadata.name);
  const { repositories = [], variantSets = [] } = names;
  return unknownNames(names, {
    repositories: repositories.length === 0 ? [] : namesOf((await client.list(repositoryKind, { namespace })).items),
    variantSets:
      variantSets.length === 0
        ? []
        : namesOf((await unlessMissing(client.list(packageVariantSetKind, { namespace })))?.items ?? []),
  });
}

function unknown(kind: string, what: string, wanted: readonly string[], known: readonly string[]): string[] {
  const all = new Set(known);
  const hint = nearHints(all);
  return wanted
    .filter((name) => !all.has(name))
    .map((name) => `its selector names the ${kind} ${name}, which ${what}${hint(name)}`);
}
