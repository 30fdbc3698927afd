import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import type { PackageRevision } from '../../package/package-revision.ts';
import { DEFAULT_DATA_FOLDER, dataFolder } from '../assembly/data-folder.ts';
import { describeFailure, Session } from '../assembly/session.ts';
import { commandLine } from '../output/command-line.ts';
import { nearMisses } from '../output/near-misses.ts';
import { printable, printableLines } from '../output/printable.ts';
import { actorOf } from '../program/actor.ts';
import type { ActorOptions, DataOptions, Invocation } from '../program/invocation.ts';

/** The data folder that a command line means. */
export function folderOf(options: DataOptions, { environment }: Invocation) {
  return dataFolder(options.data ?? (environment.SLUICE_DATA || DEFAULT_DATA_FOLDER));
}

/** Makes commands that a person can copy, for the data folder that a command line means. */
export function commandFor(options: DataOptions, { environment }: Invocation): (...words: string[]) => string {
  // Under npm the program is not on the path.
  const underNpm = environment.npm_command !== undefined || environment.npm_lifecycle_event !== undefined;
  const program = underNpm ? ['npx', 'sluice'] : ['sluice'];
  const named = options.data === undefined || options.data === DEFAULT_DATA_FOLDER ? [] : ['--data', options.data];
  return (...words) => commandLine([...program, ...words, ...named]);
}

/** Runs a command on the data folder and closes what it opened, whatever happens. */
export async function inSession<Result>(
  options: DataOptions & ActorOptions,
  invocation: Invocation,
  run: (session: Session) => Promise<Result>,
  write = false,
): Promise<Result> {
  const actor = actorOf(options, invocation.environment);
  const { terminal } = invocation;
  const onNote = (note: string) =>
    terminal.note(`${terminal.style('yellow', 'note:', terminal.err)} ${printable(note)}`);
  const session = await Session.open({ folder: folderOf(options, invocation), actor, write, onNote });
  try {
    return await run(session);
  } finally {
    await session.close();
  }
}

/** Opens every repository; those that cannot be opened are told. Returns how many these are. */
export async function openAll(session: Session, { terminal }: Invocation): Promise<number> {
  const failures = await session.openAll();
  const label = terminal.style('yellow', 'warning:', terminal.err);
  for (const failure of failures) terminal.note(`${label} ${printableLines(describeFailure(failure))}`);
  return failures.length;
}

/** The repository that the name of a revision begins with: names of repositories have no dot. */
export function repositoryOf(revisionName: string): string {
  const dot = revisionName.indexOf('.');
  return dot === -1 ? revisionName : revisionName.slice(0, dot);
}

/** A revision by its full name, its repository opened. NotFound names what may have been meant. */
export async function findRevision(session: Session, name: string): Promise<PackageRevision> {
  const repository = repositoryOf(name);
  try {
    await session.openRepository(repository);
  } catch (error) {
    if (!isSluiceError(error, 'NotFound') || session.repository(repository) !== undefined) throw error;
    const known = session.repositories().map((object) => object.metadata.name);
    throw notFound(
      name,
      nearMisses(repository, known).map((near) => `${near}${name.slice(repository.length)}`),
    );
  }
  const found = session.store.find(name);
  if (found !== undefined) return found;
  const names = session.store.list({ repository }).map((revision) => revision.name);
  throw notFound(name, nearMisses(name, names));
}

function notFound(name: string, near: readonly string[]): SluiceError {
  const hint = near.length === 0 ? '"sluice rpkg get" lists what there is' : `did you mean ${near.join(' or ')}?`;
  return new SluiceError('NotFound', `package revision "${printable(name)}" not found; ${hint}`);
}
