import { isSluiceError } from '../../foundation/sluice-error.ts';

/** Refusals of a server that does not have a kind, or whose caller may not read it. */
const UNREADABLE = ['Refused', 'NotFound', 'Unsupported'] as const;

/** Undefined where the server does not have what is read, or the caller may not read it. */
export async function unlessUnreadable<T>(reading: Promise<T>): Promise<T | undefined> {
  try {
    return await reading;
  } catch (error) {
    if (UNREADABLE.some((code) => isSluiceError(error, code))) return undefined;
    throw error;
  }
}
