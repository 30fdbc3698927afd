import { expect, test } from 'vitest';
import { git as runGit } from '../../support/git/git-cli.ts';
import { configMap, type Scenario } from '../support/gitops/scenario.ts';

/** What others do to the repository of a target, until Sluice delivers again. */
export function faultCases(of: () => Scenario): void {
  test('a target that is replaced by an older backup, or emptied, is delivered again and synced', async () => {
    const site = of();
    const place = await site.target('faulty', ['firm']);
    const files = (value: string) => ({ 'cm.yaml': configMap('firm', 'default', value) });
    await site.publish(place, 'firm', 'v1', files('1'), ['firm v1']);
    await site.synced(place, 'firm');
    const backup = site.world.headOf(place);
    await site.publish(place, 'firm', 'v2', files('2'), ['firm v2']);
    await site.synced(place, 'firm');
    const delivered = site.world.headOf(place);
    const repository = site.world.folderOf(place);
    const tree = runGit(repository, ['rev-parse', 'main^{tree}']);

    runGit(repository, ['update-ref', 'refs/heads/main', backup]);
    // The engine cannot know that the backup is old.
    await site.reported(place, 'firm', 'synced', ({ synced }) => synced === backup);
    expect(await site.data('default', 'firm')).toEqual({ value: '1' });
    await redelivers('backup', backup);

    const empty = runGit(repository, ['mktree']);
    const emptied = runGit(repository, ['commit-tree', '-p', 'main', '-m', 'empty', empty]);
    runGit(repository, ['update-ref', 'refs/heads/main', emptied]);
    await site.engine.trigger(place);
    await redelivers('empty', emptied);

    async function redelivers(description: string, from: string): Promise<void> {
      await site.world.patchTarget(place.name, { description });
      await site.eventually(
        async () => site.world.headOf(place) !== from,
        () => `the target is delivered after: ${description}`,
      );
      expect(runGit(repository, ['rev-parse', 'main^{tree}'])).toBe(tree);
      expect(runGit(repository, ['rev-parse', 'main^'])).toBe(from);
      await site.synced(place, 'firm');
      expect(await site.data('default', 'firm')).toEqual({ value: '2' });
    }
    expect(delivered).not.toBe(site.world.headOf(place));
  });
}
