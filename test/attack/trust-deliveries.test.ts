import { expect, test } from 'vitest';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { recordRef, tombstoneRef } from '../../src/package/model/identity/layout.ts';
import { emptyRecord, formatRecord, type RecordStatement } from '../../src/package/model/record/record.ts';
import { payloadOf, STATEMENT_VERSION } from '../../src/package/trust/statement/statement.ts';
import { deliveryTargetKind } from '../../src/resource/kinds/sluice/delivery/delivery-target.ts';
import {
  CONTEXT,
  configMap,
  controllerOn,
  filesOf,
  publish,
  publishNext,
  statusOf,
  type TargetSpec,
} from '../support/delivery.ts';
import { ANNA, type Fixture, fixture } from '../support/fixture.ts';
import { git } from '../support/git/git-cli.ts';
import { newServerTrust, newSigner } from '../support/trust.ts';

/** Delivers to a cluster repository; returns its path, and what reconciles it again after the server has looked. */
async function deliver(world: Fixture, spec: Partial<TargetSpec>) {
  const site = await world.bare('site');
  const target = { selector: {}, git: { repo: site, directory: 'c' }, ...spec };
  await world.client.create(deliveryTargetKind, { metadata: { name: 'edge' }, spec: target });
  const controller = controllerOn(world);
  const reconcile = async () => {
    await world.store.repository('apps').refresh();
    await controller.reconcile({ namespace: 'default', name: 'edge' }, CONTEXT);
  };
  await reconcile();
  return { site, reconcile };
}

test.each([true, false])(
  'a push that removes the record of an adopted revision, and so its labels, holds the delivery (allowPrune: %s)',
  async (allowPrune) => {
    await using world = await fixture(new ManualClock(), newServerTrust());
    const repo = await world.register('apps');
    for (const name of ['web', 'db']) {
      const kptfile = `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${name}\n`;
      const commit = await world.push(repo, { [`${name}/Kptfile`]: kptfile, [`${name}/cm.yaml`]: configMap(name) });
      git(repo, ['update-ref', `refs/tags/${name}/v1`, commit]);
    }
    const repository = world.store.repository('apps');
    await repository.refresh();
    await repository.adopt(await repository.adoptable(), ANNA);
    for (const name of ['web', 'db'])
      await world.store.change(`apps.${name}.v1`, { metadata: { labels: { tier: 'front' } } }, ANNA);
    const selector = { packageSelector: { matchLabels: { tier: 'front' } } };
    const { site, reconcile } = await deliver(world, { selector, allowPrune });
    const delivered = filesOf(site);
    expect(delivered).toContain('c/web/cm.yaml');
    git(repo, ['update-ref', '-d', recordRef(repository.layout, 'web', 'v1')]);
    await reconcile();
    expect(filesOf(site)).toEqual(delivered);
    const { reason, message } = await statusOf(world);
    expect(reason).toBe('Partial');
    expect(message).toMatch(/apps\/web: /);
  },
);

test.each(['foreign', 'revoked'])(
  'a deletion that a %s key signed takes nothing off a cluster and sets nothing back',
  async (which) => {
    const trust = newServerTrust();
    const thief = newSigner();
    if (which === 'revoked') {
      const { fingerprint, publicKey } = thief;
      trust.ledger.addKey({ fingerprint, publicKey, comment: '', origin: 'added', addedAt: '2026-01-01T00:00:00Z' });
      trust.ledger.revokeKey(fingerprint, '2026-01-02T00:00:00Z');
    }
    await using world = await fixture(new ManualClock(), trust);
    const repo = await world.register('apps');
    await publishNext(world, await publish(world, 'web', '1'), 'w2', '2');
    const { site, reconcile } = await deliver(world, {});
    const { layout, trust: own } = world.store.repository('apps');
    const commit = git(repo, ['rev-parse', 'web/v2^{commit}']);
    const statement: RecordStatement = {
      ...{ statement: STATEMENT_VERSION, kind: 'record', repository: own.repository, package: 'web', workspace: 'w2' },
      ...{ sequence: 1, previous: null, record: { ...emptyRecord(commit), deleted: 'v2' } },
    };
    const payload = payloadOf(statement);
    const message = formatRecord('x', { payload, signature: await thief.sign(payload) });
    const oid = git(repo, ['commit-tree', git(repo, ['mktree'], ''), '-m', message]);
    git(repo, ['update-ref', tombstoneRef(layout, 'web', 'v2'), oid]);
    git(repo, ['update-ref', '-d', 'refs/tags/web/v2']);
    await reconcile();
    expect(git(site, ['show', 'main:c/web/cm.yaml'])).toContain('value: "2"');
    expect(await statusOf(world)).toMatchObject({
      reason: 'Partial',
      message: expect.stringContaining('OutOfBandRemoval'),
    });
  },
);

test('a Secret whose values only resemble encrypted ones is not delivered', async () => {
  await using world = await fixture(new ManualClock(), newServerTrust());
  await world.register('apps');
  const looks = 'ENC[plain]';
  const secret = `apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: n}\nstringData: {password: "${looks}"}\nsops: {mac: "${looks}", age: [{recipient: x, enc: y}]}\n`;
  await publish(world, 'web', '1', { 's.yaml': secret });
  const { site } = await deliver(world, {});
  expect(filesOf(site).filter((path) => path.startsWith('c/'))).toEqual([]);
  expect((await statusOf(world)).message).toMatch(/Secret n\/s/);
});
