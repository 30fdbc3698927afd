import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

export interface VictimResult {
  /** Number of the last step that it reported as done, 0 if none. */
  readonly acknowledged: number;
  /** Number of the stopping places that it passed, if it ended by itself. */
  readonly places: number | undefined;
  readonly errors: string;
}

export interface VictimOptions {
  readonly folder: string;
  readonly url: string;
  /** Kill it when it stops at this place. */
  readonly place?: number;
  /** Kill it after so many milliseconds from its first step. */
  readonly after?: number;
}

/** Runs the victim until it ends or is killed with SIGKILL from here. */
export async function runVictim(options: VictimOptions): Promise<VictimResult> {
  const script = fileURLToPath(new URL('victim.ts', import.meta.url));
  const child = spawn(process.execPath, [script, options.folder, options.url, `${options.place ?? 0}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  let errors = '';
  let timer: NodeJS.Timeout | undefined;
  child.stdout.on('data', (chunk: Buffer) => {
    if (output === '' && options.after !== undefined) timer = setTimeout(() => child.kill('SIGKILL'), options.after);
    output += chunk.toString();
    if (output.includes('here\n')) child.kill('SIGKILL');
  });
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  await once(child, 'close');
  clearTimeout(timer);
  const done = [...output.matchAll(/^done (\d+)$/gm)].map((match) => Number(match[1]));
  const places = /^places (\d+)$/m.exec(output)?.[1];
  return { acknowledged: Math.max(0, ...done), places: places === undefined ? undefined : Number(places), errors };
}
