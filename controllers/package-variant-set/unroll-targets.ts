import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { nearMisses } from '../../src/foundation/text/near-misses.ts';
import type { Client } from '../../src/resource/client/client.ts';
import type { PackageVariantSet } from '../../src/resource/kinds/porch/package-variant-set.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import type { Stored } from '../../src/resource/object/object.ts';
import {
  isSelectable,
  type KindName,
  type SelectableKinds,
  unreadableReason,
} from '../package-variant/selectable-kind.ts';
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

/** The kinds of the objects that a set selects. */
export function namedKinds({ spec }: Pick<PackageVariantSet, 'spec'>): KindName[] {
  return spec.targets.flatMap((target) => selectionOf(target) ?? []);
}

/** Where the variants of a set belong, and the targets that select nothing. */
export interface Unrolled {
  /** In the order of the targets. */
  readonly places: readonly Place[];
  /** `spec.targets[2]: 0 ConfigMap objects match`, for each target that selects nothing. */
  readonly empty: readonly string[];
}

/** The places of a set. Throws InvalidInput for objects of a kind that is not served, or that Sluice may not read. */
export async function unrollTargets(
  { metadata: { namespace = '' }, spec }: Stored<PackageVariantSet>,
  client: Client,
  kinds: Pick<SelectableKinds, 'kindOf' | 'kinds' | 'problemOf'>,
): Promise<Unrolled> {
  const places: Place[] = [];
  const empty: string[] = [];
  for (const [index, target] of spec.targets.entries()) {
    const field = `spec.targets[${index}]`;
    const { template, repositories = [] } = target;
    for (const { name, packageNames = [spec.upstream.package] } of repositories)
      for (const packageDefault of packageNames) {
        const subject = `${repositoryKind.kind} ${name}`;
        places.push({ field, subject, template, repoDefault: name, packageDefault, object: undefined });
      }
    const selection = selectionOf(target);
    if (selection === undefined) continue;
    const kind = kinds.kindOf(selection);
    if (kind === undefined || !isSelectable(kind))
      throw new SluiceError(
        'InvalidInput',
        kind?.namespaced === true
          ? `${field}: ${kind.kind} objects cannot be selected, since users who write sets need not be allowed to read them; select ConfigMaps`
          : `${field}: no namespaced objects of type ${selection.apiVersion}.${selection.kind} are served here; ${kinds.problemOf?.(selection) ?? nextStep(selection, kinds)}`,
      );
    const { items } = await client
      .list(kind, { namespace, labelSelector: selection.labels })
      .catch((error: unknown) => {
        const reason = unreadableReason(error, kind, namespace);
        if (reason === undefined) throw error;
        throw new SluiceError('InvalidInput', `${field}: ${reason}`, { cause: error });
      });
    const objects = items.filter(({ metadata: { name } }) => selection.name === undefined || selection.name === name);
    if (objects.length === 0) empty.push(`${field}: 0 ${kind.kind} objects match`);
    for (const object of objects) {
      const { name } = object.metadata;
      const subject = `${kind.kind} ${name}`;
      places.push({ field, subject, template, repoDefault: name, packageDefault: spec.upstream.package, object });
    }
  }
  return { places, empty };
}

/** The kinds whose names are similar, or the advice to define the kind. */
function nextStep(
  { apiVersion, kind }: { apiVersion: string; kind: string },
  kinds: Pick<SelectableKinds, 'kinds'>,
): string {
  const served = kinds.kinds().filter(isSelectable);
  const named = new Map(served.map((one) => [`${one.apiVersion}.${one.kind}`, one]));
  const same = [...named].filter(([, one]) => one.kind === kind).map(([name]) => name);
  const near = [...new Set([...same, ...nearMisses(`${apiVersion}.${kind}`, named.keys(), 1)])];
  return near.length === 0 ? 'define the kind' : `did you mean ${near.join(' or ')}? Otherwise define the kind`;
}
