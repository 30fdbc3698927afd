import { expect } from 'vitest';
import type { KeptInstallation } from './kept-installation.ts';
import { runLifecycle } from './package-lifecycle.ts';
import { PatientClient } from './patient-client.ts';

const LANES = 4;

/** Clients that publish one package after the other until they are stopped. */
export interface LifecycleLoad {
  readonly client: PatientClient;
  /** The number of acknowledged steps. */
  readonly steps: number;
  /** Resolves when so many more steps were acknowledged. */
  progress(steps: number): Promise<void>;
  /** Ends with the lifecycles that have begun. Returns the published revisions, as `package/workspace`. */
  stop(): Promise<readonly string[]>;
}

export function startLoad({ admin }: Pick<KeptInstallation, 'admin'>, prefix: string): LifecycleLoad {
  const client = new PatientClient(admin);
  const published: string[] = [];
  let failure: unknown;
  let steps = 0;
  let stopped = false;
  let count = 0;
  const lane = async () => {
    while (!stopped) {
      count += 1;
      const packageName = `${prefix}-${count}`;
      const onStep = () => {
        steps += 1;
      };
      await runLifecycle({
        ...{ client, namespace: 'default', repository: 'packages', packageName, workspaceName: 'w1', onStep },
      });
      published.push(`${packageName}/w1`);
    }
  };
  const lanes = Promise.all(Array.from({ length: LANES }, lane)).catch((error: unknown) => {
    stopped = true;
    failure = error;
  });
  return {
    client,
    get steps() {
      return steps;
    },
    async progress(more) {
      const target = steps + more;
      await expect.poll(() => steps >= target || stopped, { timeout: 120_000 }).toBe(true);
      if (failure !== undefined) throw failure;
    },
    async stop() {
      stopped = true;
      await lanes;
      if (failure !== undefined) throw failure;
      return published;
    },
  };
}
