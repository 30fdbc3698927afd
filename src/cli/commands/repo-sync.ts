import { SYNC_ANNOTATION } from '../../../controllers/repository/open-repository.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { repositoryKind } from '../../resource/kinds/repository.ts';
import { lockHolder } from '../assembly/process-lock.ts';
import type { ActorOptions, DataOptions, Invocation, Outcome } from '../program/invocation.ts';
import { forEachName } from './for-each-name.ts';
import { inSession } from './in-session.ts';
import { expectRepository } from './repo-get.ts';

export interface SyncOptions extends DataOptions, ActorOptions {
  readonly all?: boolean;
}

/** `sluice repo sync`: a running `up` is asked to read the repository, and it is read here, so that failures are told. */
export function repoSync(names: readonly string[], options: SyncOptions, invocation: Invocation): Promise<Outcome> {
  return inSession(options, invocation, async (session) => {
    if (names.length === 0 && options.all !== true) {
      throw new SluiceError('InvalidInput', 'name repositories to read, or give --all');
    }
    const wanted = options.all === true ? session.repositories().map((object) => object.metadata.name) : names;
    const running = await lockHolder(session.folder.upLock);
    return forEachName(wanted, invocation, async (name) => {
      expectRepository(session, name);
      if (running !== undefined) {
        const now = new Date(session.clock.now()).toISOString();
        await session.client.patch(repositoryKind, { name }, { metadata: { annotations: { [SYNC_ANNOTATION]: now } } });
      }
      await session.openRepository(name);
      const count = session.store.list({ repository: name }).length;
      return `synced (${count} package revision${count === 1 ? '' : 's'})`;
    });
  });
}
