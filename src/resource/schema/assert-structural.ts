import { SluiceError } from '../../foundation/sluice-error.ts';
import { structuralProblems } from './structural-problems.ts';
import type { StructuralSchema } from './structural-schema.ts';

/** Throws Internal if the schema of a kind of our own is not structural. */
export function assertStructural(schema: StructuralSchema): void {
  const problems = structuralProblems(schema).map(({ field, message }) => `${field}: ${message}`);
  if (problems.length > 0) throw new SluiceError('Internal', `the schema is not structural: ${problems.join('; ')}`);
}
