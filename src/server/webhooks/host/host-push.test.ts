import { expect, test } from 'vitest';
import { hostPushIn } from './host-push.ts';

const BEFORE = 'b'.repeat(40);
const AFTER = 'a'.repeat(40);
const ZERO = '0'.repeat(40);
const update = { ref: 'refs/heads/drafts/app/v1', before: BEFORE, after: AFTER };
const push = { ref: 'refs/heads/drafts/app/v1', before: BEFORE, after: AFTER };

/** Of all kinds; whether each is right was verified before. */
const SIGNATURES = {
  ...{ 'x-hub-signature-256': '1', 'x-gitea-signature': '1', 'x-forgejo-signature': '1', 'x-gogs-signature': '1' },
  ...{ 'x-gitlab-token': '1', 'x-sluice-signature': '1' },
};

function read(headers: Record<string, string>, body: unknown): ReturnType<typeof hostPushIn> {
  return hostPushIn({ ...SIGNATURES, ...headers }, Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)));
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
  expect(hostPushIn({ ...SIGNATURES, 'x-github-event': 'push' }, undefined)).toBeUndefined();
});

test.each([
  ['x-github-event', 'push', github, ['x-hub-signature-256']],
  ['x-gitea-event', 'push', gitea, ['x-gitea-signature']],
  ['x-forgejo-event', 'push', gitea, ['x-forgejo-signature']],
  ['x-gogs-event', 'push', gogs, ['x-gogs-signature']],
  ['x-gitlab-event', 'Push Hook', gitlab, ['x-gitlab-token', 'webhook-signature']],
  ['', '', { ...update, host_user: 'octo' }, ['x-sluice-signature', 'webhook-signature']],
])('the form of %s counts only with a signature that its sender sends', (header, event, body, own) => {
  for (const signature of [...Object.keys(SIGNATURES), 'webhook-signature']) {
    const headers = { ...(header === '' ? {} : { [header]: event }), [signature]: '1' };
    const push = hostPushIn(headers, Buffer.from(JSON.stringify(body)));
    expect([signature, push?.user]).toEqual([signature, own.includes(signature) ? 'octo' : undefined]);
  }
});
