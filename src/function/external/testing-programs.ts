import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface ProgramFolder extends AsyncDisposable {
  readonly path: string;
  /** Writes an executable shell script. */
  add(name: string, script: string): Promise<void>;
  /** The process ids that scripts wrote to a file of the folder, one a line. */
  pids(name: string): Promise<number[]>;
}

/** A folder of programs for tests of what runs them. */
export async function programFolder(): Promise<ProgramFolder> {
  const path = await mkdtemp(join(tmpdir(), 'sluice-programs-'));
  return {
    path,
    async add(name, script) {
      await writeFile(join(path, name), `#!/bin/sh\n${script}\n`);
      await chmod(join(path, name), 0o755);
    },
    async pids(name) {
      const text = await readFile(join(path, name), 'utf8').catch(() => '');
      return text.split('\n').filter(Boolean).map(Number);
    },
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  };
}

/** True while a process runs; a zombie has ended. */
export async function isAlive(pid: number): Promise<boolean> {
  if (!existsSync(`/proc/${pid}`)) return false;
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  const state = stat.slice(stat.lastIndexOf(')') + 2).charAt(0);
  return state !== '' && state !== 'Z' && state !== 'X';
}
