import { z } from 'zod';
import { causesOf, invalidObject } from '../../resource/object/invalid-object.ts';

/** Parts of the schemas of reviews; clients written in Go send null for what they leave out. */

export const text = z
  .string()
  .max(4096)
  .nullish()
  .transform((value) => value ?? '');

export const texts = z
  .array(z.string().max(1024))
  .max(1000)
  .nullish()
  .transform((value) => value ?? []);

export const extra = z
  .record(z.string().max(1024), z.array(z.string().max(4096)).max(100))
  .refine((values) => Object.keys(values).length <= 100, 'must have at most 100 keys')
  .nullish()
  .transform((value) => value ?? {});

export interface ReviewName {
  readonly group: string;
  readonly kind: string;
  /** Errors must not contain values. */
  readonly secret?: boolean;
}

/** The spec of a posted review. Throws InvalidInput with InvalidObjectDetails. */
export function specOf<Spec extends z.ZodType>(name: ReviewName, spec: Spec, body: unknown): z.output<Spec> {
  const schema = z.object({
    apiVersion: z.literal(`${name.group}/v1`).optional(),
    kind: z.literal(name.kind).optional(),
    spec,
  });
  const result = schema.safeParse(body);
  if (result.success) return (result.data as { spec: z.output<Spec> }).spec;
  throw invalidObject(`${name.kind}.${name.group}`, causesOf(result.error.issues, body, name.secret ?? false));
}

/** The review with its status. */
export function reviewWithStatus({ group, kind }: ReviewName, spec: object | undefined, status: object): object {
  return { apiVersion: `${group}/v1`, kind, metadata: {}, ...(spec === undefined ? {} : { spec }), status };
}
