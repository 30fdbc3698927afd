import type { Kind } from '../../../resource/schema/kind.ts';

export const JSON_PATCH = 'application/json-patch+json';
export const MERGE_PATCH = 'application/merge-patch+json';
export const STRATEGIC_MERGE_PATCH = 'application/strategic-merge-patch+json';
export const APPLY_PATCH = 'application/apply-patch+yaml';

/**
 * The content types of patches that a kind accepts. Clients know the Kubernetes kinds and send strategic merge patches for them; no other
 * kind accepts those.
 */
export function patchTypesOf(kind: Pick<Kind, 'group' | 'schema'>): readonly string[] {
  return supportsStrategicPatch(kind)
    ? [JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH]
    : [JSON_PATCH, MERGE_PATCH, APPLY_PATCH];
}

/** True for the kinds of Kubernetes itself, false for those of Sluice and for custom resources. */
export function supportsStrategicPatch({ group, schema }: Pick<Kind, 'group' | 'schema'>): boolean {
  return schema === undefined && (group === '' || group.endsWith('.k8s.io'));
}
