import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dataFolder } from '../../src/app/data/data-folder.ts';
import { Session } from '../../src/app/session/session.ts';
import { cliFixture } from '../../src/cli/testing.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import { packageRevisionKind } from '../../src/resource/kinds/porch/package-revision.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { planDownstream } from './plan-variant.ts';

const variantIn = (namespace: string) => ({
  apiVersion: 'config.porch.kpt.dev/v1alpha1',
  kind: 'PackageVariant',
  metadata: { name: 'web-edge', namespace },
  spec: {
    upstream: { repo: 'blueprints', package: 'web' },
    downstream: { repo: 'edge', package: 'web' },
    deletionPolicy: 'delete' as const,
  },
});
const NAME = 'edge.web.packagevariant-1';
const OWNERS = 'sluice.dev/owners-elsewhere';

test('a namespace that has registered the repository too sees no owner reference to the variant of another one', async () => {
  await using cli = await cliFixture();
  const [blueprints, edge] = [cli.bare('blueprints.git'), cli.bare('edge.git')];
  for (const path of [blueprints, edge]) expect((await cli.run('repo', 'reg', path)).code).toBe(0);
  await cli.run('rpkg', 'init', 'web', '--repository', 'blueprints', '--workspace', 'v1');
  for (const step of ['propose', 'approve']) await cli.run('rpkg', step, 'blueprints.web.v1');
  const config = join(cli.folder, 'variants.yaml');
  await writeFile(config, JSON.stringify(variantIn('default')));
  expect((await cli.run('up', '--until-idle', '--config', config)).code).toBe(0);
  for (const path of [blueprints, edge]) expect((await cli.run('repo', 'reg', path, '-n', 'team')).code).toBe(0);

  const folder = dataFolder(cli.data);
  const read = async () => {
    const session = await Session.open({ folder, actor: { name: 'anna' }, write: true, network: DEFAULT_NETWORK });
    const { client } = session;
    return { session, at: (namespace: string) => client.find(packageRevisionKind, { namespace, name: NAME }) };
  };
  const before = await read();
  const own = await before.at('default');
  const { uid } = await before.session.client
    .get(packageVariantKind, { namespace: 'default', name: 'web-edge' })
    .then(({ metadata }) => metadata);
  const { apiVersion, kind } = packageVariantKind;
  expect(own?.metadata.ownerReferences).toEqual([{ apiVersion, kind, name: 'web-edge', uid, controller: true }]);
  expect(own?.metadata.annotations).toBeUndefined();
  const other = await before.at('team');
  expect(other?.metadata.ownerReferences).toBeUndefined();
  expect(other?.metadata.annotations).toEqual({ [OWNERS]: 'PackageVariant default/web-edge' });
  // A write there keeps the owner, and cannot set the annotation.
  if (other === undefined) throw new Error('the revision is missing');
  const metadata = { ...other.metadata, labels: { site: 'edge' }, annotations: { [OWNERS]: 'PackageVariant team/x' } };
  const written = await before.session.client.update(packageRevisionKind, { ...other, metadata });
  expect(written.metadata.annotations).toEqual({ [OWNERS]: 'PackageVariant default/web-edge' });
  await before.session.store.repository('default/edge').sync();
  expect((await before.at('default'))?.metadata).toMatchObject({
    ownerReferences: [{ uid }],
    labels: { site: 'edge' },
  });
  await before.session.close();

  const why = await cli.run('why', NAME, '-n', 'team');
  expect(why.stdout).toContain('it belongs to PackageVariant default/web-edge');
  expect((await cli.run('why', NAME)).stdout).toContain('it belongs to PackageVariant web-edge, which keeps it');

  const after = await read();
  await after.session.client.delete(packageVariantKind, { namespace: 'default', name: 'web-edge' });
  await after.session.close();
  expect((await cli.run('up', '--until-idle')).code).toBe(0);
  expect((await cli.run('rpkg', 'get', NAME)).stderr).toContain('not found');
});

test('a variant does not take a package from one of the same name in another namespace, unless it may adopt', () => {
  const { apiVersion, kind } = packageVariantKind;
  const owner = { apiVersion, kind, name: 'web-edge', uid: 'other', controller: true };
  const plan = (namespace: string | undefined, adoptionPolicy: 'adoptNone' | 'adoptExisting' = 'adoptNone') => {
    const variant = packageVariantKind.complete(variantIn('team'));
    const record = { ownerReferences: [namespace === undefined ? owner : { ...owner, namespace }] };
    const revision = { name: NAME, lifecycle: 'Draft', revision: 0, ref: 'refs/heads/drafts/web/v1', record };
    return planDownstream(
      { ...variant, metadata: { ...variant.metadata, uid: 'own' }, spec: { ...variant.spec, adoptionPolicy } },
      [revision as unknown as PackageRevision],
    );
  };
  const taken = { step: 'none', problem: expect.stringContaining('belongs to PackageVariant default/web-edge;') };
  expect(plan('default')).toEqual(taken);
  expect(plan('default', 'adoptExisting')).toMatchObject({ step: 'keep' });
  // The same variant on the server from which it was moved: the owner is no other object.
  for (const namespace of ['team', undefined])
    expect(plan(namespace)).toMatchObject({ problem: expect.stringContaining('does not belong to this variant') });
});
