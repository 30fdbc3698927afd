import { SluiceError } from '../../foundation/sluice-error.ts';

export const CONDITION_STATUSES = ['True', 'False', 'Unknown'] as const;

/** The status that a word on the command line means. */
export function conditionStatus(word: string): (typeof CONDITION_STATUSES)[number] {
  const status = CONDITION_STATUSES.find((known) => known.toLowerCase() === word.toLowerCase());
  if (status === undefined) {
    throw new SluiceError(
      'InvalidInput',
      `the status of a condition is True, False or Unknown, not ${JSON.stringify(word)}`,
    );
  }
  return status;
}
