import type { MemoryForge } from '../../controllers/pull-request/testing-forge.ts';
import type { PullRequest } from '../../src/forge/forge.ts';
import type { MergeRequest } from '../../src/forge/forge-merging.ts';
import { git, readRef } from './git/git-cli.ts';
import { writeCommit, writeObject, writeRef } from './git/write-objects.ts';

/** The head of a branch, if it exists. */
export function headOf(gitDir: string, branch: string): string | undefined {
  return readRef(gitDir, `refs/heads/${branch}`);
}

/** Commits a file on top of a branch, as a user does. Returns the commit. */
export function commitFile(gitDir: string, branch: string, path: string, content: string): string {
  const parent = headOf(gitDir, branch) ?? '';
  const blob = writeObject(gitDir, 'blob', content);
  const files = git(gitDir, ['ls-tree', '-r', parent]).split('\n');
  const others = files.filter((line) => line !== '' && !line.endsWith(`\t${path}`));
  const tree = treeOf(gitDir, [...others, `100644 blob ${blob}\t${path}`]);
  const commit = writeCommit(gitDir, { tree, parents: [parent], message: `change ${path}\n` });
  writeRef(gitDir, `refs/heads/${branch}`, commit);
  return commit;
}

/** Merges a branch as a host does. Returns the commit. */
export function mergeBranch(
  gitDir: string,
  base: string,
  head: string,
  { method, title, message }: Omit<MergeRequest, 'headCommit'>,
): string {
  const onto = headOf(gitDir, base) ?? '';
  const tree = git(gitDir, ['merge-tree', '--write-tree', onto, head]);
  const parents = method === 'merge' ? [onto, head] : [onto];
  const text = method === 'rebase' ? git(gitDir, ['log', '-1', '--format=%B', head]) : `${title}\n\n${message}`;
  const commit = writeCommit(gitDir, { tree, parents, message: `${text}\n` });
  writeRef(gitDir, `refs/heads/${base}`, commit);
  return commit;
}

/** Lets a host in memory have the branches of a repository. */
export function hostRepository(forge: MemoryForge, gitDir: string): void {
  forge.host = {
    head: (branch) => headOf(gitDir, branch),
    merge: (pull: PullRequest, wanted) => mergeBranch(gitDir, pull.base.branch, pull.head.commit, wanted),
  };
}

function treeOf(gitDir: string, lines: readonly string[]): string {
  const folders = new Map<string, string[]>();
  const files: string[] = [];
  for (const line of lines) {
    const [head = '', path = ''] = line.split('\t');
    const slash = path.indexOf('/');
    if (slash < 0) files.push(line);
    else {
      const folder = path.slice(0, slash);
      folders.set(folder, [...(folders.get(folder) ?? []), `${head}\t${path.slice(slash + 1)}`]);
    }
  }
  for (const [folder, inside] of folders) files.push(`040000 tree ${treeOf(gitDir, inside)}\t${folder}`);
  return git(gitDir, ['mktree'], `${files.join('\n')}\n`);
}
