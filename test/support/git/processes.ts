import { readdirSync, readFileSync } from 'node:fs';

export interface RunningProcess {
  readonly pid: number;
  readonly arguments: readonly string[];
  /** As `NAME=value`. */
  readonly environment: readonly string[];
}

/** Processes of this machine (Linux) with `text` in one of their arguments. */
export function processesWith(text: string): RunningProcess[] {
  const found: RunningProcess[] = [];
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    try {
      const commandLine = list(`/proc/${name}/cmdline`);
      if (!commandLine.some((argument) => argument.includes(text))) continue;
      found.push({ pid: Number(name), arguments: commandLine, environment: list(`/proc/${name}/environ`) });
    } catch {
      // The process ended during the check.
    }
  }
  return found;
}

function list(path: string): string[] {
  return readFileSync(path, 'utf8').split('\0');
}
