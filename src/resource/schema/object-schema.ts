import { z } from 'zod';
import { REQUIRED_VALUE } from '../object/invalid-object.ts';
import { DNS_LABEL, followsRule, isLabelValue, isQualifiedName, type NameRule } from '../object/name-rules.ts';
import { managedFieldsSchema } from './managed-fields-schema.ts';

const MAX_ANNOTATION_BYTES = 256 * 1024;

/** A string that follows a name rule. */
export function nameString(rule: NameRule): z.ZodString {
  return z.string().refine((text) => followsRule(text, rule), rule.rule);
}

const qualifiedName = z.string().refine(isQualifiedName, 'must be a name, or a DNS name, "/" and a name');
const serverSet = z
  .string()
  .nullish()
  .transform((text) => text ?? undefined);

const dropped = z.unknown().transform(() => undefined);

const ownerReference = z.object({
  apiVersion: z.string().regex(/^([^/]+\/)?[^/]+$/, 'must be a version, or a group, "/" and a version'),
  kind: z.string().min(1),
  name: z.string().min(1),
  uid: z.string().min(1),
  controller: z.boolean().optional(),
  blockOwnerDeletion: z.boolean().optional(),
});

/** Labels: keys are qualified names, values at most 63 characters. */
export const labelsSchema = z.record(
  qualifiedName,
  z.string().refine(isLabelValue, 'must be at most 63 letters, digits, "-", "_" or ".", not at the ends'),
);

/** Annotations: keys are qualified names, and their size is bounded. */
export const annotationsSchema = z
  .record(qualifiedName, z.string())
  .refine(
    (annotations) => Buffer.byteLength(JSON.stringify(annotations)) <= MAX_ANNOTATION_BYTES,
    'annotations must have at most 262144 bytes together',
  );

/** The metadata schema of a kind; `nameRule` undefined means that the server makes the names. */
export function metadataSchema(nameRule: NameRule | undefined) {
  const schema = z.object({
    name: z.string().default(''),
    generateName: z
      .string()
      .max(248)
      .regex(/^[a-z0-9][-a-z0-9.]*$/, 'must be lower case letters, digits, "-" or "."')
      .optional(),
    namespace: nameString(DNS_LABEL).optional(),
    uid: z.string().optional(),
    resourceVersion: z.string().optional(),
    generation: z.int().optional(),
    creationTimestamp: serverSet.optional(),
    deletionTimestamp: serverSet.optional(),
    labels: labelsSchema.optional(),
    annotations: annotationsSchema.optional(),
    ownerReferences: z
      .array(ownerReference)
      .refine(
        (owners) => owners.filter(({ controller }) => controller).length < 2,
        'only one owner can be the controller',
      )
      .optional(),
    finalizers: z.array(qualifiedName).optional(),
    managedFields: managedFieldsSchema.optional(),
    // Written by old servers, of no use to us.
    selfLink: dropped.optional(),
  });
  if (nameRule === undefined) return schema;
  return schema.superRefine((metadata, context) => {
    if (metadata.name === '' && metadata.generateName !== undefined) return;
    const message = metadata.name === '' ? REQUIRED_VALUE : nameRule.rule;
    if (!followsRule(metadata.name, nameRule)) context.addIssue({ code: 'custom', path: ['name'], message });
  });
}
