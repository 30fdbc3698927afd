import type { Resource } from '../../../resource/resource.ts';

/** Names what must be applied first: `group/namespaces/<namespace>/<kind>/<name>` or `group/<kind>/<name>`, several with commas between. */
const DEPENDS_ON = 'config.kubernetes.io/depends-on';

interface Dependency {
  readonly group: string;
  readonly kind: string;
  readonly name: string;
  /** Absent for what lives in no namespace. */
  readonly namespace?: string;
}

/**
 * Rewrites the references of a resource's annotation: `change` returns the new reference, or undefined to keep it. Other text
 * is kept too. Returns how many were changed.
 */
export function changeDependencies(
  resource: Resource,
  change: (dependency: Dependency) => Dependency | undefined,
): number {
  const annotation = resource.annotation(DEPENDS_ON);
  if (annotation === undefined) return 0;
  let changed = 0;
  const references = annotation.split(',').map((written) => {
    const dependency = dependencyOf(written.trim());
    const next = dependency === undefined ? undefined : change(dependency);
    if (next === undefined) return written;
    changed++;
    return written.replace(written.trim(), () => textOf(next));
  });
  if (changed > 0) resource.set(['metadata', 'annotations', DEPENDS_ON], references.join(','));
  return changed;
}

function dependencyOf(text: string): Dependency | undefined {
  const parts = text.split('/');
  if (!parts.every((part) => /^[-.\w]*$/.test(part))) return undefined;
  if (parts.length === 5 && parts[1] === 'namespaces') {
    const [group = '', , namespace = '', kind = '', name = ''] = parts;
    return { group, namespace, kind, name };
  }
  if (parts.length !== 3) return undefined;
  const [group = '', kind = '', name = ''] = parts;
  return { group, kind, name };
}

function textOf({ group, namespace, kind, name }: Dependency): string {
  return namespace === undefined ? `${group}/${kind}/${name}` : `${group}/namespaces/${namespace}/${kind}/${name}`;
}
