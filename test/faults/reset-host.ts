import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import type { GitHubRepository } from '../support/github/github-repository.ts';

/** Keeps the data of a process and the repository of the host as they are. */
export function saveHost({ gitDir }: GitHubRepository, data: string, saved: string): void {
  cpSync(data, join(saved, 'data'), { recursive: true });
  cpSync(gitDir, join(saved, 'packages.git'), { recursive: true });
}

/** Restores both, and removes what is on the host. */
export function resetHost(repository: GitHubRepository, data: string, saved: string): void {
  for (const [from, to] of [
    ['data', data],
    ['packages.git', repository.gitDir],
  ] as const) {
    rmSync(to, { recursive: true, force: true });
    cpSync(join(saved, from), to, { recursive: true });
  }
  for (const list of [repository.pulls, repository.runs, repository.statuses]) list.length = 0;
  repository.labels.clear();
}
