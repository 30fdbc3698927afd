import { execFileSync } from 'node:child_process';

/** Makes a bare repository with one empty commit on `main`. Returns its path. */
export function emptyRepository(path: string): string {
  const identity = ['-c', 'user.name=test', '-c', 'user.email=test@example.com'];
  const git = (...words: string[]) =>
    execFileSync('git', [...identity, '--git-dir', path, ...words], { encoding: 'utf8', input: '' }).trim();
  execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', path]);
  git('update-ref', 'refs/heads/main', git('commit-tree', '-m', 'begin', git('mktree')));
  return path;
}
