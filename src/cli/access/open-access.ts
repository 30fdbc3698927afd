import { systemClock } from '../../foundation/clock.ts';
import { Connection } from '../../kubernetes/connection.ts';
import { findClusterAccess } from '../../kubernetes/kubeconfig.ts';
import { DEFAULT_NAMESPACE } from '../../resource/object.ts';
import { Session } from '../assembly/session.ts';
import { actorOf } from '../program/actor.ts';
import type { ActorOptions, PlaceOptions } from '../program/invocation.ts';
import type { Access } from './access.ts';
import { FolderAccess } from './folder-access.ts';
import { placeOf } from './place.ts';
import { runningServer } from './running-server.ts';
import { ServerAccess } from './server-access.ts';

export interface OpenAccessOptions {
  readonly options: PlaceOptions & ActorOptions;
  readonly environment: NodeJS.ProcessEnv;
  /** Objects will be written; a data folder is made if it is not there. */
  readonly write: boolean;
  /** Told once of each limit of what is at hand. */
  readonly onNote: (text: string) => void;
  /** Told what was taken otherwise than it was asked for. */
  readonly onWarning: (text: string) => void;
}

/** Opens what a command line means: a server by its kubeconfig, or a data folder, by its `up` if one runs. */
export async function openAccess({
  options,
  environment,
  write,
  onNote,
  onWarning,
}: OpenAccessOptions): Promise<Access> {
  const { namespace } = options;
  const place = placeOf(options, environment);
  if (place.kind === 'server') {
    const { kubeconfig, context } = place;
    const connection = new Connection(
      await findClusterAccess({ kubeconfig, context, environment, clock: systemClock }),
      { onWarning },
    );
    // Such a server knows who asks; only what is said on the command line asks for more.
    const actor = options.as === undefined ? undefined : actorOf(options, environment);
    try {
      return await ServerAccess.open({ connection, namespace, actor });
    } catch (error) {
      await connection.close();
      throw error;
    }
  }
  const { folder } = place;
  const actor = actorOf(options, environment);
  const server = await runningServer(folder, { actor, namespace, onWarning });
  if (server !== undefined) return server;
  const session = await Session.open({ folder, actor, write, onNote, onWarning });
  return new FolderAccess(session, namespace ?? DEFAULT_NAMESPACE);
}
