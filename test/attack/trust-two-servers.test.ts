import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { openPackageRepository } from '../../src/package/store/opening/open-package-repository.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { configMap } from '../support/delivery.ts';
import { ANNA, fixture } from '../support/fixture.ts';
import { newServerTrust } from '../support/trust.ts';

const AT = '2026-01-01T00:00:00Z';

test('verdicts of one server count at another one that trusts it, on drafts since its first sync', async () => {
  const [a, b] = [newServerTrust(), newServerTrust()];
  for (const [server, other] of [
    [a, b],
    [b, a],
  ] as const) {
    const { fingerprint, publicKey } = other.signer();
    server.ledger.addKey({ fingerprint, publicKey, comment: '', origin: 'added', addedAt: AT });
  }
  const clock = new ManualClock(Date.parse(AT));
  await using world = await fixture(clock, a);
  await world.register('apps');
  const options = { clock, policyFor: world.policyFor, dependentsOf: () => [], onChange: () => undefined };
  const early = await world.draft('apps/old/w1', { 'cm.yaml': configMap('old') });
  clock.advance(1000);
  const onB = await openPackageRepository(await world.client.get(repositoryKind, { name: 'apps' }), {
    ...{ ...options, trust: b, dataFolder: join(world.folder, 'b') },
  });
  clock.advance(1000);
  const { name } = await world.draft('apps/web/w1', { 'cm.yaml': configMap('web') });
  await onB.refresh();
  for (const draft of [name, early.name])
    await world.store.change(draft, { conditions: [{ type: 'Tested', status: 'True' }] }, ANNA);
  await onB.refresh();
  const types = (draft: string) => onB.index.get(draft)?.record?.verdicts.map(({ type }) => type);
  expect(types(name)).toContain('Tested');
  expect(onB.index.get(name)?.recordDistrust).toBeUndefined();
  // Where it was at the first look, an older record may have been put there.
  expect(types(early.name)).toEqual([]);
  await onB.close();
});
