import type { Running } from './run-service.ts';
import { type WaitReport, waitReport } from './wait-report.ts';

/** Waits until the controllers have done what they can, and says what is left for others. Undefined if the user ended it before. */
export async function firstRest(
  { session, service, stop, about }: Running,
  command: (...words: string[]) => string,
): Promise<WaitReport | undefined> {
  try {
    await service.idle(stop.signal);
  } catch (error) {
    if (stop.signal.aborted) return undefined;
    throw error;
  }
  const { resolvers, disabled } = about;
  const { clock, actor } = session;
  return waitReport(session, service, {
    resolvers,
    disabled,
    running: true,
    now: clock.now(),
    actor: actor.name,
    command,
  });
}
