import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type CliFixture, cliFixture } from '../../cli/testing.ts';
import { Manager } from '../../controller/manager.ts';
import { DEFAULT_NETWORK } from '../../git/network/git-network.ts';
import { SYSTEM_NAMESPACE } from '../../resource/kinds/core/namespace.ts';
import { packageRevisionKind } from '../../resource/kinds/porch/package-revision.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { freezeKind } from '../../resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { wavePlanKind } from '../../resource/kinds/sluice/wave/wave-plan.ts';
import { dataFolder } from '../data/data-folder.ts';
import { Session } from '../session/session.ts';
import { followRules } from './follow-rules.ts';

const GATED = [{ conditionType: 'tested' }];

let cli: CliFixture;
let session: Session;
let stop: () => Promise<void>;
/** Names of the revisions that were evaluated since the last call of `evaluated`. */
let evaluations: string[];

beforeEach(async () => {
  cli = await cliFixture();
  const folder = dataFolder(cli.data);
  session = await Session.open({ folder, actor: { name: 'anna' }, write: true, network: DEFAULT_NETWORK });
  const { client, clock, store } = session;
  const manager = new Manager({ client, clock });
  session.readers.share(manager);
  for (const name of ['apps', 'core'])
    await client.create(repositoryKind, { metadata: { name }, spec: { git: { repo: cli.bare(`${name}.git`) } } });
  const shared = { git: { repo: `${cli.folder}/core.git` } };
  await client.create(repositoryKind, { metadata: { name: 'same', namespace: 'team' }, spec: shared });
  await store.reachAll();
  // As a repository controller does: what was never read adds no requirement elsewhere.
  for (const one of (await client.list(repositoryKind)).items)
    await client.updateStatus(repositoryKind, {
      ...one,
      status: { lastFullSyncTime: '2026-01-02T03:04:05Z' },
    } as never);
  await session.readers.repositories.refresh();
  const ends = followRules(manager, session);
  session.endInitialPhase();
  stop = async () => {
    for (const end of ends) end();
    await session.close();
  };
  for (const [repository, packageName] of [
    ['apps', 'web'],
    ['apps', 'shop'],
    ['core', 'dns'],
  ])
    await client.create(packageRevisionKind, {
      metadata: { name: '' },
      spec: { repository, packageName, workspaceName: 'v1', readinessGates: GATED, tasks: [{ type: 'init' }] },
    } as never);
  evaluations = [];
  const { evaluate } = store;
  vi.spyOn(store, 'evaluate').mockImplementation((id, ...rest) => {
    evaluations.push(id);
    return evaluate.call(store, id, ...rest);
  });
});
afterEach(async () => {
  await stop();
  await cli[Symbol.asyncDispose]();
});

/** The revisions that a change had evaluated, up to one that it concerns for certain. */
async function evaluated(last: string): Promise<string[]> {
  await expect.poll(() => evaluations).toContain(last);
  const found = [...new Set(evaluations)].sort();
  evaluations = [];
  return found;
}

const select = (selector: object) => ({ selector, requiredGates: [{ conditionType: 'reviewed' }] });

test('a changed policy has those revisions evaluated that it selects or selected, and no others', async () => {
  const { client } = session;
  const made = await client.create(packagePolicyKind, { metadata: { name: 'p' }, spec: select({ packages: ['web'] }) });
  expect(await evaluated('default/apps.web.v1')).toEqual(['default/apps.web.v1']);
  const shop = packagePolicyKind.complete({ ...made, spec: select({ packages: ['shop'] }) } as never);
  await client.update(packagePolicyKind, { ...made, spec: shop.spec });
  await expect.poll(() => new Set(evaluations).size).toBe(2);
  expect(await evaluated('default/apps.shop.v1')).toEqual(['default/apps.shop.v1', 'default/apps.web.v1']);
  await client.delete(packagePolicyKind, { namespace: 'default', name: 'p' });
  expect(await evaluated('default/apps.shop.v1')).toEqual(['default/apps.shop.v1']);
  const rest = await client.get(packageRevisionKind, { namespace: 'default', name: 'apps.shop.v1' });
  expect(rest.status?.conditions?.find(({ type }) => type === 'sluice.dev/Ready')?.message).not.toContain('reviewed');
});

test('a policy of another namespace counts for packages that it has registered too', async () => {
  const { client } = session;
  const namespace = 'team';
  await client.create(packagePolicyKind, {
    metadata: { name: 'none', namespace },
    spec: select({ packages: ['web'] }),
  });
  await client.create(packagePolicyKind, {
    metadata: { name: 'all', namespace },
    spec: select({ repositories: ['same'] }),
  });
  await expect.poll(() => evaluations).toContain('default/core.dns.v1');
  expect(evaluations.filter((id) => id.includes('apps'))).toEqual([]);
});

test('a freeze has the proposals of its namespace evaluated, one of the installation those of all', async () => {
  const { client, store } = session;
  const context = session.context();
  for (const id of ['default/apps.web.v1', 'default/core.dns.v1']) {
    await store.change(id, { conditions: [{ type: 'tested', status: 'True' }] }, context);
    await store.update(id, { action: 'propose' }, context);
    await client.get(packageRevisionKind, { namespace: 'default', name: id.split('/')[1] ?? '' });
  }
  evaluations = [];
  await client.create(freezeKind, { metadata: { name: 'one', namespace: 'team' }, spec: { reason: 'repair' } });
  await evaluated('default/core.dns.v1');
  expect(evaluations.filter((id) => id.includes('apps'))).toEqual([]);
  await client.create(freezeKind, {
    metadata: { name: 'all', namespace: SYSTEM_NAMESPACE },
    spec: { reason: 'repair' },
  });
  const all = await evaluated('default/apps.web.v1');
  expect(all).not.toContain('default/apps.shop.v1');
});

test('a plan has the proposals evaluated that it may hold, which report the hold until it ends', async () => {
  const { client, store } = session;
  const context = session.context();
  for (const id of ['default/apps.web.v1', 'default/core.dns.v1']) {
    await store.change(id, { conditions: [{ type: 'tested', status: 'True' }] }, context);
    await store.update(id, { action: 'propose' }, context);
  }
  const shown = async (name: string) =>
    (await client.get(packageRevisionKind, { namespace: 'default', name })).status?.conditions?.find(
      ({ type }) => type === 'sluice.dev/ApprovalAllowed',
    );
  expect(await shown('apps.web.v1')).toBeUndefined();
  evaluations = [];
  const spec = { selector: { repositories: ['apps'] }, waves: [{ name: 'all', percent: 100 }] };
  const plan = { name: 'fleet', namespace: 'default' };
  await client.create(wavePlanKind, { metadata: plan, spec });
  expect(await evaluated('default/apps.web.v1')).toEqual(['default/apps.web.v1']);
  expect(await shown('apps.web.v1')).toMatchObject({
    ...{ status: 'False', reason: 'Wave' },
    message: expect.stringMatching(
      /^WavePlan fleet holds it.*; blocked since 20.*; it is resolved by WavePlan fleet in its waves/,
    ),
  });
  expect(await shown('core.dns.v1')).toBeUndefined();
  evaluations = [];
  // Neither another approval of a wave nor a list of objects for each revision.
  await client.patch(wavePlanKind, plan, { spec: { promotePast: 'all' } });
  await client.patch(wavePlanKind, plan, { spec: { abort: true } });
  expect(await evaluated('default/apps.web.v1')).toEqual(['default/apps.web.v1']);
  expect(await shown('apps.web.v1')).toBeUndefined();
});
