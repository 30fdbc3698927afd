import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { makeOwnFolder } from '../../foundation/files/own-folder.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { ExternalResult } from './external-runner.ts';
import { withMemoryBound } from './memory-bound.ts';
import { runProcess } from './run-process.ts';

export interface FolderProgramOptions {
  /** Absolute path. */
  readonly program: string;
  /** Milliseconds for one run. */
  readonly time: number;
  /** Bytes of standard output. */
  readonly outputBytes: number;
  /** Bytes of memory for each process. */
  readonly memoryBytes: number;
  readonly clock: Clock;
}

/** The prefix of the folders of `ExecRunner`, which removes those that a killed process left. */
const PREFIX = 'sluice-exec-';
/** A port on which no server listens: programs that respect proxies reach no other machine. */
const NO_PROXY_LISTENS = 'http://127.0.0.1:9';

/**
 * Runs a program that the operator configured on a copy of files, as the user of this process: without a shell, with an empty PATH (so
 * that it starts no other program by name), in a temporary folder, with limits on time, memory and output. The folder is removed.
 * Paths must have been checked: a path with `..` would leave the folder.
 */
export async function runOnFolder(
  { program, time, outputBytes, memoryBytes, clock }: FolderProgramOptions,
  files: ReadonlyMap<string, Uint8Array>,
  commandArguments: (folder: string) => readonly string[],
): Promise<ExternalResult> {
  const home = await makeOwnFolder(tmpdir(), PREFIX);
  try {
    const folder = join(home, 'package');
    await mkdir(folder);
    for (const [path, data] of files) {
      await mkdir(dirname(join(folder, path)), { recursive: true });
      await writeFile(join(folder, path), data);
    }
    return await runProcess({
      ...withMemoryBound({ file: program, arguments: commandArguments(folder) }, memoryBytes),
      title: program,
      env: {
        PATH: '/nonexistent',
        HOME: home,
        TMPDIR: home,
        LC_ALL: 'C.UTF-8',
        HTTP_PROXY: NO_PROXY_LISTENS,
        HTTPS_PROXY: NO_PROXY_LISTENS,
      },
      cwd: folder,
      input: '',
      ...{ time, outputBytes, clock },
      signal: new AbortController().signal,
    });
  } finally {
    await rm(home, { recursive: true, force: true, maxRetries: 2 }).catch(() => undefined);
  }
}
