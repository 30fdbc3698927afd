import { z } from 'zod';

export const conditionStatusSchema = z
  .enum(['True', 'False', 'Unknown'])
  .describe('Status of the condition: True, False or Unknown.');

/** Writers share a list of conditions by their types. */
const CONDITIONS_BY_TYPE = { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['type'] };

const typeSchema = z.string().min(1).describe('Type of the condition, in CamelCase or as <prefix>/<name>.');

/** The conditions in the status of an object (metav1.Condition). */
export const conditionsSchema = z
  .array(
    z.object({
      type: typeSchema,
      status: conditionStatusSchema,
      reason: z
        .string()
        .default('')
        .describe('Machine-readable reason for the last transition, one word in CamelCase.'),
      message: z.string().default('').describe('Human-readable message with details of the last transition.'),
      // Clients written in Go read no empty text as a time.
      lastTransitionTime: z
        .string()
        .default('1970-01-01T00:00:00Z')
        .meta({ format: 'date-time' })
        .describe('Time of the last change of the status, in RFC 3339.'),
      observedGeneration: z
        .int()
        .optional()
        .describe('metadata.generation of the object that the condition was set for.'),
    }),
  )
  .meta(CONDITIONS_BY_TYPE)
  .describe('Current conditions of the object.');

/** The conditions in a Kptfile: without time and generation. */
export const packageConditionsSchema = z
  .array(
    z.object({
      type: typeSchema,
      status: conditionStatusSchema,
      reason: z.string().optional().describe('Machine-readable reason for the last transition, one word in CamelCase.'),
      message: z.string().optional().describe('Human-readable message with details of the last transition.'),
    }),
  )
  .meta(CONDITIONS_BY_TYPE)
  .describe('Conditions in the Kptfile.');

export const observedGenerationSchema = z
  .int()
  .optional()
  .describe('metadata.generation of the object that the status was written for.');
