import { execFileSync } from 'node:child_process';
import { describe, expect, inject, test, vi } from 'vitest';
import type { Oid } from '../../src/git/git-repository.ts';
import { temporaryFolder } from '../support/git/git-cli.ts';
import { storedEntry } from '../support/git/write-objects.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea, OWNER } from './support/gitea.ts';
import { ReviewedRepository } from './support/reviewed-repository.ts';

const missing = inject('giteaMissing');
const WAIT = { timeout: 60_000, interval: 500 };
const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: evil\n';

type Git = (words: readonly string[], input?: string | Buffer) => string;

function treeOf(git: Git, ...entries: readonly (readonly [mode: string, name: string, oid: Oid])[]): Oid {
  const data = Buffer.concat(entries.map(([mode, name, oid]) => storedEntry(mode, name, oid)));
  return git(['hash-object', '-w', '-t', 'tree', '--stdin', '--literally'], data);
}

const blobOf = (git: Git) => git(['hash-object', '-w', '--stdin'], KPTFILE);

function pushDraft(git: Git, root: Oid): void {
  const commit = git(['commit-tree', root, '-p', 'origin/main', '-m', 'odd']);
  git(['push', '-q', 'origin', `${commit}:refs/heads/drafts/evil/v1`]);
}

describe('objects that Gitea accepts and git would not write', skipFor(missing !== '' && missing), () => {
  const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });

  test.each<[string, string, (git: Git) => void, RegExp | undefined | 'no revision']>([
    [
      ...(['mode', 'a file of another mode'] as const),
      (git) => {
        const blob = blobOf(git);
        const folder = treeOf(git, ['100644', 'Kptfile', blob]);
        pushDraft(git, treeOf(git, ['100640', 'README.md', blob], ['40000', 'evil', folder]));
      },
      undefined,
    ],
    [
      ...(['order', 'a tree in the wrong order'] as const),
      (git) => {
        const blob = blobOf(git);
        const folder = treeOf(git, ['100644', 'Kptfile', blob]);
        pushDraft(git, treeOf(git, ['100644', 'z', blob], ['40000', 'evil', folder]));
      },
      /"evil" is not in order/,
    ],
    [
      ...(['tag', 'a tag of a tag of a file'] as const),
      (git) => {
        git(['tag', '-a', '-m', 'x', 'inner', blobOf(git)]);
        git(['tag', '-a', '-m', 'x', 'outer', 'inner']);
        git(['push', '-q', 'origin', 'refs/tags/outer:refs/tags/evil/v1']);
      },
      'no revision',
    ],
  ])(
    'a merge is published beside %s: %s',
    async (kind, _, push, problem) => {
      const name = `odd-${kind}`;
      await using at = await ReviewedRepository.open(gitea, name, [`${name}-bob`], { publishOn: 'merge' });
      const [web = ''] = await at.propose('web');
      await vi.waitFor(async () => expect((await at.pulls()).length).toBe(1), WAIT);
      const folder = temporaryFolder();
      try {
        const url = Object.assign(new URL(gitea.addressOf(name)), OWNER);
        execFileSync('git', ['clone', '-q', url.href, folder.path]);
        const own = ['-c', 'user.name=m', '-c', 'user.email=m@example.com', '-C', folder.path];
        push((words, input) =>
          execFileSync('git', [...own, ...words], input === undefined ? {} : { input })
            .toString()
            .trim(),
        );
      } finally {
        folder.remove();
      }
      await at.world.store.repository('apps').sync();
      await at.api('POST', '/pulls/1/merge', { Do: 'squash' }, `${name}-bob`);
      await vi.waitFor(async () => {
        await at.world.store.repository('apps').sync();
        expect(at.world.store.get(web).lifecycle).toBe('Published');
      }, WAIT);
      const shown = at.world.store.find('apps.evil.v1');
      if (problem === 'no revision') expect(shown).toBeUndefined();
      else if (problem === undefined) expect(shown?.problem).toBeUndefined();
      else expect(shown?.problem).toMatch(problem);
    },
    180_000,
  );
});
