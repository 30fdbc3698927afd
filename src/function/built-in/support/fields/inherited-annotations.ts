import type { Resource } from '../../../resource/resource.ts';

export const LOCAL_CONFIG = 'config.kubernetes.io/local-config';

/** Annotations about the place of a resource or its treatment by programs, which do not apply to derived resources. */
const OWN =
  /^(?:(?:internal\.)?config\.kubernetes\.io\/(?:path|index|seqindent|id|package-path|local-config|function)|config\.k8s\.io\/.*)$/;

/** Returns the annotations that derived resources inherit. */
export function inheritedAnnotations(resource: Resource): Record<string, string> {
  const annotations = resource.get(['metadata', 'annotations']);
  if (annotations === null || typeof annotations !== 'object') return {};
  return Object.fromEntries(
    Object.entries(annotations).flatMap(([name, value]) => (OWN.test(name) ? [] : [[name, String(value)]])),
  );
}
