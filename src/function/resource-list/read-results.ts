import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { causesOf } from '../../resource/object/invalid-object.ts';
import type { FunctionResult } from '../model/function-result.ts';
import { plainValue } from '../yaml/node-value.ts';

/** A number or boolean of YAML in place of a text. */
const text = z.union([z.string(), z.number(), z.boolean()]).transform(String);
/** Go writes fields that are not set as empty. */
const optionalText = text.nullish().transform((value) => (value === null || value === '' ? undefined : value));

const resourceRef = z.looseObject({
  apiVersion: optionalText,
  kind: optionalText,
  name: optionalText,
  namespace: optionalText,
});

const resultSchema = z.looseObject({
  message: text.nullish().transform((value) => value ?? ''),
  // The specification: the default severity is error.
  severity: z
    .enum(['error', 'warning', 'info', ''])
    .nullish()
    .transform((value) => value || ('error' as const)),
  resourceRef: resourceRef.nullish(),
  field: z.looseObject({ path: optionalText }).nullish(),
  file: z.looseObject({ path: optionalText, index: z.int().nullish() }).nullish(),
  tags: z.record(z.string(), text).nullish(),
});

/** The findings of a function, from the node `results` of its ResourceList. Throws InvalidInput for another shape. */
export function readResults(node: unknown): FunctionResult[] {
  const value = plainValue(node);
  if (value === null) return [];
  const parsed = z.array(resultSchema).safeParse(value);
  if (parsed.success) return parsed.data.map((result) => withoutEmpty(result) as unknown as FunctionResult);
  const [cause] = causesOf(parsed.error.issues, value, true);
  throw new SluiceError(
    'InvalidInput',
    `the ResourceList of the function is invalid: results${cause?.field ?? ''}: ${cause?.message ?? 'not a list'}`,
  );
}

/** Without empty fields. */
function withoutEmpty(value: object): object {
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined && inner !== null);
  return Object.fromEntries(
    entries.map(([name, inner]) => {
      const nested = name === 'resourceRef' || name === 'field' || name === 'file';
      return [name, nested ? withoutEmpty(inner as object) : inner];
    }),
  );
}
