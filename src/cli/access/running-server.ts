import { setTimeout as pause } from 'node:timers/promises';
import type { DataFolder } from '../../app/data/data-folder.ts';
import { runningUp } from '../../app/data/up-lock.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import { findClusterAccess } from '../../kubernetes/access/kubeconfig.ts';
import { Connection } from '../../kubernetes/connection/connection.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import { ADMIN_CONTEXT } from '../../server/authentication/kubeconfig.ts';
import { MASTERS_GROUP } from '../../server/authentication/user.ts';
import { ServerAccess } from './server-access.ts';

export interface RunningServerOptions {
  readonly actor: Actor;
  readonly namespace: string | undefined;
  readonly onWarning: (text: string, namespace?: string) => void;
  readonly clock?: Clock;
  /** Milliseconds to wait for a starting server; default 30 s. */
  readonly timeoutMs?: number;
}

/** `up` takes its lock first and serves last, after it has opened all repositories. */
const START_TIMEOUT_MS = 30_000;
const RETRY_INTERVAL_MS = 100;
const NOT_YET = ['Unavailable', 'Timeout', 'Unauthenticated', 'InvalidInput'] as const;

/**
 * The server of the `up` that works on a data folder; undefined if none runs, or one that does not serve. A user who can
 * read the folder may do everything in it, so the actor is a name for the records, with all rights.
 */
export async function runningServer(
  folder: DataFolder,
  { actor, namespace, onWarning, clock = systemClock, timeoutMs = START_TIMEOUT_MS }: RunningServerOptions,
): Promise<ServerAccess | undefined> {
  const end = clock.monotonic() + timeoutMs;
  const impersonated = { name: actor.name, groups: [...(actor.groups ?? []), MASTERS_GROUP] };
  for (;;) {
    const up = await runningUp(folder);
    if (up?.serves !== true) return undefined;
    let connection: Connection | undefined;
    try {
      const access = await findClusterAccess({ kubeconfig: folder.kubeconfig, context: ADMIN_CONTEXT });
      connection = new Connection(access, { onWarning });
      return await ServerAccess.open({ connection, namespace, actor: impersonated, onWarning, folder: folder.path });
    } catch (error) {
      await connection?.close();
      if (!NOT_YET.some((code) => isSluiceError(error, code))) throw error;
      if (clock.monotonic() < end) await pause(RETRY_INTERVAL_MS);
      else
        throw new SluiceError('Unavailable', `"sluice up" works on ${folder.path}, but: ${messageOf(error)}`, {
          cause: error,
        });
    }
  }
}
