import { gitNetworkOf } from '../../app/git-network.ts';
import { Session } from '../../app/session.ts';
import { signingChoice } from '../../app/signing-choice.ts';
import { isSluiceError, messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { PackageRevision } from '../../package/model/package-revision.ts';
import { DEFAULT_NAMESPACE, keyOf, keyText } from '../../resource/object/object.ts';
import { printable, printableLines } from '../output/printable.ts';
import { actorOf } from '../program/actor.ts';
import type { ActorOptions, Invocation, PlaceOptions } from '../program/invocation.ts';
import { findRevision, repositoryOf } from './find-revision.ts';
import { FolderAccess } from './folder-access.ts';
import { openAll } from './in-access.ts';
import { localFolderOf, placeOf } from './place.ts';

/** A data folder that is only looked at, beside an `up` or without one. */
export interface Look {
  readonly session: Session;
  /** As findRevision, with all that Git has of the revision. */
  find(name: string): Promise<PackageRevision>;
  /** Opens every repository; those that cannot be opened are reported. */
  openAll(): Promise<void>;
}

/** Runs a command that reads the repositories themselves, which a server does not show. `words` name it in messages. */
export async function inSession<Result>(
  words: string,
  options: PlaceOptions & ActorOptions,
  invocation: Invocation,
  run: (look: Look) => Promise<Result>,
): Promise<Result> {
  const { terminal, environment } = invocation;
  const place = placeOf(options, environment);
  const folder = localFolderOf(place, environment);
  if (folder === undefined) {
    throw new SluiceError(
      'Unsupported',
      `"sluice ${words}" reads Git and the records in it, which no server shows: name the data folder with --data (a kubeconfig is named now)`,
    );
  }
  const onNote = (note: string) =>
    terminal.note(`${terminal.style('yellow', 'note:', terminal.err)} ${printable(note)}`);
  const signing = signingChoice(environment);
  const network = gitNetworkOf({}, environment);
  const session = await Session.open({
    ...{ folder, actor: actorOf(options, environment), signing, network, onNote },
  });
  try {
    const access = new FolderAccess(session, options.namespace ?? DEFAULT_NAMESPACE);
    if (options.verbose === true || environment.SLUICE_DEBUG === '1') terminal.note(`using ${printable(access.where)}`);
    return await run({
      session,
      find: async (name) => {
        await openForLook(session, `${access.namespace}/${repositoryOf(name)}`, invocation);
        return session.store.get(keyText(keyOf(await findRevision(access, name))));
      },
      openAll: async () => {
        await openAll(access, invocation);
      },
    });
  } finally {
    await session.close();
  }
}

/** Opens a registered repository; where its remote does not answer, with what was read of it last. */
async function openForLook(session: Session, id: string, { terminal }: Invocation): Promise<void> {
  if (session.repository(id) === undefined) return;
  try {
    await session.openSoon(id);
  } catch (error) {
    if (!isSluiceError(error, 'Unavailable') && !isSluiceError(error, 'Timeout')) throw error;
    try {
      await session.openRepository(id, undefined, { offline: true });
    } catch {
      // It was never read: why it cannot be now is what counts.
      throw error;
    }
    const label = terminal.style('yellow', 'warning:', terminal.err);
    const why = printableLines(messageOf(error));
    terminal.note(`${label} the remote cannot be read (${why}); this is what was read of it last`);
  }
}
