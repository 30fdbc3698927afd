import { messageOf } from '../../foundation/sluice-error.ts';

/** A repository that could not be opened. */
export interface OpenFailure {
  readonly namespace: string | undefined;
  readonly repository: string;
  readonly error: unknown;
}

/** One line for it. */
export function describeFailure({ repository, error }: OpenFailure): string {
  return `repository ${repository}: ${messageOf(error)}`;
}
