import { z } from 'zod';
import { causesOf, invalidObject } from '../../../resource/object/invalid-object.ts';
import type { Resource } from '../../resource/resource.ts';

/** Exact texts for a source; texts or whole regular expressions for a target. Absent fields match all. */
const resourceIdSchema = {
  group: z.string().optional(),
  version: z.string().optional(),
  kind: z.string().optional(),
  name: z.string().optional(),
  namespace: z.string().optional(),
};

const targetSelectorSchema = z.strictObject({
  ...resourceIdSchema,
  labelSelector: z.string().optional(),
  annotationSelector: z.string().optional(),
});

const optionsSchema = z.strictObject({
  delimiter: z.string().optional(),
  index: z.int().optional(),
  encoding: z.string().optional(),
  create: z.boolean().optional(),
});

const targetSchema = z.strictObject({
  select: targetSelectorSchema,
  reject: z.array(targetSelectorSchema).optional(),
  fieldPaths: z.array(z.string()).optional(),
  options: optionsSchema.optional(),
});

const replacementSchema = z
  .strictObject({
    source: z
      .strictObject({ ...resourceIdSchema, fieldPath: z.string().optional(), options: optionsSchema.optional() })
      .optional(),
    sourceValue: z.union([z.string(), z.number(), z.boolean()]).optional(),
    targets: z.array(targetSchema).min(1),
  })
  .refine(({ source, sourceValue }) => (source === undefined) !== (sourceValue === undefined), {
    message: 'set either source or sourceValue',
  });

const configSchema = z.object({ replacements: z.array(replacementSchema) });

export type Replacement = z.infer<typeof replacementSchema>;
export type ReplacementSource = NonNullable<Replacement['source']>;
export type ReplacementTarget = z.infer<typeof targetSchema>;
export type ReplacementOptions = z.infer<typeof optionsSchema>;
export type TargetSelector = z.infer<typeof targetSelectorSchema>;

/** Reads the configuration. An unknown field is an error: with a misspelt `fieldPaths` the name would be replaced. */
export function replacementsOf(config: Resource): Replacement[] {
  const { value } = config;
  const result = configSchema.safeParse(value);
  if (!result.success) throw invalidObject(config.describe(), causesOf(result.error.issues, value, false));
  return result.data.replacements;
}
