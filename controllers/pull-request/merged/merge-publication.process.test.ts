import { expect, test } from 'vitest';
import { timestamp } from '../../../src/foundation/time/clock.ts';
import { ManualClock } from '../../../src/foundation/time/manual-clock.ts';
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
  const setPublishOn = async (publishOn: 'approval' | 'review' | 'merge') => {
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

  // A merge from while reviews alone approved is none later. It publishes what users opened, which is recorded apart.
  const [{ commit: sinceFirst } = {}] = (await recorded()) ?? [];
  await setPublishOn('review');
  const reviewed = await push('while reviews publish');
  await setPublishOn('merge');
  expect(await counted(reviewed)).toBe('approval');
  expect(await recorded()).toMatchObject([{ publishOn: 'merge', commit: reviewed, ofUsers: { commit: sinceFirst } }]);

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

test('merges from before a policy was created publish nothing, later ones do, also before it was read', async () => {
  await using world = await fixture();
  const path = await world.register('apps');
  const { client, store, clock } = world;
  const repository = store.repository('apps');
  const forge = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } } as const;
  const key = { namespace: 'default', name: 'review' };
  const create = () =>
    client.create(packagePolicyKind, { metadata: { name: 'review' }, spec: { review: { forge, publishOn: 'merge' } } });
  const review = async () => {
    const registered = await client.get(repositoryKind, { namespace: 'default', name: 'apps' });
    const [found] = reviewsOf(registered, (await client.list(packagePolicyKind, {})).items);
    if (found === undefined) throw new Error('there is no policy');
    return found;
  };
  const merge = async (text: string, afterMs: number) => {
    const commit = await world.push(path, { 'README.md': text });
    await repository.refresh();
    const closedAt = new Date(clock.now() + afterMs).toISOString();
    return { state: 'merged', merged: { commit, by: 'bob' }, closedAt } as const;
  };
  const counted = async (pull: Awaited<ReturnType<typeof merge>>) =>
    (await policyForMerge(client, repository, await review(), pull, NO_SIGNAL))?.publishOn;
  await create();
  await client.delete(packagePolicyKind, key);
  const before = await merge('while there is no policy', -60_000);
  await create();
  const unread = await merge('before it is read', 60_000);
  expect(await counted(before)).toBe('approval');
  expect(await counted(unread)).toBe('merge');
  // The clock of the host is behind.
  expect(await counted(await merge('after it was read', -60_000))).toBe('merge');
});

test('merges of proposals from before their Repository was registered publish nothing, later ones do', async () => {
  const clock = new ManualClock();
  await using world = await fixture(clock);
  const path = await world.register('apps');
  const { client, store } = world;
  const repository = store.repository('apps');
  const forge = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } } as const;
  const spec = { review: { forge, publishOn: 'merge' } } as const;
  await client.create(packagePolicyKind, { metadata: { name: 'review' }, spec });
  const merge = async (text: string) => {
    clock.advance(60_000);
    const commit = await world.push(path, { 'README.md': text });
    await repository.refresh();
    return { state: 'merged', merged: { commit, by: 'bob' }, closedAt: new Date(clock.now()).toISOString() } as const;
  };
  const before = await merge('before the registration');
  const key = { namespace: 'default', name: 'apps' };
  const { metadata, spec: registered } = await client.get(repositoryKind, key);
  await client.delete(repositoryKind, key);
  clock.advance(60_000);
  const object = await client.create(repositoryKind, { metadata: { name: metadata.name }, spec: registered });
  const unread = await merge('before it is read');
  const [review] = reviewsOf(object, (await client.list(packagePolicyKind, {})).items);
  if (review === undefined) throw new Error('there is no policy');
  const counted = async (pull: typeof before) =>
    (await policyForMerge(client, repository, review, pull, NO_SIGNAL))?.publishOn;
  expect(await counted(before)).toBe('approval');
  expect(await counted(unread)).toBe('merge');
});

test.each([
  [-1000, 'approval'],
  [0, 'merge'],
] as const)(
  'a merge %i ms after the second in which the policy, or else the Repository, was created counts by publishOn: %s',
  async (afterMs, publishOn) => {
    const clock = new ManualClock();
    await using world = await fixture(clock);
    const path = await world.register('apps');
    const { client, store } = world;
    const repository = store.repository('apps');
    const key = { namespace: 'default', name: 'apps' };
    const forge = { provider: 'gitea', api: 'https://git.example.com/api/v1', secretRef: { name: 'forge' } } as const;
    const create = async (name: string) => {
      const spec = { review: { forge, publishOn: 'merge' }, selector: { repositories: ['apps'] } } as const;
      return (await client.create(packagePolicyKind, { metadata: { name }, spec })).metadata.creationTimestamp ?? '';
    };
    const counted = async (policy: string, createdAt: string, text: string) => {
      const commit = await world.push(path, { 'README.md': text });
      await repository.refresh();
      // As hosts report it.
      const closedAt = timestamp(Date.parse(createdAt) + afterMs);
      const policies = (await client.list(packagePolicyKind, {})).items;
      const review = reviewsOf(await client.get(repositoryKind, key), policies).find((one) => one.policy === policy);
      if (review === undefined) throw new Error('there is no policy');
      const pull = { state: 'merged', merged: { commit, by: 'bob' }, closedAt } as const;
      return (await policyForMerge(client, repository, review, pull, NO_SIGNAL))?.publishOn;
    };
    clock.advance(60_400);
    const early = await create('early');
    clock.advance(60_400);
    expect(await counted('late', await create('late'), 'in the second of the policy')).toBe(publishOn);
    const { spec } = await client.get(repositoryKind, key);
    await client.delete(repositoryKind, key);
    clock.advance(60_400);
    const { creationTimestamp = '' } = (await client.create(repositoryKind, { metadata: { name: 'apps' }, spec }))
      .metadata;
    expect(creationTimestamp > early).toBe(true);
    expect(await counted('early', creationTimestamp, 'in the second of the Repository')).toBe(publishOn);
  },
);

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
