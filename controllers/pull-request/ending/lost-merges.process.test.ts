import { beforeEach, describe, expect, test, vi } from 'vitest';
import { SluiceError } from '../../../src/foundation/sluice-error.ts';
import { ANNA } from '../../../test/support/fixture.ts';
import { git, readRef } from '../../../test/support/git/git-cli.ts';
import { eachProposals, GATE, type Proposals } from '../../../test/support/proposal-bench.ts';

const open = eachProposals();
let at: Proposals;
beforeEach(() => {
  at = open();
});

const REF = 'refs/heads/proposed/app/w1';

/** Proposes `app`, whose pull request is read. Returns the name of the revision. */
async function propose(review: Record<string, unknown> = {}, spec: Record<string, unknown> = {}): Promise<string> {
  await at.policy({ publishOn: 'merge', ...review }, spec);
  at.serveBranches();
  const name = await at.propose();
  await at.reconcile(name);
  return name;
}

/** A user merges it, and removes its branch, before Sluice reads either. */
async function mergeAndRemove(name: string, style?: 'merge' | 'squash' | 'rebase'): Promise<string> {
  const commit = await at.mergeHead(name, 'bob', style);
  git(at.path, ['update-ref', '-d', REF]);
  return commit;
}

/** Reads the repository and the host, as often as needed. */
async function read(name: string): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    at.clock.advance(60_000);
    await at.sync();
    await at.reconcile('apps');
    await at.reconcile(name);
  }
}

const eventsOf = (name: string) => at.world.events(name);

describe('a merge of which the branch is removed before Sluice reads it', () => {
  test.each([
    ['merge', false],
    ['squash', false],
    ['rebase', false],
    ['merge', true],
    ['squash', true],
    ['rebase', true],
  ] as const)('is published: %s, after a restart: %s', async (style, restarts) => {
    const name = await propose();
    const commit = await mergeAndRemove(name, style);
    if (restarts) {
      await at.sync();
      expect(at.world.store.find(name)).toBeUndefined();
      at.restart();
      await at.reconcile('apps');
      // The record that is left shows what to look for.
      expect(at.woken).toContain(name);
    }
    await read(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit, outOfBand: undefined });
    expect(await eventsOf(name)).toContainEqual(expect.stringContaining(`Approved: published at ${commit}`));
    expect(await eventsOf('apps')).toEqual([]);
    expect(readRef(at.path, REF)).toBeUndefined();
    expect(at.forge.pulls[0]?.body).toContain('is Published now');
  });

  test.each([false, true])(
    'is published where a user has pushed the proposal, after a restart: %s',
    async (restarts) => {
      await at.policy({ publishOn: 'merge' });
      at.serveBranches();
      const { name, commit: head } = await at.world.draft('apps/app/w1');
      git(at.path, ['update-ref', REF, head]);
      git(at.path, ['update-ref', '-d', 'refs/heads/drafts/app/w1']);
      await at.sync();
      await at.reconcile(name);
      expect(at.forge.pulls).toHaveLength(1);
      const commit = await mergeAndRemove(name);
      if (restarts) at.restart();
      await read(name);
      expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
    },
  );

  test('is out of band with a closed gate', async () => {
    const name = await propose({}, { requiredGates: [{ conditionType: GATE, approveOnly: true }] });
    await mergeAndRemove(name);
    await read(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', outOfBand: { reason: 'GateUnmet' } });
  });

  test('is reported where the policy does not let merges publish, with what a merged pull request permits', async () => {
    const name = await propose({ publishOn: 'approval' });
    const { commit } = at.revision(name);
    await mergeAndRemove(name);
    await read(name);
    expect(at.world.store.find(name)).toBeUndefined();
    expect(await eventsOf('apps')).toEqual([
      expect.stringMatching(
        `MergeNotPublished: .* does not let merges publish; .* push .${commit}. to .proposed/app/w1`,
      ),
    ]);
    expect(at.forge.pulls[0]?.body).toContain(`push \`${commit}\` to \`proposed/app/w1\``);
    expect(at.forge.pulls[0]?.body).not.toContain('open it again');
  });

  test('is reported where its record is gone too', async () => {
    const name = await propose();
    git(at.path, ['update-ref', '-d', 'refs/sluice/records/app/w1']);
    await mergeAndRemove(name);
    await read(name);
    expect(await eventsOf('apps')).toEqual([expect.stringMatching('MergeNotPublished: .* its record is gone too')]);
  });

  test('is restored once: a user who removes it again does so on purpose', async () => {
    const name = await propose();
    const commit = await mergeAndRemove(name);
    // The merge does not publish as long as the main branch does not have it.
    git(at.path, ['update-ref', 'refs/heads/main', `${commit}^`]);
    await read(name);
    expect(at.revision(name).lifecycle).toBe('Proposed');
    git(at.path, ['update-ref', '-d', REF]);
    await read(name);
    expect(at.world.store.find(name)).toBeUndefined();
    expect(await eventsOf('apps')).toEqual([expect.stringMatching('MergeNotPublished: .* was removed again')]);
  });

  test('is published although the repository could not be read after its branch was restored', async () => {
    const name = await propose();
    const commit = await mergeAndRemove(name);
    at.clock.advance(60_000);
    await at.sync();
    await at.reconcile('apps');
    const failure = new SluiceError('Unavailable', 'the repository cannot be read now');
    vi.spyOn(at.world.store.repository('apps'), 'refresh').mockRejectedValueOnce(failure);
    await expect(at.reconcile(name)).rejects.toThrow(failure.message);
    // The work queue repeats it.
    await at.reconcile(name);
    await read(name);
    expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
    expect(await eventsOf('apps')).toEqual([]);
  });
});

test.each([false, true])(
  'a merge of a shared pull request with the branches of its proposals is published, after a restart: %s',
  async (restarts) => {
    await at.policy({ publishOn: 'merge', batch: {} });
    at.serveBranches();
    const names = await at.proposeAll('api', 'web');
    await at.settle();
    const { branch } = at.forge.pulls[0]?.head ?? { branch: '' };
    const commit = await at.mergeAs(1, 'bob');
    for (const one of [branch, 'proposed/api/w1', 'proposed/web/w1'])
      git(at.path, ['update-ref', '-d', `refs/heads/${one}`]);
    if (restarts) {
      await at.sync();
      at.restart();
      await at.reconcile('apps');
      expect(at.woken).toEqual(expect.arrayContaining(names));
    }
    for (const name of names) await read(name);
    await at.settle();
    for (const name of names) expect(at.revision(name)).toMatchObject({ lifecycle: 'Published', commit });
    expect(await eventsOf('apps')).toEqual([]);
    expect(git(at.path, ['for-each-ref', 'refs/heads/proposed', 'refs/heads/sluice'])).toBe('');
  },
);

test.each(['open', 'closed'] as const)(
  'a proposal of which the branch is removed without a merge stays deleted: %s',
  async (state) => {
    const name = await propose();
    at.forge.change(1, { state });
    git(at.path, ['update-ref', '-d', REF]);
    await read(name);
    at.restart();
    await read(name);
    expect(at.world.store.find(name)).toBeUndefined();
    expect(await eventsOf('apps')).toEqual([]);
  },
);

test('the number of requests at a start does not grow with proposals that are left without a branch', async () => {
  await propose();
  git(at.path, ['update-ref', '-d', REF]);
  const record = readRef(at.path, 'refs/sluice/records/app/w1') ?? '';
  for (let count = 0; count < 150; count += 1)
    git(at.path, ['update-ref', `refs/sluice/records/app${count}/w1`, record]);
  // The host lists other pull requests as changed last.
  for (let count = 0; count < 100; count += 1) {
    at.clock.advance(60_000);
    await at.forge.open({ head: `other-${count}`, base: 'main', title: '', body: '' });
  }
  await at.sync();
  at.restart();
  at.forge.calls.length = 0;
  await at.reconcile('apps');
  const left = [...at.woken];
  expect(left).toHaveLength(151);
  for (const one of left) await at.reconcile(one);
  expect(at.forge.calls.filter((call) => call === 'find').length).toBeLessThanOrEqual(100);
});

test('a merged proposal that a user deletes through Sluice stays deleted, which is reported', async () => {
  const name = await propose();
  await at.mergeHead(name, 'bob');
  for (const action of ['reject', 'delete'] as const) await at.world.store.update(name, { action }, ANNA);
  await read(name);
  at.restart();
  await read(name);
  expect(at.world.store.find(name)).toBeUndefined();
  expect(await eventsOf('apps')).toEqual([expect.stringMatching('MergeNotPublished: .* had been deleted')]);
});
