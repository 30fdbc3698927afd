import type { Manifest } from '../../resource/client/manifests.ts';
import type { Kind } from '../../resource/schema/kind.ts';

/** Identifies an object among those of an import. */
export function manifestId(
  kind: Pick<Kind, 'apiVersion' | 'kind' | 'namespaced'>,
  { namespace, name }: { readonly namespace?: string | undefined; readonly name: string },
): string {
  return `${kind.apiVersion} ${kind.kind} ${kind.namespaced ? (namespace ?? '') : ''}/${name}`;
}

/** Moves objects behind their owners, whose uids they need; those of a cycle stay at the end. Otherwise the order stays. */
export function ownersFirst(manifests: readonly Manifest[]): Manifest[] {
  const kinds = new Map(manifests.map(({ kind }) => [`${kind.apiVersion} ${kind.kind}`, kind]));
  const missing = new Set(manifests.map(({ kind, object }) => manifestId(kind, object.metadata)));
  const waits = ({ object: { metadata } }: Manifest) =>
    (metadata.ownerReferences ?? []).some(({ apiVersion, kind: name, name: owner }) => {
      const kind = kinds.get(`${apiVersion} ${name}`);
      return kind !== undefined && missing.has(manifestId(kind, { namespace: metadata.namespace, name: owner }));
    });
  const sorted: Manifest[] = [];
  let rest = [...manifests];
  while (rest.length > 0) {
    const [waiting, ready] = [rest.filter(waits), rest.filter((manifest) => !waits(manifest))];
    if (ready.length === 0) return [...sorted, ...rest];
    for (const { kind, object } of ready) missing.delete(manifestId(kind, object.metadata));
    sorted.push(...ready);
    rest = waiting;
  }
  return sorted;
}
