import { expect, test } from 'vitest';
import { type Repository, repositoryKind } from '../../resource/kinds/porch/repository.ts';
import type { Stored } from '../../resource/object/object.ts';
import { planRepository, shownAddress, withoutPasswords } from './plan-repository.ts';

function repository(name: string, spec: object, metadata: object = {}): Stored<Repository> {
  const server = { uid: `uid-${name}`, resourceVersion: '1', creationTimestamp: '2026-01-01T00:00:00Z' };
  const object = { metadata: { name, namespace: 'team', ...server, ...metadata }, spec };
  return { ...repositoryKind.complete(object as never), metadata: object.metadata } as Stored<Repository>;
}
const ofGit = (name: string, git: object = {}, metadata: object = {}) =>
  repository(name, { type: 'git', git: { repo: 'https://git.example.com/apps.git', ...git } }, metadata);

test('registers what Sluice does not have, without what belongs to the cluster of Porch', async () => {
  const given = ofGit(
    'apps',
    { secretRef: { name: '' } },
    {
      labels: { team: 'a' },
      annotations: { 'porch.kpt.dev/v1alpha2-migration': 'true', note: 'x' },
      finalizers: ['config.porch.kpt.dev/repository'],
      ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'c', uid: 'c' }],
    },
  );
  const { action, object } = await planRepository(given, []);
  expect(action).toBe('register');
  expect(object?.metadata).toEqual({
    name: 'apps',
    namespace: 'team',
    labels: { team: 'a' },
    annotations: { note: 'x' },
  });
});

test('a repository that Sluice has is present, also after a requested synchronisation', async () => {
  const existing = repository('apps', { ...ofGit('apps').spec, sync: { runOnceAt: '2026-01-01T00:00:00Z' } });
  expect(await planRepository(ofGit('apps'), [existing])).toMatchObject({ action: 'present' });
});

test('another repository of the same name is a conflict that names the fields', async () => {
  const plan = await planRepository(ofGit('apps'), [ofGit('apps', { branch: 'other' })]);
  expect(plan).toMatchObject({ action: 'conflict', message: expect.stringContaining('spec.git.branch') });
  expect(plan.next).toContain('sluice repo unreg apps -n team');
});

test('packages that are registered under another name are not registered again', async () => {
  const plan = await planRepository(ofGit('apps'), [ofGit('more')]);
  expect(plan).toMatchObject({ action: 'blocked', message: expect.stringContaining('team/more') });
});

test('other types are blocked', async () => {
  const plan = await planRepository(repository('images', { type: 'oci', oci: { registry: 'r.example.com/p' } }), []);
  expect(plan).toMatchObject({ action: 'blocked', message: 'repositories of type oci are not supported' });
});

test('an address with a password is refused without printing the password', async () => {
  const repo = 'https://bot:pass-word@git.example.com/apps.git';
  const given = { ...ofGit('apps'), spec: { ...ofGit('apps').spec, git: { ...ofGit('apps').spec.git, repo } } };
  const plan = await planRepository(given as Stored<Repository>, []);
  expect(plan.action).toBe('blocked');
  expect(JSON.stringify(plan)).not.toContain('pass-word');
  expect(shownAddress(given as Stored<Repository>)).toBe('https://***@git.example.com/apps.git');
  expect(withoutPasswords('https://bot:pa/ss@host/x failed')).toBe('https://***@host/x failed');
  expect(shownAddress(ofGit('apps', { repo: 'ssh://git@host/x.git' }))).toBe('ssh://git@host/x.git');
  expect(withoutPasswords('GET "http://a:b%40c@h/x" failed')).toBe('GET "http://***@h/x" failed');
});

test.each([
  ['https://h/x.git?private_token=SECRET', 'https://h/x.git?***'],
  ['https://h/x.git#SECRET', 'https://h/x.git#***'],
  ['https://u:pa SECRET@h/x', 'https://***@h/x'],
  ['https:/u:SECRET@h/x', 'https:/***@h/x'],
  ['https:u:SECRET@h/x', 'https:***@h/x'],
  ['https:\\\\u:SECRET@h/x', 'https:\\\\***@h/x'],
  ['u:SECRET@h:x', '***@h:x'],
  ['SECRET:x-oauth-basic@h/x', '***@h/x'],
  ['https://bot:pa/SECRET@host/x', 'https://***@host/x'],
  ['https://SECRET@h/x', 'https://***@h/x'],
  ['ssh://git:SECRET@h/x', 'ssh://***@h/x'],
  ['ssh://git@h:22/x.git', 'ssh://git@h:22/x.git'],
  ['git@h:team/x.git', 'git@h:team/x.git'],
  ['https://h/team/x@v1', 'https://h/team/x@v1'],
  ['/srv/git/x@v1', '/srv/git/x@v1'],
])('the address %s is printed as %s, also in a message', (repo, shown) => {
  const valid = ofGit('apps');
  const given = { ...valid, spec: { ...valid.spec, git: { ...valid.spec.git, repo } } } as Stored<Repository>;
  expect(shownAddress(given)).toBe(shown);
  expect(withoutPasswords(`cannot read ${repo} now`, given)).not.toContain('SECRET');
});
