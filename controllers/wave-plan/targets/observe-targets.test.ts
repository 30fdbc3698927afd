import { expect, test } from 'vitest';
import { DeliveredPackages } from '../../../src/delivery/delivered/delivered-packages.ts';
import type { Verification } from '../../../src/rollout/wave/observation.ts';
import { verifyTargets } from './observe-targets.ts';

const ENGINE = { engine: {} };
const good = { status: 'True', reason: 'Reported', message: '', since: '2026-01-01T00:00:00Z' };
const both = { synced: good, healthy: good };
const edge = {
  metadata: { name: 'edge', namespace: 'default' },
  spec: { selector: { repositories: ['apps'] }, ...ENGINE },
  status: {
    packages: [{ repository: 'apps', package: 'web', revision: 2, commit: 'c', tree: 't' }],
    lastCommit: 'x',
    deployment: { commit: 'x', delivered: good, ...both, common: both },
  },
};
const TIER = { matchLabels: { tier: 'edge' } };
const west = (selector: object) => ({
  metadata: { name: 'west', namespace: 'default' },
  spec: { selector, ...ENGINE },
  status: { packages: [] },
});

interface World {
  /** How the target selects that has not delivered the package yet. */
  readonly selector: object;
  /** Absent once it was deleted. */
  readonly revision?: object;
  readonly isOpen?: boolean;
  readonly isRegistered?: boolean;
  readonly names?: readonly string[];
}

/** The verification of a package that one target has delivered, by what is known of its repository. */
async function verification(world: World): Promise<Verification | undefined> {
  const { selector, revision, isOpen = true, isRegistered = true, names } = world;
  const spec = { verification: { deployed: names === undefined ? {} : { targets: names } } };
  const record = { id: 'apps/web', revision: 'apps.web.w1', phase: 'Approved', published: 2 };
  const all = await verifyTargets(
    { metadata: { name: 'p', namespace: 'default', uid: 'u' }, spec } as never,
    { phase: 'Running', targets: new Map([['apps/web', record]]) } as never,
    new Map(),
    {
      client: { list: async () => ({ items: [edge, west(selector)] }) } as never,
      store: { find: () => (isOpen ? revision : undefined), findRepository: () => (isOpen ? {} : undefined) } as never,
      delivered: new DeliveredPackages(),
      repositoryOf: () =>
        (isRegistered ? { metadata: { name: 'apps', labels: { tier: 'edge' } } } : undefined) as never,
      probes: { forget: () => undefined } as never,
    },
  );
  return all.get('apps/web');
}

const LABELLED = { kptfile: { metadata: { labels: { tier: 'edge' } } } };
const WAITS = { result: 'Pending', message: 'target west does not deliver v2 yet' };

test('while a repository is not open, or not registered, targets may select its packages by labels that are not known', async () => {
  const byPackage = { selector: { packageSelector: TIER }, revision: LABELLED };
  const byRepository = { selector: { repositorySelector: TIER }, revision: LABELLED };
  expect(await verification(byPackage)).toEqual(WAITS);
  expect(await verification(byRepository)).toEqual(WAITS);
  const unknown = { result: 'Unreachable', message: expect.stringContaining('repository apps is not open') };
  expect(await verification({ ...byPackage, isOpen: false })).toEqual(unknown);
  expect(await verification({ ...byRepository, isRegistered: false })).toEqual(unknown);
  // What is certain is said.
  expect(await verification({ selector: {}, isOpen: false })).toEqual(WAITS);
});

test('a deleted revision is verified by what selects its package by name, and named targets need no repository', async () => {
  const selector = { packageSelector: TIER };
  expect(await verification({ selector })).toEqual({ result: 'Verified' });
  const names = ['edge'];
  expect(await verification({ selector, names, isOpen: false, isRegistered: false })).toEqual({ result: 'Verified' });
});
