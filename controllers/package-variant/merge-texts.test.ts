import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { MemoryTrustLedger } from '../../src/package/trust/ledger/memory-trust-ledger.ts';
import { RepositoryTrust } from '../../src/package/trust/repository-trust.ts';
import { verifySignature } from '../../src/package/trust/statement/verify-signature.ts';
import type { Client } from '../../src/resource/client/client.ts';
import { packageVariantKind } from '../../src/resource/kinds/porch/package-variant.ts';
import { ANNA, fixture } from '../../test/support/fixture.ts';
import { commitFiles } from '../../test/support/scratch-repository.ts';
import { newSigner } from '../../test/support/trust.ts';
import { DEPLOYMENT, type VariantBench, variantBench, withoutCommits } from '../../test/support/variant-bench.ts';
import { MergeTextReader } from './merge-texts.ts';

const KEY = { namespace: 'default', name: 'web-edge' };
const DRAFT = 'edge.web.packagevariant-1';
const IMAGE = 'Deployment/web spec.template.spec.containers[web].image';

let bench: VariantBench;
beforeEach(async () => {
  bench = await variantBench(await fixture(new ManualClock()));
  await bench.variant();
  await bench.reconcile();
});
afterEach(() => bench.world[Symbol.asyncDispose]());

const withImage = (image: string) => DEPLOYMENT.replace('web:v1', image);

async function edit(name: string, image: string): Promise<void> {
  const files = new Map([['web.yaml', Buffer.from(withImage(image))]]);
  await bench.world.store.change(name, { files }, ANNA);
}

/** Ends the process after the commit and before the status is written. */
async function reconcileAndEnd(): Promise<void> {
  const ending = (client: Client): Client =>
    new Proxy(client, {
      get: (object, property) => {
        if (property === 'as') return (...of: Parameters<Client['as']>) => ending(object.as(...of));
        if (property === 'updateStatus') return () => Promise.reject(new SluiceError('Unavailable', 'ended'));
        const value = Reflect.get(object, property) as unknown;
        return typeof value === 'function' ? value.bind(object) : value;
      },
    });
  await expect(bench.on({ client: ending(bench.world.client) })()).rejects.toThrow('ended');
}

/** The condition after a restart. */
async function overwritten(): Promise<string | undefined> {
  await bench.on({})();
  const found = (await bench.conditions()).find((text) => text.startsWith('LocalChangesOverwritten'));
  return found === undefined ? undefined : withoutCommits(found);
}

const reported = (name: string, image: string) =>
  `LocalChangesOverwritten=True/ChangedUpstream: ${name}: changed on both sides, and overwritten by upstream: ${IMAGE} (was ${image}) in web.yaml`;

test('a merge whose process ended before the status was written is reported after a restart, also below other commits', async () => {
  await edit(DRAFT, 'web:mine');
  await bench.publishBlueprint({ 'web.yaml': withImage('web:v2') });
  await reconcileAndEnd();
  expect(await bench.text(DRAFT, 'web.yaml')).toContain('web:v2');
  await bench.world.store.change(DRAFT, { files: new Map([['notes.txt', Buffer.from('mine\n')]]) }, ANNA);
  expect(await overwritten()).toBe(reported(DRAFT, 'web:mine'));
  expect(await overwritten()).toBe(reported(DRAFT, 'web:mine'));

  // What is reported is not reported again with the next merge.
  await edit(DRAFT, 'web:own');
  await bench.publishBlueprint({ 'web.yaml': withImage('web:v3') });
  await reconcileAndEnd();
  const both = `${reported(DRAFT, 'web:own')}; before that, ${reported(DRAFT, 'web:mine').replace(/^.*?: /, '')}`;
  expect(await overwritten()).toBe(both);
  await bench.world.publish(DRAFT);
  expect(await overwritten()).toMatch(/^LocalChangesOverwritten=False\/Decided: /);
});

test('so is that of a new draft, by an upgrade and by a copy that follows a branch', async () => {
  await edit(DRAFT, 'web:mine');
  await bench.world.publish(DRAFT);
  await bench.publishBlueprint({ 'web.yaml': withImage('web:v2') });
  await reconcileAndEnd();
  const second = 'edge.web.packagevariant-2';
  expect(bench.world.store.get(second).record?.task).toMatchObject({ type: 'upgrade' });
  expect(await overwritten()).toBe(reported(second, 'web:mine'));

  await edit(second, 'web:own');
  await bench.world.publish(second);
  expect(await overwritten()).toMatch(/^LocalChangesOverwritten=False\/Decided: /);
  await bench.publishBlueprint({ 'web.yaml': withImage('web:v3') });
  await bench.world.client.patch(packageVariantKind, KEY, { spec: { upstream: { workspaceName: 'main' } } });
  await reconcileAndEnd();
  const third = 'edge.web.packagevariant-3';
  expect(bench.world.store.get(third).record?.task).not.toMatchObject({ type: 'upgrade' });
  expect(await overwritten()).toBe(reported(third, 'web:own'));
});

test('a rebase of the draft by a user is reported as well', async () => {
  const { store, publish } = bench.world;
  await publish(DRAFT);
  await bench.publishBlueprint({ 'notes.txt': 'upstream\n' });
  await bench.reconcile();
  const second = 'edge.web.packagevariant-2';
  const copy = { type: 'copy', source: DRAFT } as const;
  const other = await store.create('edge', { package: 'web', workspace: 'own', source: copy }, ANNA);
  await edit(other.name, 'web:theirs');
  await publish(other.name);
  await edit(second, 'web:mine');
  const warnings: string[] = [];
  await store.change(second, { rebase: 'merge' }, { ...ANNA, warn: (text) => void warnings.push(text) });
  expect(warnings.join('\n')).toContain('overwritten by the main branch');
  expect(await overwritten()).toBe(reported(second, 'web:mine').replace('by upstream', 'by the main branch'));
});

const conditionsOf = async (type: string) => (await bench.conditions()).filter((text) => text.startsWith(type));
const eventsOf = async (type: string) =>
  (await bench.world.events('web-edge')).filter((text) => text.startsWith(type)).sort();

test('each merge that overwrites the same value is reported, once', async () => {
  const reports: string[] = [];
  for (const upstream of ['web:v2', 'web:v3', 'web:v4']) {
    await edit(DRAFT, 'web:mine');
    await bench.publishBlueprint({ 'web.yaml': withImage(upstream) });
    await bench.reconcile();
    const what = `changed on both sides, and overwritten by upstream: ${IMAGE} (was web:mine) in web.yaml`;
    reports.unshift(`${DRAFT} at ${bench.world.store.get(DRAFT).commit.slice(0, 12)}: ${what}`);
    // Neither another reconciliation nor a restart reports it again.
    await bench.reconcile();
    await bench.on({})();
    expect(await conditionsOf('LocalChangesOverwritten')).toEqual([
      `LocalChangesOverwritten=True/ChangedUpstream: ${reports.join('; before that, ')}`,
    ]);
    const events = reports.map((report) => `LocalChangesOverwritten: ${report}`);
    expect(await eventsOf('LocalChangesOverwritten')).toEqual(events.sort());
  }
});

test('so is one that keeps some of the files that an earlier one kept', async () => {
  const names = ['notes.txt', 'other.txt'];
  const textsOf = (text: string, of = names) => Object.fromEntries(of.map((name) => [name, `${text}\n`]));
  const mine = new Map(Object.entries(textsOf('mine')).map(([name, text]) => [name, Buffer.from(text)]));
  await bench.world.store.change(DRAFT, { files: mine }, ANNA);
  const reports: string[] = [];
  for (const kept of [names, ['notes.txt']]) {
    await bench.publishBlueprint(textsOf(`upstream ${kept.length}`, kept));
    await bench.reconcile();
    const what = `changed upstream, and kept as they were changed locally: ${kept.join(', ')}`;
    reports.unshift(`${DRAFT} at ${bench.world.store.get(DRAFT).commit.slice(0, 12)}: ${what}`);
  }
  expect(await conditionsOf('LocalChangesKept')).toEqual([
    `LocalChangesKept=True/ChangedUpstream: ${reports.join('; before that, ')}`,
  ]);
  expect(await eventsOf('LocalChangesKept')).toEqual(reports.map((report) => `LocalChangesKept: ${report}`).sort());
});

describe('trailers that a user pushes', () => {
  const pushed = (action: string, ...trailers: string[]) => [
    'x',
    '',
    'kpt:{"package":"web","workspaceName":"packagevariant-1"}',
    '',
    `Sluice-Action: ${action}`,
    ...trailers,
  ];
  const forged = pushed('edit', 'Sluice-Actor: anna', 'Sluice-Overwritten: by upstream: lies', 'Sluice-Kept: lies');

  /** Files are none for a commit that changes nothing. */
  async function push(message: readonly string[], files: Readonly<Record<string, string>> = {}): Promise<void> {
    const repository = bench.world.store.repository('edge');
    const options = { branch: 'drafts/web/packagevariant-1', message: `${message.join('\n')}\n` };
    await commitFiles(repository.git, files, bench.world.clock.now(), options);
    await repository.refresh();
  }

  test.each([
    ['with a change', { 'web/notes.txt': 'pushed\n' }],
    ['without one', {}],
  ])('are no reports, %s, also below a commit of Sluice', async (_, files) => {
    await push(forged, files);
    await bench.reconcile();
    await edit(DRAFT, 'web:mine');
    await bench.reconcile();
    await bench.on({})();
    expect((await bench.conditions()).join('\n')).not.toContain('LocalChanges');
    expect((await bench.world.events('web-edge')).join('\n')).not.toContain('LocalChanges');

    // The same draft has a merge, which is reported as before.
    await bench.publishBlueprint({ 'web.yaml': withImage('web:v2') });
    await reconcileAndEnd();
    expect(await overwritten()).toBe(reported(DRAFT, 'web:mine'));
    expect(await conditionsOf('LocalChangesKept')).toEqual([]);
  });

  test('hide no report of a merge', async () => {
    await edit(DRAFT, 'web:mine');
    await bench.publishBlueprint({ 'web.yaml': withImage('web:v2') });
    await reconcileAndEnd();
    await push(pushed('clone'), { 'web/notes.txt': 'pushed\n' });
    expect(await overwritten()).toBe(reported(DRAFT, 'web:mine'));
  });
});

test('a merge whose record is signed with a key that is not trusted is reported once it is', async () => {
  await edit(DRAFT, 'web:mine');
  await bench.publishBlueprint({ 'web.yaml': withImage('web:v2') });
  await reconcileAndEnd();
  const { git, trust } = bench.world.store.repository('edge');
  const reader = new MergeTextReader();
  const revision = bench.world.store.get(DRAFT);
  const other = new RepositoryTrust({
    ...{ repository: trust.repository, branch: 'main', verify: verifySignature, ledger: new MemoryTrustLedger() },
    ...{ signer: () => newSigner(), trustedKeys: () => new Map() },
  });
  const none = { overwritten: [], kept: [] };
  expect(await reader.of(KEY, { ...revision, statement: undefined }, { git, trust: other })).toEqual(none);
  expect((await reader.of(KEY, revision, { git, trust })).overwritten).toHaveLength(1);
});
