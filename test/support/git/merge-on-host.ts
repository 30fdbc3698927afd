import { git, readRef } from './git-cli.ts';
import { PERSON, writeCommit, writeRef } from './write-objects.ts';

export type MergeStyle = 'merge' | 'squash' | 'rebase' | 'fast-forward';

const MAIN = 'refs/heads/main';

/** Merges a commit into the main branch of a repository as the button of a Git host does. Returns the head before and after. */
export function mergeOnHost(
  path: string,
  head: string,
  style: MergeStyle,
  number = 1,
): { readonly base: string; readonly commit: string } {
  const base = readRef(path, MAIN) ?? '';
  const commit = mergedCommit(path, base, head, style, number);
  writeRef(path, MAIN, commit);
  return { base, commit };
}

function mergedCommit(path: string, base: string, head: string, style: MergeStyle, number: number): string {
  if (style === 'rebase') return rebased(path, base, head);
  if (style === 'fast-forward') {
    git(path, ['merge-base', '--is-ancestor', base, head]);
    return head;
  }
  const tree = git(path, ['merge-tree', '--write-tree', base, head]);
  const parents = style === 'merge' ? [base, head] : [base];
  const title = style === 'merge' ? 'Merge' : 'Squash';
  return writeCommit(path, { tree, parents, message: `${title} #${number}\n` });
}

/** Each commit of the branch by its author on top of what came before it, also where it changes nothing there. */
function rebased(path: string, base: string, head: string): string {
  let onto = base;
  for (const one of git(path, ['rev-list', '--reverse', `${base}..${head}`]).split('\n')) {
    const tree = git(path, ['merge-tree', '--write-tree', base, one]);
    const shown = git(path, ['log', '-1', '--format=%an%n%ae%n%at%n%B', one]).split('\n');
    const [name = '', email = '', seconds, ...lines] = shown;
    const author = { name, email, time: Number(seconds) * 1000 };
    onto = writeCommit(path, { tree, parents: [onto], message: `${lines.join('\n')}\n` }, author, PERSON);
  }
  return onto;
}
