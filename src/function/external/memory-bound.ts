import { existsSync } from 'node:fs';

/** Part of util-linux, which about every Linux system has. */
const PRLIMIT = '/usr/bin/prlimit';

export interface Command {
  readonly file: string;
  readonly arguments: readonly string[];
}

/**
 * The command with a bound on the memory of each of its processes, in bytes, and without core dumps. Where the system has no prlimit
 * it is the command itself. Bounds what is written to, not what is reserved: Go and Node reserve far more than they use.
 */
export function withMemoryBound(command: Command, bytes: number): Command {
  if (!existsSync(PRLIMIT)) return command;
  return { file: PRLIMIT, arguments: [`--data=${bytes}`, '--core=0', '--', command.file, ...command.arguments] };
}
