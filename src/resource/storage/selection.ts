import type { KubernetesObject } from '../object/object.ts';
import type { KindSchema } from '../schema/kind-schema.ts';
import { compileFieldSelector } from '../selector/field-selector.ts';
import { matchesLabels } from '../selector/label-selector.ts';
import type { Selection } from './storage.ts';

/** Compiles a selection to a test for objects of a kind. Throws BadRequest for fields that cannot be selected. */
export function compileSelection(
  selection: Selection,
  kind: Pick<KindSchema, 'selectableFields'>,
): (object: KubernetesObject) => boolean {
  const { namespace, labelSelector } = selection;
  const matchesFields =
    selection.fieldSelector === undefined ? undefined : compileFieldSelector(selection.fieldSelector, kind);
  return (object) =>
    (namespace === undefined || object.metadata.namespace === namespace) &&
    (labelSelector === undefined || matchesLabels(labelSelector, object.metadata.labels)) &&
    (matchesFields === undefined || matchesFields(object));
}
