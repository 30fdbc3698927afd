import { git } from './git-cli.ts';
import { PERSON, writeCommit } from './write-objects.ts';

/**
 * Rebases the commits of a head that a base does not have, as the button of GitHub does: each by its author, without merge commits and without
 * those that change nothing there. Returns the last one; undefined if one of them conflicts, or none is left.
 */
export function rebasedCommit(gitDir: string, base: string, head: string): string | undefined {
  const commits = git(gitDir, ['rev-list', '--reverse', '--topo-order', '--no-merges', `${base}..${head}`]);
  let onto = base;
  for (const one of commits === '' ? [] : commits.split('\n')) {
    const tree = pickedTree(gitDir, onto, one);
    if (tree === undefined) return undefined;
    if (tree === git(gitDir, ['rev-parse', `${onto}^{tree}`])) continue;
    const shown = git(gitDir, ['log', '-1', '--format=%an%n%ae%n%at%n%B', one]).split('\n');
    const [name = '', email = '', seconds, ...lines] = shown;
    const author = { name, email, time: Number(seconds) * 1000 };
    onto = writeCommit(gitDir, { tree, parents: [onto], message: `${lines.join('\n')}\n` }, author, PERSON);
  }
  return onto === base ? undefined : onto;
}

/** The tree of one commit with what another one changes; undefined if they conflict. */
function pickedTree(gitDir: string, onto: string, picked: string): string | undefined {
  // Git finds the merge base by itself: it has to be the parent of what is picked.
  const parents = [git(gitDir, ['rev-parse', `${picked}^`])];
  const beside = writeCommit(gitDir, {
    tree: git(gitDir, ['rev-parse', `${onto}^{tree}`]),
    parents,
    message: 'onto\n',
  });
  try {
    return git(gitDir, ['merge-tree', '--write-tree', '--no-messages', beside, picked]);
  } catch (error) {
    // The status of a conflict.
    if ((error as { status?: number }).status === 1) return undefined;
    throw error;
  }
}
