import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Fixture, fixture } from '../../../test/support/fixture.ts';
import type { PackageRevision } from '../model/revision/package-revision.ts';
import { UpstreamReferences } from './upstream-references.ts';

let world: Fixture;
let path: string;
beforeEach(async () => {
  world = await fixture();
  path = await world.register('apps');
});
afterEach(() => world[Symbol.asyncDispose]());

const kptfile = (directory: string, ref = 'base/v1') =>
  `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\nupstream:\n  type: git\n  git:\n    repo: ${path}\n    directory: ${directory}\n    ref: ${ref}\n`;
const dependents = (name: string) => world.store.dependentsOf(world.store.get(name));

test('revisions of an upstream are found as they are created, changed and deleted', async () => {
  const { name: base } = await world.draft('apps/base/v1');
  await world.publish(base);
  expect(dependents(base)).toEqual([]);
  const push = async (files: Record<string, string | null>, branch: string) => {
    await world.push(path, files, branch, 'refs/heads/main');
    await world.store.repository('apps').refresh();
  };
  await push({ 'one/Kptfile': kptfile('/base/') }, 'drafts/one/w1');
  await push({ 'two/Kptfile': kptfile('base') }, 'drafts/two/w1');
  await push({ 'three/Kptfile': kptfile('elsewhere') }, 'drafts/three/w1');
  expect(dependents(base)).toEqual(['apps.one.w1', 'apps.two.w1']);
  await push({ 'one/Kptfile': kptfile('elsewhere') }, 'drafts/one/w1');
  await world.push(path, { 'three/Kptfile': kptfile('base') }, 'drafts/three/w1');
  await world.store.repository('apps').refresh();
  expect(dependents(base)).toEqual(['apps.three.w1', 'apps.two.w1']);
  const { git } = world.store.repository('apps');
  const old = (await git.resolveRef('refs/heads/drafts/two/w1')) ?? '';
  await git.transaction([{ type: 'delete', ref: 'refs/heads/drafts/two/w1', old }]);
  await world.store.repository('apps').refresh();
  expect(dependents(base)).toEqual(['apps.three.w1']);
  await world.store.remove('apps');
  expect(world.store.list()).toEqual([]);
});

test('every revision is read once, in the background or by the first caller', async () => {
  await world.push(path, { 'one/Kptfile': kptfile('base'), 'two/Kptfile': kptfile('base') });
  const { index } = world.store.repository('apps');
  await world.store.repository('apps').refresh();
  let reads = 0;
  const get = (name: string): PackageRevision | undefined => {
    reads += 1;
    return index.get(name);
  };
  const counted = new Proxy(index, {
    get: (real, name) => (name === 'get' ? get : (Reflect.get(real, name, real) as typeof index.all).bind(real)),
  });
  const references = new UpstreamReferences(counted);
  const reading = references.read();
  expect(references.to(path, 'base').map(({ name }) => name)).toEqual(['apps.one.main', 'apps.two.main']);
  await reading;
  const before = reads;
  expect(references.to(path, 'nothing')).toEqual([]);
  expect(reads).toBe(before);
});
