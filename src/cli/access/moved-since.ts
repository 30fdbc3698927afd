import { SluiceError } from '../../foundation/sluice-error.ts';

/** The error for a push of a folder that is behind the server. */
export function movedSince(
  name: string,
  { from, to, by }: { readonly from: string; readonly to: string; readonly by?: string },
): SluiceError {
  const last = by === undefined ? '' : `, last by ${by}`;
  return new SluiceError(
    'Conflict',
    `${name} has moved since it was pulled (from ${from} to ${to}${last}); pull it into another folder and bring your changes there`,
  );
}
