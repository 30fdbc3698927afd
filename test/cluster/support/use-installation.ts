import { afterAll, afterEach, beforeEach, inject } from 'vitest';
import { beforeAllServed } from '../../conformance/support/place.ts';
import { ControlPlane } from './control-plane.ts';
import { KeptInstallation, type KeptOptions } from './kept-installation.ts';
import { clusterPrograms } from './programs.ts';

/** A control plane with Sluice on it, for the tests of one file, which break it. */
export interface UsedInstallation {
  readonly plane: ControlPlane;
  readonly current: KeptInstallation;
}

interface UseOptions extends KeptOptions {
  /** Runs before the first replica must be ready. */
  readonly prepare?: (kept: KeptInstallation, plane: ControlPlane) => Promise<unknown>;
}

/**
 * Seconds after which the aggregator probes a silent connection, and waits for the answer: else it uses the connection to a replica that
 * stands still for 45 seconds.
 */
const SHORT_PROBES = { HTTP2_READ_IDLE_TIMEOUT_SECONDS: '2', HTTP2_PING_TIMEOUT_SECONDS: '2' };

export function useInstallation({ prepare, ...options }: UseOptions = {}): UsedInstallation {
  let plane: ControlPlane | undefined;
  let current: KeptInstallation | undefined;
  let failed = false;
  beforeEach((context) => {
    if (inject('serverMissing') !== '') context.skip(inject('serverMissing'));
  });
  beforeAllServed(async () => {
    const programs = await clusterPrograms(() => undefined);
    if ('missing' in programs) throw new Error(programs.missing);
    Object.assign(process.env, SHORT_PROBES);
    plane = await ControlPlane.start({ programs });
    for (const name of Object.keys(SHORT_PROBES)) delete process.env[name];
    current = await KeptInstallation.start(plane, options);
    await prepare?.(current, plane);
    await current.whenReady();
  });
  afterEach(({ task }) => {
    if (task.result?.state === 'fail') failed = true;
  });
  afterAll(async () => {
    if (failed && current !== undefined) console.log(current.logs.slice(-200_000));
    await current?.[Symbol.asyncDispose]();
    await plane?.stop();
  });
  return {
    get plane() {
      if (plane === undefined) throw new Error('the control plane is there once the tests run');
      return plane;
    },
    get current() {
      if (current === undefined) throw new Error('the installation is there once the tests run');
      return current;
    },
  };
}
