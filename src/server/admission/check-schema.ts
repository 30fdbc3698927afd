import { isSluiceError } from '../../foundation/sluice-error.ts';
import { type FieldCause, type InvalidObjectDetails, invalidObject } from '../../resource/object/invalid-object.ts';
import type { KubernetesObject } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import type { PlannedWrite } from '../handlers/handler.ts';

/**
 * Checks an object by the schema of Sluice, which has rules that the definition of the kind in a cluster cannot express, such as the form of
 * addresses. Problems that the stored object has already are not reported: an object that was written without this check must still be
 * editable, and deletable by removing its finalizers.
 */
export function checkSchema({ kind, operation, object, old }: PlannedWrite): void {
  if (operation === 'delete') return;
  const causes = causesIn(kind, object);
  if (causes.length === 0) return;
  const known = new Set(old === undefined ? [] : causesIn(kind, old).map(textOf));
  const added = causes.filter((cause) => !known.has(textOf(cause)));
  if (added.length > 0)
    throw invalidObject(`${kind.kind}.${kind.group} ${JSON.stringify(object.metadata.name)}`, added);
}

function causesIn(kind: Kind, object: KubernetesObject): readonly FieldCause[] {
  // The kube-apiserver has generated the name by now, or generates it from a valid prefix.
  const { metadata } = object;
  const named = metadata.name === '' ? { ...object, metadata: { ...metadata, name: 'generated' } } : object;
  try {
    kind.parse(named);
    return [];
  } catch (error) {
    if (!isSluiceError(error, 'InvalidInput')) throw error;
    return (error.details as InvalidObjectDetails | undefined)?.causes ?? [];
  }
}

function textOf({ field, message }: FieldCause): string {
  return `${field}: ${message}`;
}
