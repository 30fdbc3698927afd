import type { GroupVersionKind } from '../../../resource/object/object.ts';

/** Name of a shared schema of `meta/v1`, as Kubernetes has it. */
export function metaSchemaName(name: string): string {
  return `io.k8s.apimachinery.pkg.apis.meta.v1.${name}`;
}

/** `dev.kpt.porch.v1alpha1.PackageRevision`: the group backwards, as Kubernetes names the schemas of custom resources. */
export function schemaName({ group, version, kind }: GroupVersionKind): string {
  const prefix = group === '' ? 'io.k8s.api.core' : group.split('.').reverse().join('.');
  return `${prefix}.${version}.${kind}`;
}

/** The kind of a list of objects. */
export function listKind({ group, version, kind }: GroupVersionKind): GroupVersionKind {
  return { group, version, kind: `${kind}List` };
}
