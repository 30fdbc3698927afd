import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { GIT_ENVIRONMENT } from './git-cli.ts';

export type MergeStyle = 'merge' | 'squash' | 'rebase' | 'fast-forward';

/** Merges a commit into the main branch of a repository as the button of a Git host does. Returns the head before and after. */
export function mergeOnHost(
  path: string,
  head: string,
  style: MergeStyle,
  number = 1,
): { readonly base: string; readonly commit: string } {
  const clone = join(dirname(path), `clone-${Math.random()}`);
  const inClone = (...args: string[]) =>
    execFileSync('git', ['-C', clone, ...args], { env: GIT_ENVIRONMENT, stdio: 'pipe' })
      .toString()
      .trim();
  execFileSync('git', ['clone', '--quiet', path, clone], { env: GIT_ENVIRONMENT, stdio: 'pipe' });
  inClone('fetch', '--quiet', 'origin', head);
  const base = inClone('rev-parse', 'HEAD');
  if (style === 'merge') inClone('merge', '--quiet', '--no-ff', '-m', `Merge #${number}`, head);
  if (style === 'fast-forward') inClone('merge', '--quiet', '--ff-only', head);
  if (style === 'squash') {
    inClone('merge', '--quiet', '--squash', head);
    inClone('commit', '--quiet', '-m', `Squash #${number}`);
  }
  if (style === 'rebase') inClone('cherry-pick', '--allow-empty', `HEAD..${head}`);
  inClone('push', '--quiet', 'origin', 'HEAD:main');
  return { base, commit: inClone('rev-parse', 'HEAD') };
}
