import { expect, test } from 'vitest';
import { anna, scratchRepository } from '../../../test/support/scratch-repository.ts';
import { draft, outcomeOf, publish } from '../../../test/support/shop.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { inSequence } from '../plan/update.ts';
import type { PackageRepository } from './package-repository.ts';
import type { RevisionStore } from './revision-store.ts';

const KPTFILE_HEAD = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';
const RENDERED = '    - type: Rendered\n      status: "True"\n      reason: RenderSuccess\n';

test('a change and a step are one transaction: both or neither', async () => {
  await using scratch = await scratchRepository();
  const { store } = await scratch.open();
  const name = await draft(store);
  const { commit } = store.get(name);
  const seen: string[] = [];
  store.subscribe((changes) => seen.push(changes.map(({ after }) => after?.lifecycle).join(' ')));
  const gate = { kptfile: [{ op: 'addGate', conditionType: 'tested' }] } as const;
  expect(await outcomeOf(store.update(name, { change: gate, action: 'propose' }, anna))).toContain('gate tested');
  expect(store.get(name)).toMatchObject({ lifecycle: 'Draft', commit });
  const files = new Map([['a.yaml', Buffer.from('a: 1\n')]]);
  const change = { files, metadata: { labels: { team: 'a' } } };
  const after = await store.update(name, { change, action: 'propose', expectedCommit: commit }, anna);
  expect(after).toMatchObject({ lifecycle: 'Proposed', record: { labels: { team: 'a' } } });
  expect(seen).toEqual(['Proposed']);
  expect(await scratch.git('for-each-ref', '--format=%(refname)', 'refs/heads')).toBe(
    'refs/heads/main\nrefs/heads/proposed/shop/v1',
  );
  const actions = (await store.history(name)).map(({ action }) => action);
  expect(actions).toEqual(['propose', 'edit', 'init']);
});

test('a dry run returns what would be, and leaves everything as it is', async () => {
  await using scratch = await scratchRepository();
  const { store, repository } = await scratch.open();
  const name = await draft(store);
  const files = new Map([['a.yaml', Buffer.from('a: 1\n')]]);
  const steps: readonly ((context: RequestContext) => Promise<PackageRevision | undefined>)[] = [
    (context) => store.create('packages', { package: 'web', workspace: 'v1', source: { type: 'init' } }, context),
    (context) => store.change(name, { files, metadata: { labels: { a: 'b' } } }, context),
    (context) => store.update(name, { change: { metadata: { labels: { c: 'd' } } }, action: 'propose' }, context),
    (context) => store.update(name, { action: 'approve' }, context),
    (context) =>
      store.create('packages', { package: 'shop', workspace: 'v2', source: { type: 'copy', source: name } }, context),
    (context) => store.update(name, { action: 'propose-deletion' }, context),
    (context) => store.update(name, { action: 'delete' }, context),
    (context) => store.update('packages.shop.main', { action: 'propose-deletion' }, context),
    (context) => store.update('packages.shop.main', { action: 'delete' }, context),
  ];
  for (const step of steps) {
    const refs = await scratch.git('for-each-ref');
    const rows = etags(repository);
    let hasReported = 0;
    const stop = store.subscribe(() => {
      hasReported += 1;
    });
    const foreseen = await step({ ...anna, dryRun: true });
    stop();
    expect(hasReported).toBe(0);
    expect(etags(repository)).toEqual(rows);
    expect(await scratch.git('for-each-ref')).toBe(refs);
    const made = await step(anna);
    // The clock stands still, so that even the commits are the same.
    expect(foreseen?.etag).toBe(made?.etag);
    expect(foreseen).toEqual(made);
  }
  const { repository: fresh } = await scratch.open();
  expect(etags(fresh)).toEqual(etags(repository));
});

test('dry runs leave nothing in memory, however many there are', async () => {
  await using scratch = await scratchRepository();
  const { store, repository } = await scratch.open();
  const name = await draft(store);
  await repository.refresh();
  const dry = { ...anna, dryRun: true };
  const dryRun = async (position: number) => {
    const kptfile = [{ op: 'setLabel', key: 'a', value: `v${position}` }] as const;
    await store.update(name, { change: { kptfile, metadata: { labels: { a: `v${position}` } } } }, dry);
    await store.update(name, { action: 'propose' }, dry);
    const wanted = { package: `new-${position}`, workspace: 'v1', source: { type: 'init' } } as const;
    await store.create('packages', wanted, dry);
  };
  await dryRun(0);
  const before = repository.index.factCounts;
  for (let position = 1; position < 4; position += 1) await dryRun(position);
  expect(repository.index.factCounts).toEqual(before);
  expect(before.ownRecords).toBe(0);
  // A write leaves its record with the index alone.
  await store.update(name, { action: 'propose' }, anna);
  expect(repository.index.factCounts.ownRecords).toBe(0);
});

test('a dry run is refused as the request itself would be', async () => {
  await using scratch = await scratchRepository();
  const { store } = await scratch.open();
  const name = await draft(store);
  const dry = { ...anna, dryRun: true };
  const again = { package: 'shop', workspace: 'v2', source: { type: 'init' } } as const;
  expect(await outcomeOf(store.create('packages', again, dry))).toMatch(/^AlreadyExists: package "shop" already/);
  expect(await outcomeOf(store.update(name, { action: 'approve' }, dry))).toContain('only Proposed packages');
  expect(await outcomeOf(store.change(name, { files: new Map([['../x', Buffer.from('')]]) }, dry))).toContain('".."');
});

test('rendering a package without a pipeline leaves its condition, last and once', async () => {
  await using scratch = await scratchRepository();
  const { store } = await scratch.open();
  const name = await draft(store);
  expect((await kptfileOf(store, name)).endsWith(`status:\n  conditions:\n${RENDERED}`)).toBe(true);
  expect((await store.evaluate(name)).record.verdicts).toMatchObject([{ type: 'Rendered', by: 'controller:render' }]);

  const failed =
    '    - type: Rendered\n      status: "False"\n      message: broke\n    - type: other\n      status: "True"\n';
  const conditions = `${KPTFILE_HEAD}status:\n  conditions:\n${failed}`;
  await store.change(name, { files: new Map([['Kptfile', Buffer.from(conditions)]]) }, anna);
  expect(await kptfileOf(store, name)).toBe(
    `${KPTFILE_HEAD}status:\n  conditions:\n    - type: other\n      status: "True"\n${RENDERED}`,
  );

  const gated = { kptfile: [{ op: 'addGate', conditionType: 'Rendered' }] } as const;
  await store.change(name, gated, anna);
  await store.change(name, { files: new Map([['b.yaml', Buffer.from('b: 1\n')]]) }, anna);
  expect((await store.evaluate(name)).gates).toMatchObject([{ type: 'Rendered', state: 'Open' }]);
});

test('a package with a pipeline, its own or that of a nested package, does not become Rendered', async () => {
  await using scratch = await scratchRepository();
  const { store } = await scratch.open();
  const pipeline = `${KPTFILE_HEAD}pipeline:\n  mutators:\n    - image: set-labels\n`;
  for (const [packageName, path] of [
    ['own', 'Kptfile'],
    ['inner', 'db/Kptfile'],
  ] as const) {
    const files = new Map([[path, Buffer.from(pipeline)]]);
    const made = await store.create(
      'packages',
      { package: packageName, workspace: 'v1', source: { type: 'init', files } },
      anna,
    );
    await store.change(made.name, { files: new Map([['a.yaml', Buffer.from('a: 1\n')]]) }, anna);
    expect(await kptfileOf(store, made.name)).not.toContain('Rendered');
  }
});

test('a copy of what was pushed without rendering is rendered, and keeps its verdicts', async () => {
  await using scratch = await scratchRepository();
  const { store } = await scratch.open();
  const name = await draft(store);
  await store.change(name, { withdraw: ['Rendered'], conditions: [{ type: 'tested', status: 'True' }] }, anna);
  await publish(store, name);
  const copy = await store.create(
    'packages',
    { package: 'shop', workspace: 'v2', source: { type: 'copy', source: name } },
    anna,
  );
  expect((await store.content(copy.name)).content).toBe((await store.content(name)).content);
  expect((await kptfileOf(store, copy.name)).endsWith(RENDERED)).toBe(true);
  const { record } = await store.evaluate(copy.name);
  expect(record.verdicts.map(({ type, by }) => [type, by])).toEqual([
    ['Rendered', 'controller:render'],
    ['tested', 'anna'],
  ]);
});

test('sequential updates combine into one update for each ref', () => {
  const [a, b, c] = ['a', 'b', 'c'].map((digit) => digit.repeat(40)) as [string, string, string];
  const ref = 'refs/heads/x';
  expect(inSequence([{ type: 'update', ref, old: a, new: b }], [{ type: 'delete', ref, old: b }])).toEqual([
    { type: 'delete', ref, old: a },
  ]);
  expect(inSequence([{ type: 'verify', ref, old: a }], [{ type: 'update', ref, old: a, new: c }])).toEqual([
    { type: 'update', ref, old: a, new: c },
  ]);
  expect(inSequence([{ type: 'create', ref, new: b }], [{ type: 'delete', ref, old: b }])).toEqual([]);
  expect(() => inSequence([{ type: 'create', ref, new: b }], [{ type: 'delete', ref, old: c }])).toThrow(/follow/);
});

function etags(repository: PackageRepository): string[] {
  return Array.from(repository.index.all(), ({ name, etag }) => `${name} ${etag}`).sort();
}

async function kptfileOf(store: RevisionStore, name: string): Promise<string> {
  return (await store.content(name)).files.get('Kptfile')?.toString() ?? '';
}
