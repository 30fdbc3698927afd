import { z } from 'zod';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { listOf } from '../../trust/statement/strict-schemas.ts';

/** The last ones are kept, for the reply. */
const MAX_ENTRIES = 5;

export const executedCommandSchema = z.object({
  /** Of the comment: digits, which increase with the time of writing. */
  id: z.string(),
  /** Address of the comment, as it was then. */
  url: z.string(),
  /** When the comment was written, by the clock of the host, RFC 3339. Earlier versions did not record it. */
  writtenAt: z.string().optional(),
  /** The user of the host. */
  user: z.string(),
  /** The user in whose name it was executed. */
  subject: z.string(),
  command: z.string(),
  outcome: z.enum(['done', 'refused']),
  message: z.string(),
});

export const executedCommandsSchema = z.object({
  /** Address of the pull request, as it was at the last command. */
  source: z.string(),
  /** Oldest first. */
  entries: listOf(executedCommandSchema),
});

/** A command in a comment of a pull request, with its result. */
export type ExecutedCommand = Readonly<z.infer<typeof executedCommandSchema>>;

/** The last commands that were executed for a revision; those before them count as executed too. `entries` are of one pull request. */
export interface ExecutedCommands {
  readonly source: string;
  readonly entries: readonly ExecutedCommand[];
}

/** What determines the place of a comment among those of all pull requests of a host. */
export interface CommentPlace {
  readonly id: string;
  readonly url: string;
  /** RFC 3339, in whole seconds. */
  readonly createdAt: string;
}

/**
 * True if this command, or a later one, was executed for the revision, in whichever pull request. At the address of the last executed one the ids
 * decide, which increase also while the clock of the host is set back. Other addresses decide nothing: those of a repository that is renamed or
 * transferred change, as do those of a host that gets another name. There the time is first, since another host that takes over the comments numbers
 * them in another way.
 */
export function isExecuted(executed: ExecutedCommands | undefined, { id, url, createdAt }: CommentPlace): boolean {
  const last = executed?.entries.at(-1);
  if (last === undefined) return false;
  const [time, lastTime] = [Date.parse(createdAt), Date.parse(last.writtenAt ?? createdAt)];
  const isSamePull = pullOf(url) === pullOf(last.url);
  if (!isSamePull && (time < lastTime || time > lastTime)) return time < lastTime;
  return byId({ id }, last) <= 0;
}

/** In the order of writing. Ids are digits without leading zeros, of any length. */
export function byId(one: { readonly id: string }, other: { readonly id: string }): number {
  if (one.id === other.id) return 0;
  return one.id.length - other.id.length || (one.id < other.id ? -1 : 1);
}

/** Address of the pull request of a comment. */
function pullOf(url: string): string {
  return url.split('#', 1)[0] ?? '';
}

/**
 * Whether two addresses are of the same page of a repository, such as a pull request or a comment, also if the repository or its host was renamed in
 * between. For what is shown, and where what the page has is compared too: another host can have the same numbers.
 */
export function isSamePage(one: string, other: string): boolean {
  const pageOf = (url: string) => url.slice(url.lastIndexOf('/') + 1);
  return pageOf(one) === pageOf(other);
}

/** The last commands that were executed in the pull request with this address, for the reply. */
export function executedIn(executed: ExecutedCommands | undefined, source: string): readonly ExecutedCommand[] {
  return executed !== undefined && isSamePage(executed.source, source) ? executed.entries : [];
}

/** Adds a command. Throws AlreadyExists if it was executed: another process can have read the same comment. */
export function withCommand(
  executed: ExecutedCommands | undefined,
  source: string,
  command: ExecutedCommand,
): { source: string; entries: ExecutedCommand[] } {
  const { id, url, writtenAt = '' } = command;
  if (isExecuted(executed, { id, url, createdAt: writtenAt }))
    throw new SluiceError('AlreadyExists', `the command of comment ${id} was executed already`);
  return { source, entries: [...executedIn(executed, source), command].slice(-MAX_ENTRIES) };
}
