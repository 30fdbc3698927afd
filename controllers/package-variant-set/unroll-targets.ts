import { SluiceError } from '../../src/foundation/sluice-error.ts';
import type { Client } from '../../src/resource/client/client.ts';
import type { PackageVariantSet } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import type { Registry } from '../../src/resource/storage/registry.ts';
import type { Place } from './render-template.ts';

type Target = PackageVariantSet['spec']['targets'][number];

/** A kind, and which of its objects a target selects; undefined for a target that names repositories. */
export function selectionOf({ repositorySelector, objectSelector }: Target) {
  if (repositorySelector !== undefined)
    return {
      apiVersion: repositoryKind.apiVersion,
      kind: repositoryKind.kind,
      name: undefined,
      labels: repositorySelector,
    };
  if (objectSelector === undefined) return undefined;
  const { apiVersion, kind, name, matchLabels, matchExpressions } = objectSelector;
  return { apiVersion, kind, name, labels: { matchLabels, matchExpressions } };
}

/** The places of a set, in the order of its targets. Throws InvalidInput for objects of a kind that is not served. */
export async function unrollTargets(
  { metadata: { namespace = '' }, spec }: Stored<PackageVariantSet>,
  client: Client,
  kinds: Pick<Registry, 'kindOf'>,
): Promise<Place[]> {
  const places: Place[] = [];
  const add = (place: Place) => {
    places.push(place);
  };
  for (const [index, target] of spec.targets.entries()) {
    const field = `spec.targets[${index}]`;
    const { template, repositories = [] } = target;
    for (const { name, packageNames = [spec.upstream.package] } of repositories)
      for (const packageDefault of packageNames)
        add({ field, template, repoDefault: name, packageDefault, object: undefined });
    const selection = selectionOf(target);
    if (selection === undefined) continue;
    const kind = kinds.kindOf(selection);
    // Users who may write sets of a namespace need not be allowed to read what is outside of it.
    if (kind?.namespaced !== true)
      throw new SluiceError(
        'InvalidInput',
        `${field}: no namespaced objects of type ${selection.apiVersion}.${selection.kind} are served here; define the kind`,
      );
    const { items } = await client.list(kind, { namespace, labelSelector: selection.labels });
    for (const object of items)
      if (selection.name === undefined || object.metadata.name === selection.name)
        add({ field, template, repoDefault: object.metadata.name, packageDefault: spec.upstream.package, object });
  }
  return places;
}
