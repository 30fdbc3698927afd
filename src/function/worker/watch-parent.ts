import { Worker } from 'node:worker_threads';

/**
 * Ends this process when the one that started it is gone. A function that computes without end never hears of it, so a thread looks,
 * twice a second.
 */
export function watchParent(parent: number): void {
  const look = `setInterval(() => { if (process.ppid !== ${Math.trunc(parent)}) process.kill(process.pid, 'SIGKILL'); }, 500)`;
  // The room that V8 reserves for code would count as memory of this process.
  const resourceLimits = { maxOldGenerationSizeMb: 8, maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 16 };
  new Worker(look, { eval: true, resourceLimits }).unref();
}
