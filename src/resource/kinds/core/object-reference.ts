import { z } from 'zod';

/** A reference to any object, as events have it; no field is required. */
export const objectReferenceSchema = z.object({
  apiVersion: z.string().optional().describe('API version of the object.'),
  kind: z.string().optional().describe('Kind of the object.'),
  namespace: z.string().optional().describe('Namespace of the object.'),
  name: z.string().optional().describe('Name of the object.'),
  uid: z.string().optional().describe('uid of the object.'),
  resourceVersion: z.string().optional().describe('resourceVersion of the object.'),
  fieldPath: z.string().optional().describe('The part of the object that is meant.'),
});
