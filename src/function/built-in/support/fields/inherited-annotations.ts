import type { Resource } from '../../../resource/resource.ts';

export const LOCAL_CONFIG = 'config.kubernetes.io/local-config';

/** Annotations that say where a resource stands, or what it is to programs, and nothing about what is made of it. */
const OWN =
  /^(?:(?:internal\.)?config\.kubernetes\.io\/(?:path|index|seqindent|id|package-path|local-config|function)|config\.k8s\.io\/.*)$/;

/** Annotations that resources get from the one that they are made of. */
export function inheritedAnnotations(resource: Resource): Record<string, string> {
  const annotations = resource.get(['metadata', 'annotations']);
  if (annotations === null || typeof annotations !== 'object') return {};
  return Object.fromEntries(
    Object.entries(annotations).flatMap(([name, value]) => (OWN.test(name) ? [] : [[name, String(value)]])),
  );
}
