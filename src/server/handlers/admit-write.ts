import { untilEnded } from '../../foundation/concurrency/until-ended.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { ApiRequest } from '../request/api-request.ts';
import type { PlannedWrite, Services } from './handler.ts';

/** Resolves if a write may be stored now. Rejects with what admission rejects with, or with Timeout if the request ended meanwhile. */
export async function admitWrite(
  { context: { signal } }: ApiRequest,
  { admit }: Services,
  write: PlannedWrite,
): Promise<void> {
  await untilEnded(signal, () => admit(write));
  // The client received a Timeout, or has disconnected, and does not expect the write any more.
  if (signal?.aborted === true) throw new SluiceError('Timeout', 'the request ended before its write was admitted');
}
