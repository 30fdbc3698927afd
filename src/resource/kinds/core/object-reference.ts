import { z } from 'zod';

/** A reference to any object, as events have it; no field is required. */
export const objectReferenceSchema = z.object({
  apiVersion: z.string().optional().describe('API version of the referenced object.'),
  kind: z.string().optional().describe('Kind of the referenced object.'),
  namespace: z.string().optional().describe('Namespace of the referenced object.'),
  name: z.string().optional().describe('Name of the referenced object.'),
  uid: z.string().optional().describe('UID of the referenced object.'),
  resourceVersion: z.string().optional().describe('resourceVersion of the referenced object.'),
  fieldPath: z.string().optional().describe('Path of the field in the referenced object, such as spec.containers[0].'),
});
