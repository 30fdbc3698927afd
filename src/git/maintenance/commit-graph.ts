import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { runGit } from '../process/git-process.ts';

/**
 * Writes Git's commit graph of the reachable history, which halves the time of fetches by git. New commits are written
 * to a separate file, and small files are merged, so that the cost is proportional to the number of new commits.
 */
export async function writeCommitGraph(
  gitDir: string,
  clock: Clock,
  timeout: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { code, stderr } = await runGit({
    gitDir,
    arguments: ['commit-graph', 'write', '--reachable', '--split', '--no-progress'],
    clock,
    timeout,
    signal,
  });
  if (code !== 0) throw new SluiceError('Internal', `git commit-graph failed: ${stderr.trim().slice(0, 500)}`);
}

/** Call before commits are removed: git assumes that the commits in a graph exist. */
export async function dropCommitGraph(gitDir: string): Promise<void> {
  for (const name of ['commit-graph', 'commit-graphs'])
    await rm(join(gitDir, 'objects/info', name), { recursive: true, force: true });
}
