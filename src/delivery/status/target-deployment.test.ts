import { expect, test } from 'vitest';
import { state } from './engine-report.ts';
import { deploymentOf, healthyContent, type TargetDeployment, targetDeployment } from './target-deployment.ts';

const DELIVERED = state('True', 'Synced', '');
const NAMES = [...Array(3000).keys()].map((index) => ({ repository: 'apps', package: `p${index}` }));

/** A report about every package, each with a message of its own: more than a status lists. */
function evaluate(
  health: 'True' | 'Unknown' | 'False',
  tree: string | undefined,
  before: TargetDeployment | undefined,
  isUnchanged: (index: number) => boolean | undefined,
): TargetDeployment {
  const packages = NAMES.map((name, index) => ({
    ...{ ...name, synced: DELIVERED, healthy: state(health, 'Progressing', `Kustomization k${index}`) },
    ...{ isShared: true, isUnchanged: isUnchanged(index) },
  }));
  return targetDeployment(packages, { delivered: DELIVERED, commit: tree, tree, objects: [], before, now: 0 });
}

test('packages that are too many to list keep the content that was healthy', () => {
  const isChanged = (index: number) => index % 100 === 99;
  const healthy = evaluate('True', 'tree 1', undefined, () => undefined);
  const pending = evaluate('Unknown', 'tree 2', healthy, (index) => !isChanged(index));
  expect(pending.unlisted).toMatchObject({ count: 1999, healthyTree: 'tree 2' });
  const away = evaluate('Unknown', undefined, pending, () => undefined);
  for (const [index, name] of NAMES.entries())
    expect(healthyContent(away, name)).toBe(isChanged(index) ? undefined : 'tree 2');
});

test('if more packages have changed than a status lists, those that are not listed count as not healthy before', () => {
  const healthy = evaluate('True', 'tree 1', undefined, () => undefined);
  const pending = evaluate('Unknown', 'tree 2', healthy, (index) => index % 2 === 0);
  expect(pending.unlisted).not.toHaveProperty('healthyTree');
  for (const [index, name] of NAMES.entries()) {
    const known = healthyContent(pending, name);
    if (index % 2 === 1) expect(known).toBeUndefined();
    expect(deploymentOf(pending, name).wasHealthy ?? false).toBe(known !== undefined);
  }
});
