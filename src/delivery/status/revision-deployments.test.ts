import { expect, test } from 'vitest';
import { deliveredBy, storedTarget } from '../../../test/support/delivered.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packagesDigest } from '../delivered/delivered-package.ts';
import { deploymentMessage, deploymentsOf } from './revision-deployments.ts';
import { statusCounts, targetDeployment } from './target-deployment.ts';

const NOW = Date.parse('2030-01-01T00:00:00.000Z');
const good = { status: 'True', reason: 'Synced', message: 'x' } as const;
const bad = { status: 'False', reason: 'Degraded', message: 'Kustomization a/b: 2/3 are ready' } as const;

function target(
  name: string,
  namespace: string,
  packages: readonly [path: string, revision: number, healthy: typeof good | typeof bad][],
  isReadBack = true,
) {
  const object = deliveryTargetKind.complete({
    metadata: { name, namespace },
    spec: { selector: {}, git: { repo: 'file:///site.git' } },
  });
  const delivered = packages.map(([path, revision]) => ({
    repository: 'apps',
    package: path,
    revision,
    commit: 'c',
    tree: 't',
  }));
  const states = packages.map(([path, , healthy]) => ({ repository: 'apps', package: path, synced: good, healthy }));
  const deployment = targetDeployment(states, {
    delivered: good,
    commit: undefined,
    objects: [],
    before: undefined,
    now: NOW,
  });
  const made = storedTarget({
    ...object,
    status: { packageCount: delivered.length, ...(isReadBack ? { deployment } : {}) },
  });
  return [made, delivered] as const;
}

const revision = (path: string, number: number) => ({
  key: { repository: 'apps', package: path, workspace: 'v1' },
  revision: number,
  namespace: 'default',
});

test('a revision has the targets of its namespace that deliver it, and not those that deliver another revision', () => {
  const targets = [
    target('west', 'default', [['web', 2, good]]),
    target('east', 'default', [
      ['web', 1, bad],
      ['db', 1, good],
      ['dns', 1, good],
    ]),
    target('plain', 'default', [['web', 1, good]], false),
    target('east', 'other', [['web', 1, good]]),
  ];
  const since = new Date(NOW).toISOString();
  const read = (path: string, number: number) =>
    deploymentsOf(
      revision(path, number),
      targets.map(([one]) => one),
      deliveredBy(...targets),
    );
  expect(read('web', 1)).toEqual([
    {
      target: 'east',
      delivered: 'True',
      synced: 'True',
      healthy: 'False',
      since,
      message: 'Kustomization a/b: 2/3 are ready',
    },
    { target: 'plain', delivered: 'True', synced: 'Unknown', healthy: 'Unknown' },
  ]);
  expect(read('db', 1)).toEqual([{ target: 'east', delivered: 'True', synced: 'True', healthy: 'True', since }]);
  expect(read('web', 3)).toEqual([]);
  expect(read('web', 0)).toEqual([]);
});

test('a report about the delivery before says nothing about packages that are recorded already', () => {
  const [before, packages] = target('west', 'default', [
    ['web', 1, good],
    ['db', 1, good],
  ]);
  const sorted = packages.toSorted((a, b) => (a.package < b.package ? -1 : 1));
  const status = { ...before.status, packagesDigest: packagesDigest(sorted) };
  const one = { ...before, status };
  const read = (delivered: typeof packages, path: string, number: number) =>
    deploymentsOf(revision(path, number), [one], deliveredBy([one, delivered]));
  expect(read(packages, 'web', 1)).toMatchObject([{ synced: 'True', healthy: 'True' }]);
  const ahead = packages.map((each) => (each.package === 'web' ? { ...each, revision: 2 } : each));
  const unknown = [{ target: 'west', delivered: 'True', synced: 'Unknown', healthy: 'Unknown' }];
  expect([read(ahead, 'web', 2), read(ahead, 'db', 1)]).toEqual([unknown, unknown]);
  expect(read([...packages, { ...sorted[0], package: 'dns' } as never], 'dns', 1)).toEqual(unknown);
});

test('with thousands of different states those beyond the limit are not known, and never healthy', () => {
  const names = [...Array(3000).keys()].map((index) => `p${index}`);
  const states = names.map((path, index) => ({
    ...{ repository: 'apps', package: path, synced: good },
    healthy: index < 1500 ? good : { ...bad, message: `object ${path}` },
  }));
  const deployment = targetDeployment(states, {
    delivered: good,
    commit: undefined,
    objects: [],
    before: undefined,
    now: NOW,
  });
  expect(deployment.packages).toHaveLength(1000);
  expect(deployment.unlisted?.count).toBe(500);
  expect(deployment.healthy.message).toContain('1500 of 3000 packages are healthy');
  // An object of a cluster has at most 1.5 MB.
  expect(JSON.stringify(deployment).length).toBeLessThan(600_000);
  const packageCount = names.length;
  expect(statusCounts({ status: { packageCount, deployment } }, 'healthy')).toEqual({
    True: 1500,
    False: 1000,
    Unknown: 500,
  });
  expect(statusCounts({ status: { packageCount, deployment } }, 'synced')).toEqual({
    True: 2500,
    False: 0,
    Unknown: 500,
  });
  expect(statusCounts({ status: { packageCount, deployment, lastCommit: 'next' } }, 'synced')).toMatchObject({
    Unknown: 3000,
  });
  const [base, packages] = target('east', 'default', [['p2999', 1, bad]]);
  const [one] = deploymentsOf(
    revision('p2999', 1),
    [{ ...base, status: { ...base.status, deployment } }],
    deliveredBy([base, packages]),
  );
  expect(one).toMatchObject({ healthy: expect.not.stringMatching('True') });
});

test('a cause that prevents both states is named once', () => {
  const unknown = (message: string) => ({ status: 'Unknown', reason: 'NotReported', message, since: '' }) as const;
  const synced = unknown('0 of 2 packages are synced; a, b: no object');
  const healthy = unknown('0 of 2 packages are healthy; a, b: no object');
  expect(deploymentMessage({ synced, healthy })).toBe(synced.message);
  const other = unknown('1 of 2 packages are healthy; b: its health is unknown');
  expect(deploymentMessage({ synced, healthy: other })).toBe(`${synced.message}; ${other.message}`);
});
