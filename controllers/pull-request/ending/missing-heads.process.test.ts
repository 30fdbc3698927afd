import { beforeEach, expect, test, vi } from 'vitest';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { type MergeStyle, mergeOnHost } from '../../../test/support/git/merge-on-host.ts';
import { PERSON, writeCommit, writeRef } from '../../../test/support/git/write-objects.ts';
import { eachProposals, type Proposals } from '../../../test/support/proposal-bench.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
  at.serveBranches();
});

/** The host merges a head, and removes the branch or resets it. */
function merge(head: string, branch: string, style: MergeStyle): void {
  const { commit } = mergeOnHost(at.path, head, style, 1);
  const merged = { commit, by: 'bob' };
  const about = { branch, commit: head, isSameRepository: true };
  const { updatedAt: closedAt } = at.forge.change(1, { state: 'merged', head: about, merged });
  at.forge.change(1, { closedAt });
  writeRef(at.path, 'refs/pull/1/head', head);
}

/** The mirror has only what branches and tags reach, until the pull request is fetched for this time; 0: the host does not have it any more. */
function withoutHead(head: string, fetches: number): void {
  const { git: mirror, untracked } = at.world.store.repository('apps');
  let count = 0;
  const [fetch, stat] = [untracked.fetchPull.bind(untracked), mirror.statObjects.bind(mirror)];
  vi.spyOn(untracked, 'fetchPull').mockImplementation((...args) => {
    count += 1;
    return fetch(...args);
  });
  const isHere = () => fetches > 0 && count >= fetches;
  vi.spyOn(mirror, 'statObjects').mockImplementation(async (specs) =>
    (await stat(specs)).map((one, index) => (specs[index] === head && !isHere() ? undefined : one)),
  );
}

/** A commit with another file, and the proposed package on top of it. */
function headWithPolicy(commit: string, author = PERSON): string {
  const main = readRef(at.path, 'refs/heads/main') ?? '';
  const blob = git(at.path, ['hash-object', '-w', '--stdin'], 'kind: Policy\n').trim();
  const folder = git(at.path, ['mktree'], `100644 blob ${blob}\tp.yaml\n`).trim();
  const lines = git(at.path, ['ls-tree', main]);
  const tree = git(at.path, ['mktree'], `${lines}\n040000 tree ${folder}\tpolicies\n`.trimStart()).trim();
  const other = writeCommit(at.path, { tree, parents: [main], message: 'policy\n' }, author);
  const both = git(at.path, ['merge-tree', '--write-tree', other, commit]).trim();
  return writeCommit(at.path, { tree: both, parents: [other], message: 'package\n' }, author);
}

test.each([
  ['at once', 1, '(policies/p.yaml)'],
  ['after some time', 4, '(policies/p.yaml)'],
  ['never', 0, 'that could not be found out'],
])(
  'a rebase that brought other files is out of band, also if the branch was reset since; its head arrives %s',
  async (_, fetches, files) => {
    await at.policy({ publishOn: 'merge' });
    const name = await at.propose();
    await at.settle(60_000);
    const head = headWithPolicy(at.revision(name).commit, { ...PERSON, time: PERSON.time + 60_000 });
    merge(head, 'proposed/app/w1', 'rebase');
    withoutHead(head, fetches);
    await at.sync();
    await at.settle(120_000);
    expect(git(at.path, ['ls-tree', '-r', '--name-only', 'main'])).toContain('policies/p.yaml');
    expect(at.revision(name)).toMatchObject({
      lifecycle: 'Published',
      outOfBand: { reason: 'ForeignFiles', message: expect.stringContaining(files) },
    });
    expect(await at.world.events(name)).not.toContainEqual(expect.stringMatching(/^MergeNotPublished/));
  },
);

test.each(['squash', 'rebase'] as const)(
  'a shared pull request whose branch was removed at the merge publishes all packages in band in a new process, by %s',
  async (style) => {
    await at.policy({ batch: {}, publishOn: 'merge' });
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    const { branch, commit } = (await at.forge.get(1)).head;
    merge(commit, branch, style);
    git(at.path, ['update-ref', '-d', `refs/heads/${branch}`]);
    await at.world.store.repository('apps').sync();
    withoutHead(commit, 1);
    at.restart();
    await at.settle(120_000);
    for (const name of names) expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: undefined });
  },
);
