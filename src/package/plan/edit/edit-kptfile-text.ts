import { editKptfile, type KptfileEdit, KptfileEditError } from '../../../../kptfile-schema/index.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';

/** Edits the Kptfile of a revision. Throws InvalidInput with the reason where the edit cannot be made. */
export function editKptfileText(name: string, text: string, edits: readonly KptfileEdit[]): string {
  return withEditErrors(name, () => editKptfile(text, edits));
}

/** Runs an edit; one that fails does so with InvalidInput, whose cause is the KptfileEditError. */
export function withEditErrors<Result>(name: string, edit: () => Result): Result {
  try {
    return edit();
  } catch (error) {
    if (!(error instanceof KptfileEditError)) throw error;
    throw new SluiceError('InvalidInput', `the Kptfile of ${name} cannot be edited: ${error.message}`, {
      cause: error,
    });
  }
}

/** Returns the failed edit of an error; undefined if it is another error. */
export function failedEdit(error: unknown): KptfileEditError | undefined {
  if (error instanceof KptfileEditError) return error;
  const cause = error instanceof SluiceError ? error.cause : undefined;
  return cause instanceof KptfileEditError ? cause : undefined;
}
