import { readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { abandonedFolders, makeOwnFolder } from '../../foundation/files/own-folder.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { ExternalResult } from './external-runner.ts';
import { type AllowedPrograms, locateProgram } from './locate-program.ts';
import { withMemoryBound } from './memory-bound.ts';
import { runProcess } from './run-process.ts';

/** More than enough for children that start children. */
const MAX_ROUNDS = 20;

export interface ExecOptions {
  readonly allowed: AllowedPrograms;
  /** Milliseconds for one run. */
  readonly time: number;
  /** Bytes of standard output. */
  readonly outputBytes: number;
  /** Bytes of memory for each process. */
  readonly memoryBytes: number;
  readonly clock: Clock;
}

const PREFIX = 'sluice-exec-';

/**
 * Runs the programs that `exec` entries name, as the user that runs this process: without a shell, with a minimal environment, in a
 * separate temporary folder, with limits. This protects against accidents, not attackers: a program can write wherever this user can,
 * use the network, and read other processes of this user. A process that leaves its process group is found by its environment and
 * killed, unless it hides deliberately. Only containers isolate more.
 */
export class ExecRunner {
  readonly #options: ExecOptions;
  #cleared: Promise<void> | undefined;

  constructor(options: ExecOptions) {
    this.#options = options;
  }

  /** Returns why it cannot run this program; undefined if it can. */
  async refusal(exec: string): Promise<string | undefined> {
    const located = await locateProgram(exec, this.#options.allowed);
    return 'refusal' in located ? located.refusal : undefined;
  }

  /** See ExternalRunner. */
  async run(exec: string, input: string, signal: AbortSignal): Promise<ExternalResult> {
    const { allowed, time, outputBytes, memoryBytes, clock } = this.#options;
    const located = await locateProgram(exec, allowed);
    if ('refusal' in located) throw new SluiceError('Unavailable', located.refusal);
    // Cleanup that fails is no failure of this function; the next process repeats it.
    this.#cleared ??= clearAbandoned().catch(() => undefined);
    await this.#cleared;
    const folder = await makeOwnFolder(tmpdir(), PREFIX);
    try {
      return await runProcess({
        ...withMemoryBound({ file: located.program, arguments: located.arguments }, memoryBytes),
        title: `exec ${JSON.stringify(exec)}`,
        env: {
          PATH: 'path' in allowed ? allowed.path : '/usr/bin:/bin',
          HOME: folder,
          TMPDIR: folder,
          LC_ALL: 'C.UTF-8',
        },
        cwd: folder,
        input,
        time,
        outputBytes,
        clock,
        signal,
        endStrays: () => endStrays(homeAt(folder)),
      });
    } finally {
      await removeFolder(folder);
    }
  }
}

/** Ends the programs of processes that were killed, and removes their folders. */
async function clearAbandoned(): Promise<void> {
  for (const folder of await abandonedFolders(tmpdir(), PREFIX)) {
    await endStrays(homeAt(folder));
    await removeFolder(folder);
  }
}

/** The environment variable of all processes that a program starts, unless they hide. */
function homeAt(folder: string): string {
  return `HOME=${folder}`;
}

/**
 * Removes the files of a program. Files that cannot be removed are left to the system: that is not a failure of the function.
 */
async function removeFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 2 }).catch(() => undefined);
}

/**
 * Kills every process that was started with `variable` (`NAME=value`) in its environment, even if it left the process group of its
 * parent. It cannot find processes on systems without /proc, with a deliberately changed environment, or of other users.
 */
async function endStrays(variable: string): Promise<void> {
  const entry = Buffer.from(`\0${variable}\0`);
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const found = await processesWith(entry);
    if (found.length === 0) return;
    for (const pid of found) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // ESRCH: it has already ended.
      }
    }
  }
}

async function processesWith(entry: Buffer): Promise<number[]> {
  const names = await readdir('/proc').catch(() => []);
  const pids = names.filter((name) => /^[0-9]+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      // Unreadable are those of other users and those that have just ended; a process that was killed shows an empty one.
      const environment = await readFile(`/proc/${pid}/environ`).catch(() => Buffer.alloc(0));
      return Buffer.concat([Buffer.from('\0'), environment]).includes(entry) ? Number(pid) : undefined;
    }),
  );
  return found.filter((pid) => pid !== undefined);
}
