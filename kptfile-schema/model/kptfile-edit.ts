import * as z from 'zod';
import type { KptfileErrorCode } from './kptfile-error.ts';
import {
  conditionSchema,
  kptFunctionSchema,
  renderStatusSchema,
  upstreamLockSchema,
  upstreamSchema,
} from './kptfile-schema.ts';

const type = z.string().min(1);
// YAML limits a key to 1024 characters; __proto__ would change objects that programs build from the file.
const key = z
  .string()
  .min(1)
  .max(1000)
  .refine((text) => text !== '__proto__', 'is not allowed as a key');
const value = z.string();
const list = z.enum(['mutators', 'validators']);
const index = z.int().min(0);

/** One change of a Kptfile, as plain data. */
export const kptfileEditSchema = z.discriminatedUnion('op', [
  // The condition's type, status, reason and message become exactly these; unknown fields of it stay.
  z.strictObject({ op: z.literal('setCondition'), condition: conditionSchema }),
  z.strictObject({ op: z.literal('removeCondition'), type }),
  z.strictObject({ op: z.literal('addGate'), conditionType: type }),
  z.strictObject({ op: z.literal('removeGate'), conditionType: type }),
  z.strictObject({ op: z.literal('setLabel'), key, value }),
  z.strictObject({ op: z.literal('removeLabel'), key }),
  z.strictObject({ op: z.literal('setAnnotation'), key, value }),
  z.strictObject({ op: z.literal('removeAnnotation'), key }),
  z.strictObject({ op: z.literal('setName'), name: z.string().min(1) }),
  // Without a value the field is removed; the same holds for the edits below.
  z.discriminatedUnion('field', [
    z.strictObject({
      op: z.literal('setInfo'),
      field: z.enum(['description', 'site', 'license', 'licenseFile', 'man']),
      value: z.string().optional(),
    }),
    z.strictObject({
      op: z.literal('setInfo'),
      field: z.enum(['emails', 'keywords']),
      value: z.array(z.string()).readonly().optional(),
    }),
  ]),
  z.strictObject({ op: z.literal('setUpstream'), upstream: upstreamSchema.optional() }),
  z.strictObject({ op: z.literal('setUpstreamLock'), upstreamLock: upstreamLockSchema.optional() }),
  // Without an index the function is added at the end.
  z.strictObject({ op: z.literal('addFunction'), list, function: kptFunctionSchema, index: index.optional() }),
  z.strictObject({ op: z.literal('removeFunction'), list, index }),
  z.strictObject({ op: z.literal('setRenderStatus'), renderStatus: renderStatusSchema.optional() }),
]);

export type KptfileEdit = z.infer<typeof kptfileEditSchema>;

export type KptfileEditErrorCode =
  /** The text is not a readable Kptfile; `readCode` has the reason. */
  | 'Unreadable'
  /** The edit itself is wrong: an empty type, a value that YAML cannot hold. */
  | 'InvalidEdit'
  /** The Kptfile would have more readiness gates or conditions than allowed. */
  | 'TooMany'
  /** There is no function at that index. */
  | 'NotFound'
  /** The place is written in a way that cannot be changed without touching more than the edit means. */
  | 'Unsupported';

/** Why an edit was not made. Nothing was changed. */
export class KptfileEditError extends Error {
  readonly code: KptfileEditErrorCode;
  /** The code of the reader, if the text could not be read. */
  readonly readCode: KptfileErrorCode | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;

  constructor(
    code: KptfileEditErrorCode,
    message: string,
    details: { readCode?: KptfileErrorCode; line?: number | undefined; column?: number | undefined } = {},
  ) {
    super(message);
    this.name = 'KptfileEditError';
    this.code = code;
    this.readCode = details.readCode;
    this.line = details.line;
    this.column = details.column;
  }
}
