import { z } from 'zod';

export const conditionStatusSchema = z
  .enum(['True', 'False', 'Unknown'])
  .describe('Whether the condition holds: True, False or Unknown.');

/** Writers share a list of conditions by their types. */
const CONDITIONS_BY_TYPE = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] };

const typeSchema = z
  .string()
  .min(1)
  .describe('What the condition is about; one word in CamelCase, or a path of words.');

/** The conditions in the status of an object (metav1.Condition). */
export const conditionsSchema = z
  .array(
    z.object({
      type: typeSchema,
      status: conditionStatusSchema,
      reason: z.string().default('').describe('Why, as one word in CamelCase, for programs.'),
      message: z.string().default('').describe('Why, for people.'),
      // Clients written in Go read no empty text as a time.
      lastTransitionTime: z
        .string()
        .default('1970-01-01T00:00:00Z')
        .meta({ format: 'date-time' })
        .describe('When the status last changed, RFC 3339.'),
      observedGeneration: z.int().optional().describe('The generation of the object that was judged.'),
    }),
  )
  .meta(CONDITIONS_BY_TYPE)
  .describe('What is true of the object now.');

/** The conditions of a package, as they stand in the Kptfile: without time and generation. */
export const packageConditionsSchema = z
  .array(
    z.object({
      type: typeSchema,
      status: conditionStatusSchema,
      reason: z.string().optional().describe('Why, as one word in CamelCase, for programs.'),
      message: z.string().optional().describe('Why, for people.'),
    }),
  )
  .meta(CONDITIONS_BY_TYPE)
  .describe('The conditions in the Kptfile.');

export const observedGenerationSchema = z
  .int()
  .optional()
  .describe('The generation of the object that the status is about.');
