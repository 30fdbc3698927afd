import { expect, test } from 'vitest';
import { Informer } from '../../../src/controller/informer.ts';
import { systemClock } from '../../../src/foundation/time/clock.ts';
import { repositoryKind } from '../../../src/resource/kinds/porch/repository.ts';
import { freezeKind } from '../../../src/resource/kinds/sluice/freeze.ts';
import { packagePolicyKind } from '../../../src/resource/kinds/sluice/package-policy.ts';
import { type KubernetesObject, keyText, type ObjectKey } from '../../../src/resource/object/object.ts';
import { fixture } from '../../../test/support/fixture.ts';
import { ruledRepositories } from './ruled-repositories.ts';

test('repositories are looked at again when policies or freezes that apply to them change', async () => {
  await using world = await fixture();
  const { client } = world;
  for (const [namespace, name] of [
    ['a', 'apps'],
    ['b', 'shared'],
    ['c', 'other'],
  ] as const)
    await client.create(repositoryKind, { metadata: { namespace, name }, spec: { git: { repo: `/${name}` } } });
  const informers = [repositoryKind, packagePolicyKind, freezeKind].map(
    (kind) => [kind, new Informer<KubernetesObject>({ client, clock: systemClock, kind: kind as never })] as const,
  );
  for (const [, informer] of informers) {
    informer.start();
    await informer.whenSynced();
  }
  const woken = new Set<string>();
  const shared = { namespace: 'b', name: 'shared' };
  const source = ruledRepositories({ sharing: ({ name }) => (name === 'apps' ? [shared] : []) });
  const informer = (kind: unknown) => informers.find(([one]) => one === kind)?.[1];
  source.start({ informer, enqueue: (key: ObjectKey) => void woken.add(keyText(key)) } as never);
  const expectWoken = async (...expected: string[]) => {
    await expect.poll(() => [...woken].sort()).toEqual(expected);
    woken.clear();
  };
  await client.create(packagePolicyKind, { metadata: { namespace: 'a', name: 'limits' }, spec: {} });
  await expectWoken('a/apps', 'b/shared');
  await client.create(freezeKind, { metadata: { namespace: 'c', name: 'stop' }, spec: { reason: 'repair' } });
  await expectWoken('c/other');
  await client.create(freezeKind, {
    metadata: { namespace: 'sluice-system', name: 'stop' },
    spec: { reason: 'repair' },
  });
  await expectWoken('a/apps', 'b/shared', 'c/other');
  await client.delete(freezeKind, { namespace: 'c', name: 'stop' });
  await expectWoken('c/other');
  for (const [, one] of informers) await one.stop();
});
