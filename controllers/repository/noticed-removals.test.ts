import { expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { repositoryControllerOf } from '../../test/support/repository-controller.ts';

test.each(['a request that reads the present refs', 'a write that is refused'])(
  'a removed branch is reported at once where it is noticed by %s, and not at the next poll',
  async (how) => {
    const clock = new ManualClock();
    await using world = await fixture(clock);
    const controller = repositoryControllerOf(world, { localInterval: 3_600_000 });
    const reconcile = () =>
      controller.reconcile(
        { namespace: 'default', name: 'apps' },
        { signal: new AbortController().signal, failures: 0 },
      );
    const repo = await world.bare('apps');
    await world.client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git: { repo } } });
    await reconcile();
    const { name } = await world.draft('apps/web/w1');
    await world.store.update(name, { action: 'propose' }, ANNA);
    const { git, ...repository } = world.store.repository('apps');
    const ref = 'refs/heads/proposed/web/w1';
    await git.transaction([{ type: 'delete', ref, old: (await git.resolveRef(ref)) ?? '' }]);
    await reconcile();
    expect(await world.events('apps')).toEqual([]);
    if (how.startsWith('a request')) await world.store.repository(repository.id).catchUp();
    else await world.store.update(name, { action: 'reject' }, ANNA).catch(() => undefined);
    expect(world.store.find(name)).toBeUndefined();
    await reconcile();
    expect(await world.events('apps')).toEqual([expect.stringMatching(/^ProposedRemoved: .*to restore apps\.web\.w1/)]);
  },
);
