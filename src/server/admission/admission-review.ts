import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { decodeJson } from '../http/json-text.ts';
import type { Status } from '../http/status.ts';

const API_VERSION = 'admission.k8s.io/v1';
/** As many as the objects of a kube-apiserver have; ConfigMaps are flat. */
const MAX_VALUES = 100_000;

/** Clients written in Go send null for no value. */
function orNothing<Schema extends z.ZodType>(schema: Schema) {
  return schema.nullish().transform((value) => value ?? undefined);
}

const text = orNothing(z.string()).transform((value) => value ?? '');
const texts = orNothing(z.record(z.string(), z.string()));

/** The parts that the rules read have their types; all others stay as they are. */
const writtenObject = z.looseObject({
  apiVersion: z.string().min(1),
  kind: z.string().min(1),
  metadata: z.looseObject({
    name: text,
    generateName: orNothing(z.string()),
    namespace: orNothing(z.string()),
    annotations: texts,
  }),
  spec: orNothing(
    z.looseObject({
      git: orNothing(z.looseObject({ repo: z.string(), secretRef: orNothing(z.looseObject({ name: text })) })),
    }),
  ),
  data: texts,
});

const requestSchema = z.object({
  uid: z.string().min(1).max(256),
  kind: z.object({ group: text, version: z.string().min(1), kind: z.string().min(1) }),
  subResource: text,
  name: text,
  namespace: text,
  operation: z.enum(['CREATE', 'UPDATE', 'DELETE', 'CONNECT']),
  userInfo: z.object({
    username: z.string().min(1),
    uid: text,
    groups: orNothing(z.array(z.string())).transform((groups) => groups ?? []),
    extra: orNothing(z.record(z.string(), z.array(z.string()))),
  }),
  object: orNothing(z.unknown()),
  oldObject: orNothing(z.unknown()),
});

const reviewSchema = z.object({
  apiVersion: z.literal(API_VERSION, `must be ${API_VERSION}`),
  kind: z.literal('AdmissionReview'),
  request: requestSchema,
});

/** A write to be reviewed for a kube-apiserver (`AdmissionRequest`). */
export type AdmissionRequest = z.output<typeof requestSchema>;
/** An object of a request, of any kind. */
export type WrittenObject = z.output<typeof writtenObject>;

/** Reads an AdmissionReview from the body of a request. BadRequest or LimitExceeded. Unknown fields are ignored, as those of later versions. */
export function readAdmissionReview(body: string): AdmissionRequest {
  return parsed(reviewSchema, decodeJson(body, MAX_VALUES).value, 'the body is no AdmissionReview').request;
}

/** Reads an object of a request. BadRequest if it has not the form of one. */
export function readWrittenObject(value: unknown, field: 'object' | 'oldObject'): WrittenObject {
  return parsed(writtenObject, value, `request.${field} cannot be read`);
}

/** The response to a review: the decision, and the Status that the client of the kube-apiserver gets if it is refused. */
export function admissionResponse(uid: string, refusal: Status | undefined) {
  const decision = refusal === undefined ? { allowed: true } : { allowed: false, status: refusal };
  return { apiVersion: API_VERSION, kind: 'AdmissionReview', response: { uid, ...decision } };
}

function parsed<Schema extends z.ZodType>(schema: Schema, value: unknown, problem: string): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new SluiceError('BadRequest', `${problem}: ${issue?.path.join('.') || 'the value'}: ${issue?.message}`);
}
