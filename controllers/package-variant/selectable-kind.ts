import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import type { Kind } from '../../src/resource/schema/kind.ts';

/**
 * True for a kind whose objects variants and sets may read. Their names, labels, annotations and specs get into packages, and users who may
 * write variants of a namespace need not be allowed to read its Secrets (an annotation of kubectl repeats the data), nor what is outside of it.
 */
export function isSelectable(kind: Kind): boolean {
  return kind.namespaced && !(kind.group === secretKind.group && kind.kind === secretKind.kind);
}
