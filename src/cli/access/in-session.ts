import { gitNetworkOf } from '../../app/repositories/git-network.ts';
import { Session } from '../../app/session/session.ts';
import { signingChoice } from '../../app/trust/signing-choice.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { printable } from '../output/printable.ts';
import { actorOf } from '../program/actor.ts';
import type { ActorOptions, Invocation, PlaceOptions } from '../program/invocation.ts';
import { localFolderOf, placeOf } from './place.ts';

/** Runs a command that works on the trust in a repository, which no API shows. `words` name it in messages. */
export async function inSession<Result>(
  words: string,
  options: PlaceOptions & ActorOptions,
  invocation: Invocation,
  run: (session: Session) => Promise<Result>,
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
    if (options.verbose === true || environment.SLUICE_DEBUG === '1')
      terminal.note(`using the data folder ${printable(folder.path)}`);
    return await run(session);
  } finally {
    await session.close();
  }
}
