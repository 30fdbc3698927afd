import type { PlaceExplanation } from '../access/placed-explanation.ts';
import type { Running } from './run-service.ts';
import { type WaitReport, waitReport } from './wait-report.ts';

/** Waits until the controllers are idle, and reports what waits for others. Undefined if the user ended it before. */
export async function waitUntilIdle(
  { session, service, stop }: Running,
  place: PlaceExplanation,
): Promise<WaitReport | undefined> {
  try {
    await service.idle(stop.signal);
  } catch (error) {
    if (stop.signal.aborted) return undefined;
    throw error;
  }
  return waitReport(session, service, place);
}
