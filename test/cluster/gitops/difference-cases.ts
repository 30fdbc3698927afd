import { expect, test } from 'vitest';
import { capture } from '../support/gitops/capture.ts';
import { configMap, namespace, type Scenario } from '../support/gitops/scenario.ts';

export interface Differences {
  /** What happens to the objects when the last folder of a target disappears. */
  readonly lastFolder: 'pruned' | 'kept';
  /** The report of a target in which two packages have the same object. */
  readonly shared: RegExp;
}

/** Where the engines differ; docs/delivery.md lists it. */
export function differenceCases(of: () => Scenario, { lastFolder, shared }: Differences): void {
  test.for(['delete', 'empty'] as const)('the last package of a target is removed (%s)', async (onRemoval) => {
    const site = of();
    const name = `last-${onRemoval}`;
    const object = `/api/v1/namespaces/default/configmaps/${name}`;
    const place = await site.target(name, [name], { spec: { onRemoval, allowPrune: true } });
    const files = { 'cm.yaml': configMap(name, 'default', '1') };
    await site.publish(place, name, 'v1', files, [`${name} v1`]);
    await site.synced(place, name);
    await site.world.patchTarget(name, { selector: { repositories: ['packages'], packages: ['none'] } });
    await site.world.delivered(name, []);
    if (onRemoval === 'empty' || lastFolder === 'pruned') return site.gone(place, object);
    const { object: report } = await site.refused(place, name, /path not found/);
    capture(`${site.engine.name === 'Flux' ? 'flux' : 'argocd'}/path-missing`, report);
    expect(await site.find(object)).toBeDefined();
  });

  test('two packages with the same object: the condition Deliverable warns, and the engine refuses or warns', async () => {
    const site = of();
    const place = await site.target('shared', ['share-a', 'share-b']);
    const files = { 'ns.yaml': namespace('shared') };
    await site.publish(place, 'share-a', 'v1', files, ['share-a v1']);
    await site.synced(place, 'share-a');
    const { author } = site.world;
    const name = await author.draft('share-b', 'v1', files);
    await site.eventually(
      async () => JSON.stringify(await author.conditionsOf(name)).includes('sluice.dev/Deliverable'),
      () => `${name} has the condition Deliverable`,
    );
    expect(await author.conditionsOf(name)).toContainEqual(
      expect.objectContaining({ type: 'sluice.dev/Deliverable', status: 'False', reason: 'DuplicateObject' }),
    );
    await author.propose(name);
    await author.approve(name);
    await site.world.delivered('shared', ['share-a v1', 'share-b v1']);
    const { object } = await site.refused(place, 'share-b', shared);
    capture(`${site.engine.name === 'Flux' ? 'flux' : 'argocd'}/shared-object`, object);
  });
}
