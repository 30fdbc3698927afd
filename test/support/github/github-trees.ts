import type { FileMode } from '../../../src/git/git-repository.ts';
import { git } from '../git/git-cli.ts';

/** By name. */
export type Files = ReadonlyMap<string, { readonly mode: FileMode; readonly oid: string }>;

/** The files at the top of a commit. */
export function filesIn(gitDir: string, commit: string): Files {
  const lines = git(gitDir, ['ls-tree', commit]).split('\n');
  return new Map(
    lines.flatMap((line) => {
      const [, mode, oid = '', name = ''] = /^(\d+) \w+ (\w+)\t(.*)$/.exec(line) ?? [];
      return mode === undefined ? [] : [[name, { mode: mode as FileMode, oid }]];
    }),
  );
}

/** The tree that a merge of two commits has; undefined if there is a conflict. */
export function mergedTree(gitDir: string, base: string, head: string): string | undefined {
  try {
    return git(gitDir, ['merge-tree', '--write-tree', '--no-messages', base, head]);
  } catch (error) {
    // The status of a conflict.
    if ((error as { status?: number }).status === 1) return undefined;
    throw error;
  }
}
