import { type FieldShape, kptfileShape } from '../model/field-shape.ts';
import type { Kptfile } from '../model/kptfile-schema.ts';
import { lintPipeline } from './lint-pipeline.ts';

/** True if `lintKptfile` has no error for a Kptfile that was read. Without the text there are no positions, and it costs microseconds. */
export function isAcceptedByKpt(kptfile: Kptfile): boolean {
  let hasError = false;
  const error = () => {
    hasError = true;
  };
  lintPipeline(kptfile, { error });
  return !hasError && hasKnownFields(kptfile, kptfileShape);
}

function hasKnownFields(value: unknown, shape: FieldShape): boolean {
  if (typeof value !== 'object' || value === null) return true;
  switch (shape.kind) {
    case 'list':
      return !Array.isArray(value) || value.every((item) => hasKnownFields(item, shape.item));
    case 'map':
      return Object.values(value).every((item) => hasKnownFields(item, shape.value));
    case 'object':
      return Object.entries(value).every(([name, item]) => {
        const field = shape.fields.get(name);
        return field !== undefined && hasKnownFields(item, field);
      });
    default:
      return true;
  }
}
