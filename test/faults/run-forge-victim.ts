import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { ScenarioOptions } from './forge-scenario.ts';

const VICTIM = fileURLToPath(new URL('forge-victim.ts', import.meta.url));

export interface VictimRun {
  readonly killed: boolean;
  readonly output: string;
}

/** Runs the scenario in a process that is killed at a numbered place; 0: never. Polls take `slowerMs` longer. */
export async function runVictim(options: ScenarioOptions, place: number, slowerMs = 0): Promise<VictimRun> {
  const child = spawn(process.execPath, [VICTIM, JSON.stringify(options), `${place}`, `${slowerMs}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => {
      output += chunk.toString();
      if (/^here$/m.test(output)) child.kill('SIGKILL');
    });
  await once(child, 'close');
  if (child.signalCode === null && child.exitCode !== 0) throw new Error(`the process failed: ${output}`);
  return { killed: child.signalCode === 'SIGKILL', output };
}

/** How many places a process passed that was not killed; NaN if it did not publish. */
export function placesOf({ output }: VictimRun): number {
  return Number(/^places (\d+) Published/m.exec(output)?.[1]);
}
