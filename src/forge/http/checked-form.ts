import type { ZodType } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';

/** Returns the response to a request in the form of a schema. Throws Corrupt. */
export function checkedForm<Result>(schema: ZodType<Result>, value: unknown, what: string): Result {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue === undefined ? '' : `: ${issue.path.join('.')}: ${issue.message}`;
  throw new SluiceError('Corrupt', `the response to ${what} does not have the documented form${where}`);
}
