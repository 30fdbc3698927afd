import { expect, test } from 'vitest';
import { hostPushIn } from './host-push.ts';

const BEFORE = 'b'.repeat(40);
const AFTER = 'a'.repeat(40);
const ZERO = '0'.repeat(40);
const update = { ref: 'refs/heads/drafts/app/v1', before: BEFORE, after: AFTER };
const push = { ref: 'refs/heads/drafts/app/v1', before: BEFORE, after: AFTER };

function read(headers: Record<string, string>, body: unknown): ReturnType<typeof hostPushIn> {
  return hostPushIn(headers, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)));
}

const github = {
  ...update,
  pusher: { name: 'display name', email: 'x@y' },
  sender: { login: 'octo', id: 1 },
  repository: { full_name: 'team/apps' },
};
const gitea = { ...github, pusher: { login: 'octo', username: 'octo' }, sender: { login: 'owner' } };
const gogs = { ...github, pusher: { username: 'octo' } };
const gitlab = {
  ...update,
  object_kind: 'push',
  user_username: 'octo',
  user_name: 'display name',
  project: { path_with_namespace: 'team/apps' },
};

test.each([
  ['github', { 'x-github-event': 'push' }, github],
  ['gitea', { 'x-gitea-event': 'push', 'x-gogs-event': 'push', 'x-github-event': 'push' }, gitea],
  ['forgejo', { 'x-forgejo-event': 'push', 'x-gitea-event': 'push', 'x-github-event': 'push' }, gitea],
  ['gogs', { 'x-gogs-event': 'push', 'x-github-event': 'push' }, gogs],
  ['gitlab', { 'x-gitlab-event': 'Push Hook' }, gitlab],
])('%s names the account that pushed', (provider, headers, body) => {
  expect(read(headers, body)).toEqual({ provider, user: 'octo', repository: 'team/apps', ...push });
});

test('a hook of a server of its own names it in a field of its own', () => {
  expect(read({}, { ...update, host_user: 'octo' })).toEqual({
    provider: 'own',
    user: 'octo',
    repository: undefined,
    ...push,
  });
  expect(read({}, { ...update, user: 'octo' })).toBeUndefined();
});

test('a new branch has no commit before it', () => {
  expect(read({ 'x-github-event': 'push' }, { ...github, before: ZERO })).toMatchObject({ before: undefined });
});

test.each([
  ['another event', { 'x-github-event': 'create' }, github],
  ['a system hook, which speaks of all projects', { 'x-gitlab-event': 'System Hook' }, gitlab],
  ['a branch that was deleted', { 'x-github-event': 'push' }, { ...github, after: ZERO }],
  ['a tag', { 'x-github-event': 'push' }, { ...github, ref: 'refs/tags/app/v1' }],
  ['no commit', { 'x-github-event': 'push' }, { ...github, after: 'main' }],
  ['no account', { 'x-github-event': 'push' }, { ...github, sender: {} }],
  ['a name with a line break', { 'x-github-event': 'push' }, { ...github, sender: { login: 'a\nb' } }],
  ['a name with an invisible character', { 'x-github-event': 'push' }, { ...github, sender: { login: 'oc\u200bto' } }],
  ['a name that is too long', { 'x-github-event': 'push' }, { ...github, sender: { login: 'a'.repeat(300) } }],
  ['no repository', { 'x-github-event': 'push' }, { ...github, repository: {} }],
  [
    'the field of a server of its own in the message of a host',
    { 'x-github-event': 'push' },
    { ...update, host_user: 'octo' },
  ],
  ['a form', { 'x-github-event': 'push' }, 'payload=%7B%7D'],
  ['a list', { 'x-github-event': 'push' }, []],
])('%s names no user', (_what, headers, body) => {
  expect(read(headers, body)).toBeUndefined();
});

test('a body that was too long to be kept names no user', () => {
  expect(hostPushIn({ 'x-github-event': 'push' }, undefined)).toBeUndefined();
});
