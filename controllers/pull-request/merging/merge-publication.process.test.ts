import { expect, test } from 'vitest';
import { reviewsOf } from '../../../src/package/store/policies/repository-reviews.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { fixture } from '../../../test/support/fixture.ts';
import { git } from '../../../test/support/git/git-cli.ts';
import { policyForMerge, recordMergePublication } from './merge-publication.ts';

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
  const recorded = async () =>
    (await client.get(repositoryKind, { namespace: 'default', name: 'apps' })).status?.mergePublication;
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

  // Another policy can get the name.
  const { uid } = (await client.get(packagePolicyKind, key)).metadata;
  expect(await recorded()).toMatchObject([{ policy: 'review', uid }]);
  await client.delete(packagePolicyKind, key);
  await client.create(packagePolicyKind, { metadata: { name: 'review' }, spec: { review: { forge: host } } });
  expect((await review()).mergesSince).toBeUndefined();
  await setPublishOn('merge');
  const { uid: other } = (await client.get(packagePolicyKind, key)).metadata;
  expect(await recorded()).toEqual([{ policy: 'review', uid: other, publishOn: 'merge', commit: expect.any(String) }]);
  // What is recorded of those that were deleted does not stay.
  await client.delete(packagePolicyKind, key);
  const spec = { review: { forge: host, publishOn: 'merge' } } as const;
  await client.create(packagePolicyKind, { metadata: { name: 'later' }, spec });
  await recordMergePublication(client, repository, await review(), NO_SIGNAL);
  expect(await recorded()).toMatchObject([{ policy: 'later', publishOn: 'merge' }]);
});

test('what is written for a repository has nothing of the others of the policy', async () => {
  await using world = await fixture();
  await world.register('apps');
  const { client } = world;
  const { index } = world.store.repository('apps');
  const forge = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } } as const;
  const key = { namespace: 'default', name: 'review' };
  await client.create(packagePolicyKind, {
    metadata: { name: 'review' },
    spec: { review: { forge, publishOn: 'merge' } },
  });
  const { status } = await client.get(packagePolicyKind, key);
  for (const name of ['east', 'west']) {
    const created = { metadata: { name }, spec: { git: { repo: `/none/${name}.git` } } };
    const policies = (await client.list(packagePolicyKind, {})).items;
    const [review] = reviewsOf(await client.create(repositoryKind, created), policies);
    if (review === undefined) throw new Error('there is no policy');
    await recordMergePublication(client, { namespace: 'default', repository: name, index }, review, NO_SIGNAL);
    const recorded = (await client.get(repositoryKind, { namespace: 'default', name })).status?.mergePublication;
    expect(recorded).toMatchObject([{ policy: 'review', publishOn: 'merge' }]);
  }
  expect((await client.get(packagePolicyKind, key)).status).toEqual(status);
});
