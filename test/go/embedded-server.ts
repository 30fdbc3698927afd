import { join } from 'node:path';
import { RunningUp } from '../support/api/running-up.ts';
import type { GoClientServer } from './go-client-tests.ts';

/** Starts `sluice up` with a data folder in a folder. */
export async function startUp(folder: string, words: readonly string[] = []): Promise<GoClientServer> {
  const environment = { SLUICE_ALLOW_GIT_HOST: '127.0.0.1' };
  const up = await RunningUp.start(join(folder, 'data'), { environment, words });
  return {
    ...{ kubeconfig: up.folder.kubeconfig, api: up.api },
    ownFailures: () => up.ownFailures(),
    stop: () => up.end(),
  };
}
