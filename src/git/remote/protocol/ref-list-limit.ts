import { SluiceError } from '../../../foundation/sluice-error.ts';
import { cleanText } from '../../../foundation/text/clean-text.ts';

/** The refs that Sluice reads of one remote. 90,000 published revisions with their records have fewer. */
export const MAX_REMOTE_REFS = 300_000;
/** The bytes of the list with them: 200 for each of that many refs. */
export const MAX_REF_LIST_BYTES = 64 * 1024 * 1024;

/** The error for a remote that lists more than that. It would cost all other repositories memory and time. */
export function tooManyRefs(url: string): SluiceError {
  return new SluiceError(
    'LimitExceeded',
    `cannot read ${cleanText(url)}: it lists more than ${MAX_REMOTE_REFS} refs, or more than ${MAX_REF_LIST_BYTES / 1024 / 1024} MiB of them; delete branches and tags that are not needed, or split the repository`,
  );
}
