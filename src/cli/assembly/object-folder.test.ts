import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../foundation/clock.ts';
import { EventLog } from '../../resource/event-log.ts';
import type { Kind } from '../../resource/kind.ts';
import { packagePolicyKind } from '../../resource/kinds/package-policy.ts';
import { repositoryKind } from '../../resource/kinds/repository.ts';
import { secretKind } from '../../resource/kinds/secret.ts';
import { Registry } from '../../resource/registry.ts';
import { RegistryClient } from '../../resource/registry-client.ts';
import { describeStorage } from '../../resource/storage.conformance.ts';
import { type Widget, widgetKind } from '../../resource/testing.ts';
import { FileStorage } from './file-storage.ts';
import { ObjectFolder } from './object-folder.ts';

let top = '';
let count = 0;
const freshRoot = () => join(top, `objects-${count++}`);

beforeAll(async () => {
  top = await mkdtemp(join(tmpdir(), 'sluice-objects-'));
});
afterAll(() => rm(top, { recursive: true, force: true }));

/** A process that works on a folder, as far as objects are concerned. */
async function open(root: string) {
  const log = new EventLog({ clock: systemClock });
  const kinds: readonly Kind[] = [repositoryKind, secretKind, packagePolicyKind] as never;
  const folder = await ObjectFolder.open({ root, kinds, clock: systemClock, log });
  const registry = new Registry();
  for (const storage of folder.storages()) registry.register(storage);
  return { folder, client: new RegistryClient(registry, { name: 'anna' }, 'cli') };
}

const repository = (name: string) => ({ metadata: { name }, spec: { git: { repo: `/srv/${name}.git` } } });
const fileOf = (root: string, name: string) =>
  join(root, 'repositories.config.porch.kpt.dev', 'default', `${name}.yaml`);

describeStorage('FileStorage', { finalizers: true }, async () => {
  const log = new EventLog({ clock: systemClock, window: 20 });
  const root = freshRoot();
  const storage = new FileStorage<Widget>(widgetKind, {
    ...{ clock: systemClock, log, root },
    exclusive: (section) => section(),
  });
  const widget = (name: string): Widget =>
    widgetKind.complete({ metadata: { name, namespace: 'default' }, spec: { size: 1 } });
  return {
    storage,
    sample: (index) => widget(`widget-${index}`),
    changeSpec: (object) => ({ ...object, spec: { ...object.spec, size: object.spec.size + 1 } }),
    changeStatus: (object) => ({ ...object, status: { ready: object.status?.ready !== true } }),
    async overflow() {
      const context = { actor: { name: 'test' }, face: 'api' } as const;
      for (let round = 0; round < 40; round += 1) await storage.create(context, widget(`filler-${round}`));
    },
  };
});

describe('objects folder', () => {
  test('what was written is there after a restart, the status excepted', async () => {
    const root = freshRoot();
    const first = await open(root);
    const made = await first.client.create(repositoryKind, repository('blueprints'));
    await first.client.updateStatus(repositoryKind, { ...made, status: { packageCount: 3 } });
    const second = await open(root);
    const found = await second.client.get(repositoryKind, { name: 'blueprints' });
    expect(found.spec).toEqual(made.spec);
    expect(found.status).toBeUndefined();
    expect(found.metadata.uid).toBe(made.metadata.uid);
    expect(found.metadata.creationTimestamp).toBe(made.metadata.creationTimestamp);
    await second.client.delete(repositoryKind, { name: 'blueprints' });
    await first.folder.refresh();
    expect(await first.client.find(repositoryKind, { name: 'blueprints' })).toBeUndefined();
  });

  test('files are for their owner only', async () => {
    const root = freshRoot();
    const { client } = await open(root);
    await client.create(secretKind, { metadata: { name: 'token' }, stringData: { password: 's3cret' } });
    const path = join(root, 'secrets', 'default', 'token.yaml');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readFile(path, 'utf8')).not.toContain('s3cret');
  });

  test('two processes see each other: one name is taken once, an update of an old state is a conflict', async () => {
    const root = freshRoot();
    const [one, two] = [await open(root), await open(root)];
    const made = await one.client.create(repositoryKind, repository('a'));
    await expect(two.client.create(repositoryKind, repository('a'))).rejects.toMatchObject({ code: 'AlreadyExists' });
    const seen = await two.client.get(repositoryKind, { name: 'a' });
    await one.client.update(repositoryKind, { ...made, spec: { ...made.spec, description: 'of one' } });
    const late = { ...seen, spec: { ...seen.spec, description: 'of two' } };
    await expect(two.client.update(repositoryKind, late)).rejects.toMatchObject({ code: 'Conflict' });
    expect((await two.client.get(repositoryKind, { name: 'a' })).spec.description).toBe('of one');
    await two.client.patch(repositoryKind, { name: 'a' }, { metadata: { labels: { x: 'y' } } });
    await one.folder.refresh();
    const merged = await one.client.get(repositoryKind, { name: 'a' });
    expect([merged.spec.description, merged.metadata.labels]).toEqual(['of one', { x: 'y' }]);
  });

  test('of many writes at once none is lost', async () => {
    const root = freshRoot();
    const processes = await Promise.all([open(root), open(root), open(root)]);
    await processes[0]?.client.create(repositoryKind, repository('a'));
    for (const { folder } of processes) await folder.refresh();
    await Promise.all(
      processes.flatMap(({ client }, process) =>
        [0, 1, 2].map((round) =>
          client.patch(repositoryKind, { name: 'a' }, { metadata: { labels: { [`p${process}-${round}`]: 'x' } } }),
        ),
      ),
    );
    const { client } = await open(root);
    expect(Object.keys((await client.get(repositoryKind, { name: 'a' })).metadata.labels ?? {})).toHaveLength(9);
  });

  test('a file by hand is taken in, and its change, and its end', async () => {
    const root = freshRoot();
    const { client, folder } = await open(root);
    await mkdir(join(fileOf(root, 'x'), '..'), { recursive: true });
    const text = (description: string) =>
      `apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {name: by-hand, namespace: default}\nspec: {description: ${description}, git: {repo: /srv/x.git}}\n`;
    await writeFile(fileOf(root, 'by-hand'), text('one'));
    await folder.refresh();
    const { uid } = (await client.get(repositoryKind, { name: 'by-hand' })).metadata;
    await writeFile(fileOf(root, 'by-hand'), text('changed'));
    await folder.refresh();
    const changed = await client.get(repositoryKind, { name: 'by-hand' });
    expect([changed.spec.description, changed.metadata.uid]).toEqual(['changed', uid]);
    await rm(fileOf(root, 'by-hand'));
    await folder.refresh();
    expect(await client.find(repositoryKind, { name: 'by-hand' })).toBeUndefined();
  });

  test('a damaged file is told with its line and stays; the object stays as it last was', async () => {
    const root = freshRoot();
    const { client, folder } = await open(root);
    await client.create(repositoryKind, repository('a'));
    await client.create(repositoryKind, repository('b'));
    const damaged = 'apiVersion: config.porch.kpt.dev/v1alpha1\nkind: Repository\nmetadata: {name: a}\nspec: {git: [\n';
    await writeFile(fileOf(root, 'a'), damaged);
    await folder.refresh();
    expect(folder.problems().map(({ message }) => message)).toEqual([expect.stringMatching(/a\.yaml:\d+:\d+: /)]);
    expect((await client.get(repositoryKind, { name: 'a' })).spec.git?.repo).toBe('/srv/a.git');
    const write = client.patch(repositoryKind, { name: 'a' }, { spec: { description: 'x' } });
    await expect(write).rejects.toMatchObject({
      code: 'Corrupt',
      message: expect.stringContaining('repair or remove'),
    });
    expect(await readFile(fileOf(root, 'a'), 'utf8')).toBe(damaged);
    const later = await open(root);
    expect((await later.client.list(repositoryKind)).items.map(({ metadata }) => metadata.name)).toEqual(['b']);
    expect(later.folder.problems()).toHaveLength(1);
  });

  test('what is no object of that place is told and passed over', async () => {
    const root = freshRoot();
    const { client } = await open(root);
    await client.create(repositoryKind, repository('a'));
    const text = await readFile(fileOf(root, 'a'), 'utf8');
    await writeFile(fileOf(root, 'other-name'), text);
    await writeFile(
      fileOf(root, 'unknown'),
      text.replace('name: a', 'name: unknown').replace('spec:', 'spec:\n  gti: 1'),
    );
    await writeFile(fileOf(root, 'Big Name'), text);
    await mkdir(fileOf(root, 'folder'));
    await writeFile(fileOf(root, 'bomb'), `a: &a [x, x]\n${'b: [*a, *a, *a, *a]\n'.repeat(1)}`);
    const { folder, client: again } = await open(root);
    expect((await again.list(repositoryKind)).items).toHaveLength(1);
    expect(folder.problems().map(({ message }) => message)).toEqual([
      expect.stringContaining('Big Name'),
      expect.stringContaining('bomb.yaml'),
      expect.stringContaining('is not a file'),
      expect.stringContaining('which is not the name of the file'),
      expect.stringMatching(/unknown\.yaml:\d+:\d+: spec\.gti: unknown field/),
    ]);
  });

  test('leftovers of a killed process are removed, a link in place of the folder is not followed out', async () => {
    const root = freshRoot();
    const { folder, client } = await open(root);
    await client.create(repositoryKind, repository('a'));
    const place = join(fileOf(root, 'a'), '..');
    await writeFile(join(place, '.tmp-123'), 'half');
    await folder.removeLeftovers();
    expect(await readdir(place)).toEqual(['a.yaml']);
    await symlink('/etc', join(root, 'secrets'));
    expect((await open(root)).folder.problems()).toEqual([]);
  });

  test('a write that fails leaves everything as it was', async () => {
    const root = freshRoot();
    const { client } = await open(root);
    const long = `a${'b'.repeat(244)}`;
    await expect(client.create(secretKind, { metadata: { name: long } })).rejects.toMatchObject({
      code: 'InvalidInput',
    });
    expect(await client.find(secretKind, { name: long })).toBeUndefined();
  });
});
