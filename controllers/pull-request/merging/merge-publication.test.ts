import { expect, test } from 'vitest';
import { reviewsOf } from '../../../src/package/store/policies/policy-objects.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { fixture } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { forgetMergePublication, policyForMerge, recordMergePublication } from './merge-publication.ts';

const NO_SIGNAL = new AbortController().signal;

test('merges from while a policy did not let them publish publish nothing later, whichever controllers run', async () => {
  await using world = await fixture();
  const path = await world.register('apps');
  const { client, store } = world;
  const repository = store.repository('apps');
  const key = { namespace: 'default', name: 'review' };
  const host = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } } as const;
  const review = async () => {
    const registered = await client.get(repositoryKind, { namespace: 'default', name: 'apps' });
    const [found] = reviewsOf(registered, (await client.list(packagePolicyKind, {})).items);
    if (found === undefined) throw new Error('there is no policy');
    return found;
  };
  const setPublishOn = async (publishOn: 'approval' | 'merge') => {
    await client.patch(packagePolicyKind, key, { spec: { review: { publishOn } } });
    await recordMergePublication(client, repository, await review(), NO_SIGNAL);
  };
  const push = async (text: string) => {
    const commit = await world.push(path, { 'README.md': text });
    await repository.refresh();
    return commit;
  };
  const counted = async (commit: string) => {
    const merged = { state: 'merged', merged: { commit, by: 'bob' } } as const;
    return (await policyForMerge(client, repository, await review(), merged, NO_SIGNAL))?.publishOn;
  };
  const recorded = async () => (await client.get(packagePolicyKind, key)).status?.mergePublication;
  await client.create(packagePolicyKind, { metadata: { name: 'review' }, spec: { review: { forge: host } } });

  await setPublishOn('merge');
  const during = await push('while merges publish');
  expect(await counted(during)).toBe('merge');
  await setPublishOn('approval');
  expect(await recorded()).toEqual([]);
  const between = await push('while they do not');
  await setPublishOn('merge');
  expect(await counted(between)).toBe('approval');
  expect(await counted(await push('while they do again'))).toBe('merge');

  // However many commits lie between.
  await setPublishOn('approval');
  const longBefore = await push('long before they do again');
  const identity = `author <author@example.com> ${Math.floor(world.clock.now() / 1000)} +0000`;
  const commit = `commit refs/heads/main\ncommitter ${identity}\ndata 0\n`;
  git(path, ['fast-import', '--quiet'], `${commit}from ${longBefore}\n${commit.repeat(5001)}`);
  await repository.refresh();
  await setPublishOn('merge');
  expect(await counted(longBefore)).toBe('approval');
  expect(await counted(await push('at last'))).toBe('merge');

  // Another repository can get the name.
  expect(await recorded()).toHaveLength(1);
  await forgetMergePublication(client, { namespace: 'default', name: 'apps' }, NO_SIGNAL);
  expect(await recorded()).toEqual([]);
});
