import { chmodSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ControllerOptions } from '../../src/controller/controller.ts';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { findCondition } from '../../src/resource/object/condition.ts';
import { type Fixture, fixture } from '../support/fixture.ts';
import { git } from '../support/git/git-cli.ts';
import { repositoryControllerOf } from '../support/repository-controller.ts';

const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\n';
const CONTEXT = { signal: new AbortController().signal, failures: 0 };

let clock: ManualClock;
let world: Fixture;
let path: string;
let controller: ControllerOptions;
beforeEach(async () => {
  clock = new ManualClock();
  world = await fixture(clock);
  path = await world.bare('apps');
  await world.push(path, {
    'one/Kptfile': KPTFILE,
    'one/a.yaml': 'a: 1\n',
    'two/Kptfile': `${KPTFILE}#`,
    'two/b.yaml': 'b: 1\n',
  });
  await world.client.create(repositoryKind, { metadata: { name: 'apps' }, spec: { git: { repo: path } } });
  controller = repositoryControllerOf(world);
  await reconcile();
});
afterEach(() => world[Symbol.asyncDispose]());

const reconcile = () => {
  clock.advance(2000);
  return controller.reconcile({ namespace: 'default', name: 'apps' }, CONTEXT);
};
const contentOf = (name: string) => world.store.content(`apps.${name}.main`);
/** The file of an object; nothing is packed here. */
function looseFile(specification: string): string {
  const oid = git(path, ['rev-parse', specification]);
  const file = join(path, 'objects', oid.slice(0, 2), oid.slice(2));
  chmodSync(file, 0o644);
  return file;
}

test('an unreadable object of a repository without a remote is named with the next step, and all others can be used', async () => {
  const oid = git(path, ['rev-parse', 'main:one/a.yaml']);
  truncateSync(looseFile('main:one/a.yaml'), 5);
  await expect(contentOf('one')).rejects.toMatchObject({ code: 'Corrupt' });
  await expect(contentOf('one')).rejects.toThrow(/^apps\.one\.main: .*git fetch --refetch/s);
  await expect(contentOf('one')).rejects.toThrow(oid);
  expect((await contentOf('two')).files.has('b.yaml')).toBe(true);
  await world.push(path, { 'three/Kptfile': KPTFILE }, 'drafts/three/w1', 'refs/heads/main');
  await reconcile();
  expect(world.store.get('apps.three.w1').lifecycle).toBe('Draft');
  const { status } = await world.client.get(repositoryKind, { name: 'apps' });
  expect(findCondition(status?.conditions, 'Ready')?.status).toBe('True');
});

test('a ref whose object is missing removes no revision', async () => {
  const names = () => world.store.list().map(({ name }) => name);
  const before = names();
  rmSync(join(path, 'objects'), { recursive: true });
  await expect(world.store.content('apps.one.main')).rejects.toMatchObject({ code: 'Corrupt' });
  await reconcile();
  expect(names()).toEqual(before);
});
