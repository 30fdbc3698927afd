import { messageOf } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { setTracer } from '../../foundation/tracing/traced.ts';
import type { LogSink } from '../service/log/log-entry.ts';
import { tracingSettings } from './tracing-settings.ts';

/**
 * Runs work with tracing if the environment turns it on; this is the only place that does. The SDK of OpenTelemetry is loaded only
 * then. A mistake in its settings is logged, and the work runs without tracing: environments set these variables for many programs.
 */
export async function withTracing<Result>(
  environment: NodeJS.ProcessEnv,
  log: LogSink,
  work: () => Promise<Result>,
): Promise<Result> {
  const warn = (message: string) =>
    log({ at: systemClock.now(), level: 'warn', event: 'Tracing', subject: 'traces', message });
  const tracing = await start(environment, warn).catch((error: unknown) => {
    warn(`no spans are recorded: ${messageOf(error)}`);
    return undefined;
  });
  if (tracing === undefined) return work();
  setTracer(tracing.tracer);
  try {
    return await work();
  } finally {
    setTracer(undefined);
    await tracing.stop();
  }
}

async function start(environment: NodeJS.ProcessEnv, warn: (message: string) => void) {
  const settings = tracingSettings(environment);
  if (settings === undefined) return undefined;
  const { startOpenTelemetry } = await import('./open-telemetry.ts');
  return startOpenTelemetry(settings, warn);
}
