import { expect, test } from 'vitest';
import { anna, type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { draft, outcomeOf, publish } from '../../../../test/support/shop.ts';
import { RegistryClient } from '../../../resource/client/registry-client.ts';
import { packageRevisionKind } from '../../../resource/kinds/porch/package-revision.ts';
import { structuralProblems } from '../../../resource/schema/structural/structural-problems.ts';
import { Registry } from '../../../resource/storage/registry.ts';
import { EventLog } from '../../../resource/watch/event-log.ts';
import { MAX_COMPARED_FILE_BYTES } from '../../model/diff/file-diff.ts';
import { diffSchema, historySchema } from '../../model/revision/revision-readings.ts';
import { PackageRevisionStorage } from './package-revision-storage.ts';

async function setUp(scratch: Scratch) {
  const { store } = await scratch.open();
  const registry = new Registry();
  const storage = new PackageRevisionStorage(store, new EventLog({ clock: scratch.clock }));
  registry.register(storage);
  const client = new RegistryClient(registry, anna.actor, 'cli');
  const read = (subResource: string, name: string, parameters: Record<string, string> = {}) =>
    client.subResource(subResource).get(packageRevisionKind, { namespace: 'default', name }, parameters);
  return { store, storage, read };
}

test('history and differences are objects of kinds of their own', async () => {
  await using scratch = await scratchRepository();
  const { store, storage, read } = await setUp(scratch);
  const first = await draft(store);
  await publish(store, first);
  const history = await read('history', first);
  expect(history).toMatchObject({
    ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackageRevisionHistory' },
    metadata: { name: first, namespace: 'default' },
  });
  const { entries } = historySchema.parse(history);
  expect(entries.map(({ action }) => action)).toEqual(expect.arrayContaining(['approve', 'propose']));
  expect(historySchema.parse(await read('history', first, { limit: '1' })).entries).toEqual(entries.slice(0, 1));
  const diff = await read('diff', first);
  expect(diff).toMatchObject({ kind: 'PackageRevisionDiff', files: expect.arrayContaining([]) });
  for (const { name, schema } of storage.readOnlySubResources) {
    const shown = name === 'history' ? history : diff;
    expect(structuralProblems(schema()), name).toEqual([]);
    expect(Object.keys(schema().properties ?? {})).toEqual(expect.arrayContaining(Object.keys(shown as object)));
  }
});

test('a parameter that cannot be used is refused, and so is a revision that is not there', async () => {
  await using scratch = await scratchRepository();
  const { store, read } = await setUp(scratch);
  const first = await draft(store);
  for (const limit of ['0', '-1', 'x', '1e3'])
    expect(await outcomeOf(read('history', first, { limit }))).toMatch(/^InvalidInput: the parameter limit must be/);
  for (const subResource of ['history', 'diff'])
    expect(await outcomeOf(read(subResource, 'packages.shop.v9'))).toMatch(
      /^NotFound: .*"packages\.shop\.v9" not found/,
    );
  expect(await outcomeOf(read('diff', first, { with: 'packages.shop.v9' }))).toMatch(/^NotFound: .*shop\.v9/);
  expect(await outcomeOf(read('diff', first, { with: 'latest' }))).toMatch(/^NotFound: .*no other published revision/);
  expect(await outcomeOf(read('explain', first))).toMatch(/^Unsupported/);
});

test('a right to read one revision is none to compare it with another', async () => {
  await using scratch = await scratchRepository();
  const { store, storage } = await setUp(scratch);
  const first = await draft(store);
  await publish(store, first);
  const wanted = { package: 'shop', workspace: 'v2', source: { type: 'copy', source: first } } as const;
  const second = (await store.create('packages', wanted, anna)).name;
  const diff = storage.readOnlySubResources.find(({ name }) => name === 'diff');
  const asked: string[] = [];
  const read = (mayRead: boolean, word: string) => {
    const mayReadOther = async (name: string) => {
      asked.push(name);
      return mayRead;
    };
    const key = { namespace: 'default', name: second };
    return outcomeOf(
      diff?.read({ ...anna, mayReadOther }, key, new URLSearchParams({ with: word })) ?? Promise.resolve(),
    );
  };
  for (const word of ['latest', 'source', first]) expect(await read(true, word)).toBe('succeeded');
  expect(new Set(asked)).toEqual(new Set([first]));
  // The name of a revision that the caller may not read is not in an answer, and neither is whether there is one.
  for (const word of ['latest', 'source'])
    expect(await read(false, word)).toBe(
      `Refused: packagerevisions.porch.kpt.dev is forbidden: a comparison with ${word} needs the right to get the sub-resource diff of that revision as well`,
    );
  for (const word of [first, 'packages.shop.v9', 'nowhere.shop.v1'])
    expect(await read(false, word)).toBe(
      `Refused: packagerevisions.porch.kpt.dev "${word}" is forbidden: a comparison with it needs the right to get its sub-resource diff as well`,
    );
});

test('the difference of a large file is left out of an answer that fits the schema', async () => {
  await using scratch = await scratchRepository();
  const { store, storage, read } = await setUp(scratch);
  const name = await draft(store);
  const large = Buffer.alloc(2 * MAX_COMPARED_FILE_BYTES, 1);
  await store.change(name, { files: new Map([['large.txt', large]]) }, anna);
  const diff = diffSchema.parse(await read('diff', name));
  expect(diff.truncated).toBe(true);
  expect(diff.files.filter(({ truncated }) => truncated)).toEqual([
    { path: 'large.txt', change: 'Added', truncated: true, patch: '' },
  ]);
  const schema = storage.readOnlySubResources.find((each) => each.name === 'diff')?.schema();
  expect(Object.keys(schema?.properties ?? {})).toEqual(expect.arrayContaining(Object.keys(diff)));
});
