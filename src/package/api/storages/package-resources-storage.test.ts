import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { packageKinds } from '../../../../test/support/package-kinds.ts';
import { anna, commitFiles, type Scratch, scratchRepository } from '../../../../test/support/scratch-repository.ts';
import { draft, KPTFILE, outcomeOf, publish } from '../../../../test/support/shop.ts';
import { openRepository } from '../../../git/open/open-repository.ts';
import { packageRevisionKind } from '../../../resource/kinds/porch/package-revision.ts';
import { packageRevisionResourcesKind } from '../../../resource/kinds/porch/package-revision-resources.ts';
import { DEFAULT_POLICY } from '../../model/policy/policy.ts';
import type { Rendering } from '../../plan/ports/renderer.ts';

const kind = packageRevisionResourcesKind;
const name = 'packages.shop.v1';

async function shop(scratch: Scratch) {
  const world = await packageKinds(scratch);
  await draft(world.store);
  const read = () => world.client.get(kind, { name });
  /** Replaces the map of files. */
  const write = async (change: (files: Record<string, string>) => Record<string, string>) => {
    const object = await read();
    return world.client.update(kind, {
      ...object,
      spec: { ...object.spec, resources: change({ ...object.spec.resources }) },
    });
  };
  return { ...world, read, write };
}

describe('files of a package', () => {
  test('have the name, id, version and labels of the package revision', async () => {
    await using scratch = await scratchRepository();
    const { client, read, store } = await shop(scratch);
    await store.change(name, { metadata: { labels: { team: 'a' } } }, anna);
    const revision = await client.get(packageRevisionKind, { name });
    const { metadata, spec, status } = await read();
    const { uid, resourceVersion, creationTimestamp, labels } = revision.metadata;
    expect(metadata).toEqual({ name, namespace: 'default', uid, resourceVersion, creationTimestamp, labels });
    expect(labels).toEqual({ team: 'a' });
    expect(Object.keys(spec.resources ?? {})).toEqual(['Kptfile', 'README.md', 'package-context.yaml']);
    expect(spec).toMatchObject({ packageName: 'shop', workspaceName: 'v1', repository: 'packages' });
    expect(spec.resources?.['package-context.yaml']).toContain('data:\n  name: example\n');
    expect(status).toEqual({ renderStatus: {} });
  });

  test('have the context of Porch in a deployment repository as well, until they are cloned', async () => {
    await using scratch = await scratchRepository();
    const { store, client } = await packageKinds(scratch, { deployment: true });
    await draft(store);
    const { spec } = await client.get(kind, { name });
    expect(spec.resources?.['package-context.yaml']).toContain('data:\n  name: example\n');
  });

  test('an update replaces the map, and what is the same makes no commit', async () => {
    await using scratch = await scratchRepository();
    const { store, read, write } = await shop(scratch);
    const before = store.get(name).commit;
    const same = await write((files) => files);
    expect(store.get(name).commit).toBe(before);
    expect(same).toEqual(await read());
    const after = await write(({ 'README.md': _gone, ...files }) => ({ ...files, 'a/b.yaml': 'b: 1\n' }));
    expect(Object.keys(after.spec.resources ?? {})).toEqual(['Kptfile', 'a/b.yaml', 'package-context.yaml']);
    expect(after.metadata.resourceVersion).not.toBe(same.metadata.resourceVersion);
    expect(await scratch.git('log', '--format=%s', 'main..drafts/shop/v1')).toBe(
      'Edit package\nCreating new empty revision',
    );
  });

  test('the response to a write has what the functions did, as in Porch; later it is where the Kptfile keeps it', async () => {
    await using scratch = await scratchRepository();
    const image = 'ghcr.io/kptdev/krm-functions-catalog/check:v1';
    const renderStatus = { validationSteps: [{ image, exitCode: 1 }] };
    const renderer = { render: async () => ({ kptfile: [], renderStatus }) };
    const { client, store } = await packageKinds(scratch, { renderer });
    await draft(store);
    const pipeline = 'pipeline:\n  validators:\n    - image: check:v1\n';
    const object = await client.get(kind, { name });
    const resources = { ...object.spec.resources, Kptfile: `${object.spec.resources?.Kptfile}${pipeline}` };
    const after = await client.update(kind, { ...object, spec: { ...object.spec, resources } });
    const result = { exitCode: 1, items: [{ image, exitCode: 1 }] };
    expect(after.status).toEqual({ renderStatus: { result } });
    expect((await client.get(kind, { name })).status).toEqual({ renderStatus: {} });
  });

  test('a patch touches the files that it names', async () => {
    await using scratch = await scratchRepository();
    const { client } = await shop(scratch);
    const patch = { spec: { resources: { 'a.yaml': 'a: 1\n', 'README.md': null } } };
    const { spec } = await client.patch(kind, { name }, patch);
    expect(Object.keys(spec.resources ?? {})).toEqual(['Kptfile', 'a.yaml', 'package-context.yaml']);
  });

  test('a version is required, and an old one is a conflict in the words of Porch', async () => {
    await using scratch = await scratchRepository();
    const { client, read, resources, write } = await shop(scratch);
    const overApi = (update: Parameters<typeof resources.update>[1]) =>
      outcomeOf(resources.update({ ...anna, face: 'api' }, update));
    const object = await read();
    const { resourceVersion: _none, ...metadata } = object.metadata;
    expect(await outcomeOf(client.update(kind, { ...object, metadata }))).toBe(
      'InvalidInput: resourceVersion must be specified for an update',
    );
    expect(await overApi({ ...object, metadata })).toBe(
      'InvalidInput: Internal error occurred: resourceVersion must be specified for an update',
    );
    await client.patch(packageRevisionKind, { name }, { metadata: { labels: { a: 'b' } } });
    expect(await outcomeOf(client.update(kind, object))).toBe(
      `Conflict: Operation cannot be fulfilled on packagerevisionresources.porch.kpt.dev "${name}": the object has been modified; please apply your changes to the latest version and try again`,
    );
    expect(await overApi(object)).toMatch(/^Conflict: Internal error occurred: Operation cannot be fulfilled on /);
    await write((files) => ({ ...files, 'a.yaml': '' }));
  });

  test('only drafts can be written', async () => {
    await using scratch = await scratchRepository();
    const { store, write } = await shop(scratch);
    await store.update(name, { action: 'propose' }, anna);
    expect(await outcomeOf(write((files) => files))).toBe(
      `Refused: cannot update a package revision with lifecycle value "Proposed"; package must be Draft: "sluice rpkg reject ${name}" returns it to Draft`,
    );
    await store.update(name, { action: 'approve' }, anna);
    expect(await outcomeOf(write((files) => files))).toContain('lifecycle value "Published"; package must be Draft');
  });

  test.each([
    ['no file at all', () => ({}), /Kptfile is missing or empty/],
    ['no Kptfile', ({ Kptfile: _gone, ...files }: Record<string, string>) => files, /Kptfile is missing or empty/],
    ['an empty Kptfile', (files: Record<string, string>) => ({ ...files, Kptfile: ' \n' }), /Kptfile is missing or/],
    ['no YAML', (files: Record<string, string>) => ({ ...files, Kptfile: 'a: [' }), /Kptfile: /],
    ['a path upwards', (files: Record<string, string>) => ({ ...files, '../x': '' }), /path "\.\.\/x" is refused/],
    ['an absolute path', (files: Record<string, string>) => ({ ...files, '/etc/x': '' }), /path "\/etc\/x" is refused/],
    ['an empty segment', (files: Record<string, string>) => ({ ...files, 'a//b': '' }), /path "a\/\/b" is refused/],
    ['a .git folder', (files: Record<string, string>) => ({ ...files, 'a/.GIT/config': '' }), /Git's own folder/],
    ['a NUL', (files: Record<string, string>) => ({ ...files, 'a\u0000b': '' }), /NUL character/],
    ['a backslash', (files: Record<string, string>) => ({ ...files, 'a\\b': '' }), /backslash/],
    ['a long path', (files: Record<string, string>) => ({ ...files, [`${'a/'.repeat(2500)}b`]: '' }), /longer than/],
    ['half a character', (files: Record<string, string>) => ({ ...files, 'a.txt': '\ud800' }), /not valid Unicode/],
    ['a file that is a folder too', (files: Record<string, string>) => ({ ...files, a: '', 'a/b': '' }), /a/],
  ])('%s is refused, and nothing changes', async (_what, change, message) => {
    await using scratch = await scratchRepository();
    const { store, write } = await shop(scratch);
    const { etag } = store.get(name);
    const outcome = await outcomeOf(write(change));
    expect(outcome).toMatch(/^InvalidInput: /);
    expect(outcome).toMatch(message);
    expect(outcome.length).toBeLessThan(2000);
    expect(store.get(name).etag).toBe(etag);
  });

  test('more than a package may hold is refused', async () => {
    await using scratch = await scratchRepository();
    const { write } = await shop(scratch);
    const many = (files: Record<string, string>) =>
      Object.assign(files, Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`f${index}`, ''])));
    expect(await outcomeOf(write(many))).toMatch(/^LimitExceeded: .* would have 10003 files/);
  });

  test('which package they are of cannot change', async () => {
    await using scratch = await scratchRepository();
    const { client, read } = await shop(scratch);
    const object = await read();
    for (const [field, value] of [
      ['packageName', 'other'],
      ['repository', 'other'],
      ['workspaceName', 'v2'],
      ['revision', 7],
    ]) {
      const spec = { ...object.spec, [`${field}`]: value };
      expect(await outcomeOf(client.update(kind, { ...object, spec }))).toContain(`spec.${field}: Invalid value`);
    }
    const { packageName: _name, ...spec } = object.spec;
    await client.update(kind, { ...object, spec: { ...spec, revision: 0 } });
  });

  test('binary files are base64, and stay through updates of clients that do not know them', async () => {
    await using scratch = await scratchRepository();
    const { client, store, read, write } = await shop(scratch);
    const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80]);
    await store.change(name, { files: new Map([['logo.png', bytes]]) }, anna);
    const { metadata, spec } = await read();
    expect(metadata.annotations).toEqual({ 'sluice.dev/binary-files': 'logo.png' });
    expect(Object.keys(spec.resources ?? {})).not.toContain('logo.png');
    expect(spec.binaryResources).toEqual({ 'logo.png': bytes.toString('base64') });
    await write((files) => ({ ...files, 'a.yaml': 'a: 1\n' }));
    expect((await store.content(name)).files.get('logo.png')).toEqual(bytes);
    expect(await outcomeOf(write((files) => ({ ...files, 'logo.png': 'text' })))).toContain(
      'spec.binaryResources[logo.png]: Invalid value: "logo.png": is in resources as well',
    );
    // As the Go types of Porch write it.
    const asPorch = async (resources: Record<string, string>) => {
      const object = await read();
      const { binaryResources: _unknown, ...known } = object.spec;
      return client.update(kind, { ...object, spec: { ...known, resources: { ...known.resources, ...resources } } });
    };
    await asPorch({ 'b.yaml': 'b: 1\n' });
    expect((await store.content(name)).files.get('logo.png')).toEqual(bytes);
    expect(await outcomeOf(asPorch({ 'logo.png': 'text' }))).toContain('Invalid value: "logo.png": is binary');
  });

  test('an update that names binary files makes them those', async () => {
    await using scratch = await scratchRepository();
    const { client, store, read } = await shop(scratch);
    const encoded = (...bytes: number[]) => Buffer.from(bytes).toString('base64');
    const update = async (binaryResources: Record<string, string>, resources: Record<string, string> = {}) => {
      const object = await read();
      const spec = { ...object.spec, binaryResources, resources: { ...object.spec.resources, ...resources } };
      return client.update(kind, { ...object, spec });
    };
    const binary = async () => Object.keys((await read()).spec.binaryResources ?? {});
    await update({ 'a.png': encoded(0xff, 1), 'img/b.png': encoded(0xff, 2) });
    expect((await store.content(name)).files.get('img/b.png')).toEqual(Buffer.from([0xff, 2]));
    await update({ 'a.png': encoded(0xff, 3) });
    expect([await binary(), (await store.content(name)).files.get('a.png')]).toEqual([
      ['a.png'],
      Buffer.from([0xff, 3]),
    ]);
    await update({}, { 'a.png': 'text' });
    expect([await binary(), (await read()).spec.resources?.['a.png']]).toEqual([[], 'text']);
    expect(await outcomeOf(update({ 'c.png': '!' }))).toContain('the content is not valid base64');
    expect(await outcomeOf(update({ '../c.png': encoded(0xff) }))).toMatch(/^InvalidInput.*spec\.binaryResources/);
  });

  test('files in more folders than are read, or deeper ones, are refused before anything is written', async () => {
    await using scratch = await scratchRepository();
    const { store, read, write } = await shop(scratch);
    const { commit } = store.get(name);
    const added = (count: number, path: (index: number) => string) =>
      write((files) => ({
        ...files,
        ...Object.fromEntries(Array.from({ length: count }, (_, index) => [path(index), ''])),
      }));
    expect(await outcomeOf(added(9900, (i) => `d${i}/a/b/c/d/e/f`))).toMatch(
      /^LimitExceeded: .*a package has at most 20000 files and folders together/,
    );
    expect(await outcomeOf(added(1, () => `${'a/'.repeat(101)}x`))).toContain('it has 101 folders');
    expect(store.get(name).commit).toBe(commit);
    await read();
  });

  test('a patch that removes the binary files removes them', async () => {
    await using scratch = await scratchRepository();
    const { client, store } = await shop(scratch);
    await store.change(name, { files: new Map([['logo.png', Buffer.from([0xff, 0xfe])]]) }, anna);
    await client.patch(kind, { name }, { spec: { resources: { 'a.yaml': 'a: 1\n' } } });
    expect((await store.content(name)).files.has('logo.png')).toBe(true);
    await client.patch(kind, { name }, { spec: { binaryResources: null } });
    expect([...(await store.content(name)).files.keys()]).not.toContain('logo.png');
  });

  test('many long names of binary files can be read and written back', async () => {
    await using scratch = await scratchRepository();
    const { client, store, read } = await shop(scratch);
    const long = Array.from({ length: 250 }, (_, index) => `${`${'x'.repeat(199)}/`.repeat(18)}${index}`);
    await store.change(name, { files: new Map(long.map((path) => [path, Buffer.from([0xff])])) }, anna);
    const object = await read();
    const names = object.metadata.annotations?.['sluice.dev/binary-files'] ?? '';
    expect(names.length).toBeLessThan(5000);
    expect(names).toMatch(/^x{199}\/…, .* and 231 more$/);
    await client.update(kind, object);
  });

  test.each([
    ['a path as a name', (blob: string) => [`100644 a/../../../z\0${blob}`]],
    ['an absolute path', (blob: string) => [`100644 /abs\0${blob}`]],
    ['one name twice', (blob: string) => [`100644 a\0${blob}`, `100644 a\0${blob}`]],
  ])('a pushed tree with %s is a problem of the package', async (_, entries) => {
    await using scratch = await scratchRepository();
    const { client, store, repository } = await shop(scratch);
    const { git } = repository;
    const blob = await git.writeBlob(Buffer.from('x'));
    const kptfile = await git.writeBlob(Buffer.from(KPTFILE));
    const raw = (oid: string) => Buffer.from(oid, 'hex').toString('latin1');
    const text = `100644 Kptfile\0${raw(kptfile)}${entries(raw(blob)).join('')}`;
    const file = join(scratch.folder, 'tree');
    await writeFile(file, Buffer.from(text, 'latin1'));
    const folder = await scratch.git('hash-object', '-t', 'tree', '-w', '--literally', file);
    await writeFile(file, Buffer.from(`40000 shop\0${raw(folder)}`, 'latin1'));
    const tree = await scratch.git('hash-object', '-t', 'tree', '-w', '--literally', file);
    const { commit } = store.get(name);
    const signature = { name: 'pusher', email: 'pusher@example.com', time: 0 };
    const next = await git.writeCommit({
      ...{ tree, parents: [commit], author: signature, committer: signature, message: 'x\n' },
    });
    await git.transaction([{ type: 'update', ref: 'refs/heads/drafts/shop/v1', old: commit, new: next }]);
    await repository.refresh();
    expect(await outcomeOf(client.get(kind, { name }))).toMatch(
      /^InvalidInput: the files of packages.shop.v1 cannot be read: .*delete the revision/,
    );
    const { items } = await client.list(kind);
    expect(items[0]?.metadata.annotations?.['sluice.dev/problem']).toMatch(/cannot be read/);
  });

  test('a file that is called __proto__ is treated as one of them', async () => {
    await using scratch = await scratchRepository();
    const { store, read, write } = await shop(scratch);
    await store.change(name, { files: new Map([['__proto__', Buffer.from('text')]]) }, anna);
    const { metadata, status } = await read();
    expect(metadata.annotations).toEqual({ 'sluice.dev/binary-files': '__proto__' });
    expect(status?.skippedFiles).toEqual(['__proto__ (a name that no map can hold)']);
    await write((files) => ({ ...files, 'a.yaml': 'a: 1\n' }));
    expect((await store.content(name)).files.get('__proto__')?.toString()).toBe('text');
  });

  test('links stay as they are and cannot be written', async () => {
    await using scratch = await scratchRepository();
    const { store, repository, write } = await shop(scratch);
    const { git } = repository;
    const { commit } = store.get(name);
    const oid = await git.writeBlob(Buffer.from('/etc/passwd'));
    const { tree } = await git.readCommit(commit);
    const signature = { name: 'pusher', email: 'pusher@example.com', time: 0 };
    const next = await git.writeCommit({
      tree: await git.editTree(tree, new Map([['shop/link', { oid, mode: '120000' }]])),
      parents: [commit],
      ...{ author: signature, committer: signature, message: 'a link\n' },
    });
    await git.transaction([{ type: 'update', ref: 'refs/heads/drafts/shop/v1', old: commit, new: next }]);
    await repository.refresh();
    await write((files) => ({ ...files, 'a.yaml': 'a: 1\n' }));
    expect(await scratch.git('ls-tree', '--format=%(objectmode)', 'drafts/shop/v1', 'shop/link')).toBe('120000');
    expect(await outcomeOf(write((files) => ({ ...files, link: 'text' })))).toContain('no regular file');
    expect(await outcomeOf(write((files) => ({ ...files, 'link/x': 'text' })))).toMatch(/^InvalidInput/);
  });

  test('a dry run shows what would be, and writes nothing', async () => {
    await using scratch = await scratchRepository();
    const { store, resources, read } = await shop(scratch);
    const { etag } = store.get(name);
    const object = await read();
    const spec = { ...object.spec, resources: { ...object.spec.resources, 'a.yaml': 'a: 1\n' } };
    const shown = await resources.update({ ...anna, dryRun: true }, { ...object, spec });
    expect(shown.spec.resources?.['a.yaml']).toBe('a: 1\n');
    expect(shown.metadata.resourceVersion).toBe(object.metadata.resourceVersion);
    expect(store.get(name).etag).toBe(etag);
    expect((await read()).spec.resources).not.toHaveProperty('a.yaml');
  });

  test('they cannot be created or deleted', async () => {
    await using scratch = await scratchRepository();
    const { client, read } = await shop(scratch);
    const object = await read();
    expect(await outcomeOf(client.create(kind, object as never))).toBe(
      'Unsupported: create is not supported on resources of kind "packagerevisionresources.porch.kpt.dev"',
    );
    expect(await outcomeOf(client.delete(kind, { name }))).toContain('delete is not supported');
    expect(await outcomeOf(client.updateStatus(kind, object))).toMatch(/^Unsupported/);
  });
});

test('conditions and gates have the same effect in the Kptfile and in the package revision', async () => {
  const results: unknown[] = [];
  for (const way of ['kptfile', 'object'] as const) {
    await using scratch = await scratchRepository();
    const { client, store, write } = await shop(scratch);
    if (way === 'kptfile') {
      await write((files) => ({
        ...files,
        Kptfile: (files.Kptfile ?? '')
          .replace(/^info:\n/m, 'info:\n  readinessGates:\n    - conditionType: tested\n')
          .replace(
            /^ {2}conditions:\n/m,
            '  conditions:\n    - type: tested\n      status: "True"\n      reason: Ok\n',
          ),
      }));
    } else {
      const object = await client.get(packageRevisionKind, { name });
      const gated = await client.update(packageRevisionKind, {
        ...object,
        spec: { ...object.spec, readinessGates: [{ conditionType: 'tested' }] },
      });
      const conditions = [
        ...(gated.status?.conditions ?? []),
        { type: 'tested', status: 'True', reason: 'Ok' } as const,
      ];
      await client.updateStatus(packageRevisionKind, { ...gated, status: { ...gated.status, conditions } });
    }
    const { gates, record } = await store.evaluate(name);
    const { spec, status } = await client.get(packageRevisionKind, { name });
    const byType = (a: { type: string }, b: { type: string }) => (a.type < b.type ? -1 : 1);
    results.push({ gates, verdicts: record.verdicts, spec, conditions: [...(status?.conditions ?? [])].sort(byType) });
    await publish(store, name);
  }
  expect(results[0]).toEqual(results[1]);
  expect(results[0]).toMatchObject({ gates: [{ type: 'tested', state: 'Open' }] });
});

test('who must not give a condition cannot write it into the Kptfile either', async () => {
  await using scratch = await scratchRepository();
  const givers = [{ conditionType: 'tested', actors: ['tester'], policy: 'tests' }];
  const { client, store } = await packageKinds(scratch, { policyFor: () => ({ ...DEFAULT_POLICY, givers }) });
  await draft(store);
  const refused = 'Refused: anna: policy tests permits only tester to set tested';
  const condition = '    - type: tested\n      status: "True"\n';
  const { spec } = await client.get(kind, { name });
  const kptfile = `${spec.resources?.Kptfile}${condition}`;
  const patch = { spec: { resources: { Kptfile: kptfile } } };
  expect(await outcomeOf(client.patch(kind, { name }, patch))).toBe(refused);
  const status = { conditions: [{ type: 'tested', status: 'True' }] };
  expect(await outcomeOf(client.subResource('status').patch(packageRevisionKind, { name }, { status }))).toBe(refused);
  const tester = client.as({ name: 'tester' });
  await tester.patch(kind, { name }, patch);
  const without = { spec: { resources: { Kptfile: spec.resources?.Kptfile ?? '' } } };
  expect(await outcomeOf(client.patch(kind, { name }, without))).toBe(refused);
  // The writer is not the issuer of what stays as it was.
  await client.patch(kind, { name }, { spec: { resources: { 'a.yaml': 'a: 1\n' } } });
});

test('an edit of the Kptfile keeps its bytes', async () => {
  await using scratch = await scratchRepository();
  const { store, write } = await shop(scratch);
  const text = '# mine\r\napiVersion: kpt.dev/v1\r\nkind: Kptfile\r\nmetadata:\r\n    name:   shop # odd\r\n';
  await write((files) => ({ ...files, Kptfile: text }));
  const written = (await store.content(name)).files.get('Kptfile')?.toString() ?? '';
  expect(written.startsWith(text)).toBe(true);
  expect(written).toContain('reason: RenderSuccess');
});

test('lists are paged within size limits; unreadable items have a reason', async () => {
  await using scratch = await scratchRepository();
  const { store, client, resources } = await shop(scratch);
  for (const packageName of ['web', 'db']) await draft(store, packageName);
  const git = await openRepository(scratch.path);
  await commitFiles(git, { 'other/x': 'x' }, 0, { branch: 'drafts/gone/v1', from: 'refs/heads/main' });
  await git.close();
  await store.repository('packages').refresh();
  const names: (string | undefined)[] = [];
  let next: string | undefined;
  do {
    const page = await resources.list(anna, { limit: 2, ...(next === undefined ? {} : { continue: next }) });
    names.push(...page.items.map(({ metadata }) => metadata.name));
    next = page.continue;
  } while (next !== undefined);
  expect(names).toEqual(['packages.db.v1', 'packages.gone.v1', 'packages.shop.v1', 'packages.web.v1']);
  const { items } = await client.list(kind, { fieldSelector: 'spec.packageName=gone' });
  expect(items[0]?.metadata.annotations?.['sluice.dev/problem']).toMatch(/no package folder/);
  const big = 'x'.repeat(33 * 1024 * 1024);
  for (const large of ['packages.web.v1', 'packages.db.v1'])
    await store.change(large, { files: new Map([['big.txt', Buffer.from(big)]]) }, anna);
  expect(await outcomeOf(client.list(kind))).toMatch(/^LimitExceeded: the packages of this list/);
  expect((await resources.list(anna, { limit: 1 })).items).toHaveLength(1);
});

test('a watch shows the files after every change of the package revision', async () => {
  await using scratch = await scratchRepository();
  const { client, store, write } = await shop(scratch);
  const { resourceVersion } = await client.list(kind);
  const stop = new AbortController();
  const events = client
    .watch(kind, { resourceVersion, signal: stop.signal, fieldSelector: 'spec.packageName=shop' })
    [Symbol.asyncIterator]();
  await draft(store, 'web');
  const written = await write((files) => ({ ...files, 'a.yaml': 'a: 1\n' }));
  expect(await events.next()).toEqual({ done: false, value: { type: 'MODIFIED', object: written } });
  await store.update(name, { action: 'delete' }, anna);
  expect(await events.next()).toMatchObject({ value: { type: 'DELETED', object: { metadata: { name } } } });
  stop.abort();
  expect(await events.next()).toMatchObject({ done: true });
});

describe('files that cannot be rendered', () => {
  const failure = 'validator "kubeconform" failed: a.yaml: data must be an object';
  const broken: Rendering = {
    kptfile: [],
    conditions: [{ type: 'Rendered', status: 'False', reason: 'RenderFailed', message: failure }],
    failure,
    renderStatus: { errorSummary: failure },
  };
  const pipeline = 'pipeline:\n  validators:\n    - image: kubeconform:v0.1.1\n';

  async function push(scratch: Scratch, annotations: Record<string, string> = {}) {
    const { client, store } = await packageKinds(scratch, { renderer: { render: async () => broken } });
    await draft(store);
    await store.change(name, { metadata: { annotations } }, anna);
    const { commit } = store.get(name);
    const files = await client.get(kind, { name });
    const resources = { ...files.spec.resources, Kptfile: `${KPTFILE}${pipeline}`, 'a.yaml': 'data: 5\n' };
    const outcome = await outcomeOf(client.update(kind, { ...files, spec: { ...files.spec, resources } }));
    return { store, outcome, saved: store.get(name).commit !== commit };
  }

  test('are not saved, in the words of Porch', async () => {
    await using scratch = await scratchRepository();
    const { outcome, saved } = await push(scratch);
    expect(outcome).toBe(
      `RenderFailed: error rendering package in kpt function pipeline. Package NOT pushed to remote. Fix locally (until 'kpt fn render' succeeds) and retry. Details: ${failure}`,
    );
    expect(saved).toBe(false);
  });

  test('are saved with an annotation, and then neither proposed nor approved', async () => {
    await using scratch = await scratchRepository();
    const { store, outcome, saved } = await push(scratch, { 'porch.kpt.dev/push-on-render-failure': 'true' });
    expect(outcome).toBe(
      `RenderFailed: error rendering package in kpt function pipeline. Package pushed to remote despite render failure. Details: ${failure}`,
    );
    expect(saved).toBe(true);
    expect(await outcomeOf(store.update(name, { action: 'propose' }, anna))).toMatch(
      /^Refused: gate Rendered is closed .*RenderFailed: validator "kubeconform" failed/,
    );
  });
});
