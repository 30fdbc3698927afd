import { beforeEach, describe, expect, test } from 'vitest';
import { ShownProposals } from '../../controllers/pull-request/shown-proposals.ts';
import { proposalId } from '../../controllers/pull-request/text/section.ts';
import { git } from '../support/git/git-cli.ts';
import { eachProposals, GATE, type Proposals } from '../support/proposal-bench.ts';

describe('a writer moves a proposal into a shared pull request that an approver has commented', () => {
  const open = eachProposals();
  let at: Proposals;
  let branch: string;
  const [shown, moved] = ['apps.api.w1', 'apps.web.w1'];
  /** What outlives a process. */
  let notes: Map<string, string>;
  beforeEach(async () => {
    at = open();
    notes = new Map();
    at.restart({ shown: new ShownProposals(notes) });
    at.serveBranches();
    await at.policy({ batch: { maxPackages: 2 } }, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    await at.proposeAll('api', 'db');
    await at.settle();
    await at.proposeAll('web');
    await at.set(moved, 'True');
    await at.settle();
    expect(at.forge.pulls).toHaveLength(2);
    branch = at.forge.pulls[0]?.head.branch ?? '';
    at.forge.comment(1, 'bob', '/sluice approve');
    await at.settle();
    expect(lifecycles()).toEqual(['Proposed', 'Proposed']);
  });

  const lifecycles = () => [shown, moved].map((name) => at.world.store.find(name)?.lifecycle);
  const idOf = (name: string) => {
    const { uid, record } = at.revision(name);
    return proposalId(uid, record?.steps ?? []);
  };

  /** A commit of the writer on the main branch, as Sluice would make the first one of this branch. */
  function forged(): string {
    const read = (...args: string[]) => git(at.path, ['-c', 'user.name=w', '-c', 'user.email=w@x', ...args]).trim();
    const entries = [read('ls-tree', 'main')];
    for (const name of ['api', 'db', 'web']) entries.push(read('ls-tree', `proposed/${name}/w1`, name));
    const tree = git(at.path, ['mktree'], `${entries.filter(Boolean).join('\n')}\n`).trim();
    const members = read('log', '-1', '--format=%B', branch)
      .split('\n')
      .filter((line) => line.includes('-Member'));
    const trailers = [...members, `Sluice-Batch-Member: ${idOf(moved)} ${moved}`, `Sluice-Batch-Tree: ${tree}`];
    return read('commit-tree', tree, '-p', 'main', '-m', `Propose 3 packages\n\n${trailers.join('\n')}`);
  }

  function moveIn(): void {
    const body = at.forge.pulls[0]?.body ?? '';
    at.forge.change(1, { body: body.replace(idOf(shown), `${idOf(shown)},${idOf(moved)}`) });
    at.forge.change(2, { body: 'x' });
  }

  test('by a commit with the trailers of Sluice', async () => {
    git(at.path, ['update-ref', `refs/heads/${branch}`, forged()]);
    moveIn();
    await at.settle(60_000);
    expect(lifecycles()).toEqual(['Proposed', 'Proposed']);
  });

  test('by a branch that begins again from the main branch', async () => {
    git(at.path, ['update-ref', `refs/heads/${branch}`, 'main']);
    moveIn();
    await at.settle(60_000);
    expect(lifecycles()).toEqual(['Proposed', 'Proposed']);
  });

  test.each([
    { what: 'remembers what was shown', remembers: true },
    { what: 'remembers nothing', remembers: false },
  ])('before a new process looks at it, which $what', async ({ remembers }) => {
    at.restart(remembers ? { shown: new ShownProposals(notes) } : {});
    git(at.path, ['update-ref', `refs/heads/${branch}`, forged()]);
    moveIn();
    await at.settle(60_000);
    expect(lifecycles()).toEqual(['Proposed', 'Proposed']);
  });

  test('by the text alone, before a new process looks at it', async () => {
    at.restart({ shown: new ShownProposals(notes) });
    moveIn();
    await at.settle(60_000);
    expect(lifecycles()).toEqual(['Proposed', 'Proposed']);
  });

  describe('while no process ran, an approver', () => {
    /** Approves what was proposed first, once its gate is open. */
    async function approveWhileDown(): Promise<void> {
      await at.set(shown, 'True');
      await at.settle(60_000);
      at.forge.skip(60);
      at.forge.comment(1, 'bob', `/sluice approve ${shown}`);
    }
    const replies = () =>
      at.forge.commentsOf
        .get(1)
        ?.map(({ body }) => body)
        .join();

    test('approves what was shown', async () => {
      await approveWhileDown();
      at.restart({ shown: new ShownProposals(notes) });
      await at.settle(60_000);
      expect(at.world.store.find(shown)?.lifecycle, replies()).toBe('Published');
      expect([...notes.keys()].filter((key) => key.includes(shown))).toEqual([]);
    });

    test('is refused where nothing is remembered', async () => {
      await approveWhileDown();
      at.restart();
      await at.settle(60_000);
      expect(lifecycles()).toEqual(['Proposed', 'Proposed']);
      expect(replies()).toContain('it is not known that this pull request showed the package');
    });

    test('is refused where a writer has pushed to the branch of the pull request since', async () => {
      await approveWhileDown();
      git(at.path, ['update-ref', `refs/heads/${branch}`, forged()]);
      at.restart({ shown: new ShownProposals(notes) });
      await at.settle(60_000);
      expect(lifecycles()).toEqual(['Proposed', 'Proposed']);
    });

    test('is refused where the package has changed since', async () => {
      await approveWhileDown();
      await at.world.push(
        at.path,
        { 'api/a.yaml': 'kind: A\napiVersion: v1\nmetadata: {name: other}\n' },
        'proposed/api/w1',
      );
      await at.world.store.repository('apps').sync();
      at.restart({ shown: new ShownProposals(notes) });
      await at.set(shown, 'True');
      await at.settle(60_000);
      expect(lifecycles()).toEqual(['Proposed', 'Proposed']);
      expect(replies()).toContain('it is not known that this pull request showed the package');
    });
  });

  test('what an approver writes after it is shown counts', async () => {
    moveIn();
    await at.settle(60_000);
    // The host shows the head that has it.
    await at.forge.get(1);
    await at.settle();
    at.forge.comment(1, 'bob', `/sluice approve ${moved}`);
    await at.settle(60_000);
    expect(
      at.world.store.find(moved)?.lifecycle,
      at.forge.commentsOf
        .get(1)
        ?.map(({ body }) => body)
        .join(),
    ).toBe('Published');
  });
});
