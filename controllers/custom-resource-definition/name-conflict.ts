import type { CustomResourceDefinition } from '../../src/resource/kinds/apiextensions/custom-resource-definition.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';

/** A name of a definition that another kind of its group uses. */
export interface NameConflict {
  /** The reason that Kubernetes uses. */
  readonly reason: 'PluralConflict' | 'SingularConflict' | 'ShortNamesConflict' | 'KindConflict' | 'ListKindConflict';
  readonly message: string;
}

/** The first name of a definition that one of the other kinds uses; undefined if all are free. */
export function nameConflict(
  { spec: { group, names } }: CustomResourceDefinition,
  others: readonly Kind[],
): NameConflict | undefined {
  const inGroup = others.filter((kind) => kind.group === group);
  const words = new Set(inGroup.flatMap(({ plural, singular, shortNames }) => [plural, singular, ...shortNames]));
  const kinds = new Set(inGroup.flatMap(({ kind }) => [kind, `${kind}List`]));
  const taken = (set: ReadonlySet<string>, reason: NameConflict['reason'], ...wanted: (string | undefined)[]) => {
    const found = wanted.filter((name) => name !== undefined && set.has(name));
    if (found.length === 0) return undefined;
    return { reason, message: `${found.map((name) => JSON.stringify(name)).join(', ')} is already in use` };
  };
  return (
    taken(words, 'PluralConflict', names.plural) ??
    taken(words, 'SingularConflict', names.singular) ??
    taken(words, 'ShortNamesConflict', ...(names.shortNames ?? [])) ??
    taken(kinds, 'KindConflict', names.kind) ??
    taken(kinds, 'ListKindConflict', names.listKind)
  );
}
