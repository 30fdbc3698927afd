import { afterAll, beforeAll, expect, test } from 'vitest';
import { kptfile, TrustWorld } from './support/trust-world.ts';

let world: TrustWorld;
beforeAll(async () => {
  world = await TrustWorld.start();
  await world.register('apps');
});
afterAll(() => world.end());

const UNGATED = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: shop\n';

/** A revision that was proposed in order, with its gate open; eve has it. */
async function proposed(name: string): Promise<string> {
  const revision = await world.gated('apps', name);
  await world.ok('rpkg', 'condition', 'set', revision, 'tested', 'True');
  await world.ok('rpkg', 'propose', revision);
  world.fetch('apps');
  return revision;
}

/** Eve changes what is proposed; it stays proposed, and is not approved. */
async function expectNotApproved(
  revision: string,
  name: string,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const tip = world.edit('apps', `refs/all/heads/proposed/${name}/v1`, files);
  await world.push('apps', `${tip}:refs/heads/proposed/${name}/v1`);
  const text = await world.refused('rpkg', 'approve', revision, '--as', 'bob');
  expect((await world.revision(revision)).spec.lifecycle).toBe('Proposed');
  expect(await world.why(revision)).toContain('Gates: 0 of 1 open');
  expect(await world.why(revision)).toContain('an unknown user (git push)');
  return text;
}

test('a proposal that a push gives other content and a False condition is not approved', async () => {
  const revision = await proposed('other');
  const text = await expectNotApproved(revision, 'other', {
    'other/Kptfile': kptfile('other', 'False'),
    'other/evil.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: evil\n',
  });
  expect(text).toContain('tested');
});

test('a proposal whose gate a push removes still has it', async () => {
  const revision = await proposed('ungated');
  const text = await expectNotApproved(revision, 'ungated', {
    'ungated/Kptfile': UNGATED,
    'ungated/evil.yaml': '# x\n',
  });
  expect(text).toContain('tested');
});

test('a condition that a push sets to True does not count for its content', async () => {
  const revision = await proposed('again');
  const text = await expectNotApproved(revision, 'again', {
    'again/Kptfile': kptfile('again', 'True'),
    'again/evil.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: evil\n',
  });
  expect(text).toContain('tested');
});

test('a draft that is pushed as a proposal passed no gate, and the approval requires them', async () => {
  const tip = world.edit('apps', 'origin/main', { 'direct/Kptfile': kptfile('direct', 'True') });
  await world.push('apps', `${tip}:refs/heads/proposed/direct/v1`);
  expect(await world.refused('rpkg', 'approve', 'apps.direct.v1', '--as', 'bob')).toContain('tested');
  expect((await world.revision('apps.direct.v1')).spec.lifecycle).toBe('Proposed');
});

test('an approval that does not name the pushed commit applies to the proposed content', async () => {
  await world.ok('rpkg', 'init', 'plain', '--repository', 'apps', '--workspace', 'v1');
  await world.ok('rpkg', 'propose', 'apps.plain.v1');
  world.fetch('apps');
  const tip = world.edit('apps', 'refs/all/heads/proposed/plain/v1', { 'plain/evil.yaml': '# evil\n' });
  await world.push('apps', `${tip}:refs/heads/proposed/plain/v1`);
  const text = await world.refused('rpkg', 'approve', 'apps.plain.v1', '--as', 'bob');
  expect(text).toContain('a push changed it after it was proposed');
  expect(text).toContain('(evil.yaml)');
  expect((await world.revision('apps.plain.v1')).spec.lifecycle).toBe('Proposed');
  expect(await world.why('apps.plain.v1')).toContain(`rpkg approve apps.plain.v1 --commit ${tip}`);
  await world.ok('rpkg', 'approve', 'apps.plain.v1', '--as', 'bob', '--commit', tip);
});
