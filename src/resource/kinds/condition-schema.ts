import { z } from 'zod';

export const conditionStatusSchema = z.enum(['True', 'False', 'Unknown']);

/** A condition in the status of an object (metav1.Condition). */
export const conditionSchema = z.object({
  type: z.string().min(1),
  status: conditionStatusSchema,
  reason: z.string().default(''),
  message: z.string().default(''),
  lastTransitionTime: z.string().default(''),
  observedGeneration: z.int().optional(),
});

/** A condition of a package, as it stands in the Kptfile: without time and generation. */
export const packageConditionSchema = z.object({
  type: z.string().min(1),
  status: conditionStatusSchema,
  reason: z.string().optional(),
  message: z.string().optional(),
});
