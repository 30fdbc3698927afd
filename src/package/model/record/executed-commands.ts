import { z } from 'zod';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import { listOf } from '../../trust/statement/strict-schemas.ts';

/** The last ones are kept, for the reply. */
const MAX_ENTRIES = 5;

export const executedCommandSchema = z.object({
  /** Of the comment: digits, which increase with the time of writing. */
  id: z.string(),
  /** Address of the comment. */
  url: z.string(),
  /** The user of the host. */
  user: z.string(),
  /** The user in whose name it was executed. */
  subject: z.string(),
  command: z.string(),
  outcome: z.enum(['done', 'refused']),
  message: z.string(),
});

export const executedCommandsSchema = z.object({
  /** Address of the pull request. */
  source: z.string(),
  /** Oldest first. */
  entries: listOf(executedCommandSchema),
});

/** A command in a comment of a pull request, with its result. */
export type ExecutedCommand = Readonly<z.infer<typeof executedCommandSchema>>;

/** The last commands that were executed in a pull request; those before them were too. */
export interface ExecutedCommands {
  readonly source: string;
  readonly entries: readonly ExecutedCommand[];
}

/** True if this command, or a later one of the pull request, was executed. */
export function isExecuted(executed: ExecutedCommands | undefined, source: string, id: string): boolean {
  const last = executed?.source === source ? executed.entries.at(-1)?.id : undefined;
  if (last === undefined) return false;
  return id.length === last.length ? id <= last : id.length < last.length;
}

/** Adds a command. Throws AlreadyExists if it was executed: another process can have read the same comment. */
export function withCommand(
  executed: ExecutedCommands | undefined,
  source: string,
  command: ExecutedCommand,
): { source: string; entries: ExecutedCommand[] } {
  if (isExecuted(executed, source, command.id))
    throw new SluiceError('AlreadyExists', `the command of comment ${command.id} was executed already`);
  const known = executed?.source === source ? executed.entries : [];
  return { source, entries: [...known, command].slice(-MAX_ENTRIES) };
}
