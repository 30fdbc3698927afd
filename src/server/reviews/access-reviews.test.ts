import { expect, test } from 'vitest';
import { authorizerOf, binding, clusterRole, user } from '../authorization/testing.ts';
import { accessReviews } from './access-reviews.ts';
import { selfSubjectReview, tokenReview } from './identity-reviews.ts';
import { rulesReview } from './rules-review.ts';

const { authorizer } = authorizerOf(
  clusterRole('reader', [
    { verbs: ['get'], apiGroups: [''], resources: ['configmaps'] },
    { verbs: ['get'], nonResourceURLs: ['/metrics'] },
  ]),
  binding('', 'readers', 'ClusterRole/reader', { kind: 'User', name: 'anna' }),
  binding('a', 'group', 'ClusterRole/reader', { kind: 'Group', name: 'ops' }),
);
const reviews = new Map(
  [
    ...accessReviews(authorizer),
    rulesReview(authorizer),
    selfSubjectReview,
    tokenReview((token) => (token === 'good' ? anna : undefined)),
  ].map((review) => [review.resource, review]),
);
const anna = { ...user('anna', 'dev'), uid: 'u1', extra: { team: ['red'] } };
const bob = user('bob');

async function review(resource: string, spec: unknown, who = bob, namespace = ''): Promise<unknown> {
  return await reviews.get(resource)?.answer(who, spec === undefined ? {} : { spec }, namespace);
}

const configmaps = { verb: 'get', resource: 'configmaps', namespace: 'a' };

test('users review their own rights', async () => {
  expect(await review('selfsubjectaccessreviews', { resourceAttributes: configmaps }, anna)).toMatchObject({
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SelfSubjectAccessReview',
    spec: { resourceAttributes: configmaps },
    status: { allowed: true, reason: expect.stringContaining('ClusterRoleBinding "readers"') },
  });
  expect(await review('selfsubjectaccessreviews', { resourceAttributes: configmaps })).toMatchObject({
    status: { allowed: false },
  });
  const metrics = { nonResourceAttributes: { verb: 'get', path: '/metrics' } };
  expect(await review('selfsubjectaccessreviews', metrics, anna)).toMatchObject({ status: { allowed: true } });
  expect(await review('selfsubjectaccessreviews', metrics)).toMatchObject({ status: { allowed: false } });
});

test('nulls and missing fields are empty, as clients in Go send them', async () => {
  const spec = { resourceAttributes: { ...configmaps, namespace: null, group: null }, nonResourceAttributes: null };
  expect(await review('selfsubjectaccessreviews', spec, anna)).toMatchObject({ status: { allowed: true } });
});

test('a review of another user has exactly the groups that it names', async () => {
  const about = (spec: object) => review('subjectaccessreviews', { resourceAttributes: configmaps, ...spec });
  expect(await about({ user: 'anna' })).toMatchObject({ status: { allowed: true } });
  expect(await about({ groups: ['ops'] })).toMatchObject({ status: { allowed: true } });
  expect(await about({ user: 'carl', groups: ['dev'], extra: { a: ['b'] } })).toMatchObject({
    status: { allowed: false },
  });
});

test('a local review is about its namespace', async () => {
  const about = (spec: object, namespace: string) => review('localsubjectaccessreviews', spec, bob, namespace);
  const spec = { user: 'anna', resourceAttributes: configmaps };
  expect(await about(spec, 'a')).toMatchObject({ status: { allowed: true } });
  await expect(about(spec, 'b')).rejects.toThrow('must match metadata.namespace');
  await expect(about({ user: 'anna', nonResourceAttributes: { path: '/' } }, 'a')).rejects.toThrow('disallowed');
});

test.each<[string, string, unknown, string]>([
  ['no spec', 'selfsubjectaccessreviews', undefined, 'spec'],
  ['no question', 'selfsubjectaccessreviews', {}, 'exactly one of'],
  [
    'two questions',
    'selfsubjectaccessreviews',
    { resourceAttributes: {}, nonResourceAttributes: {} },
    'in combination',
  ],
  ['no user', 'subjectaccessreviews', { resourceAttributes: {} }, 'at least one of user or group'],
  ['a list for a text', 'subjectaccessreviews', { user: ['a'], resourceAttributes: {} }, 'spec.user'],
  [
    'a text that is too long',
    'selfsubjectaccessreviews',
    { resourceAttributes: { name: 'x'.repeat(5000) } },
    'spec.resourceAttributes.name',
  ],
  [
    'too many groups',
    'subjectaccessreviews',
    { groups: Array.from({ length: 1001 }, () => 'g'), resourceAttributes: {} },
    'spec.groups',
  ],
  ['no namespace for rules', 'selfsubjectrulesreviews', {}, 'namespace'],
])('%s is refused', async (_name, resource, spec, message) => {
  await expect(review(resource, spec)).rejects.toThrow(message);
});

test('a body of another kind is refused', () => {
  const review = reviews.get('selfsubjectreviews');
  expect(() => review?.answer(bob, { kind: 'TokenReview' }, '')).toThrow('kind');
  expect(() => review?.answer(bob, null, '')).toThrow('expected object');
});

test('rules are those of the user in the namespace', async () => {
  const group = user('carl', 'ops');
  expect(await review('selfsubjectrulesreviews', { namespace: 'a' }, group)).toMatchObject({
    status: {
      resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['configmaps'] }],
      nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/metrics'] }],
      incomplete: false,
    },
  });
  expect(await review('selfsubjectrulesreviews', { namespace: 'b' }, group)).toMatchObject({
    status: { resourceRules: [], nonResourceRules: [] },
  });
});

test('who one is', async () => {
  expect(await review('selfsubjectreviews', undefined, anna)).toEqual({
    apiVersion: 'authentication.k8s.io/v1',
    kind: 'SelfSubjectReview',
    metadata: {},
    status: { userInfo: { username: 'anna', uid: 'u1', groups: ['dev'], extra: { team: ['red'] } } },
  });
});

test('whose token it is, without telling the token', async () => {
  const good = await review('tokenreviews', { token: 'good', audiences: ['api'] });
  expect(good).toMatchObject({
    status: { authenticated: true, user: { username: 'anna', groups: ['dev', 'system:authenticated'] } },
  });
  expect(JSON.stringify(good)).not.toContain('good');
  expect(await review('tokenreviews', { token: 'bad' })).toMatchObject({ status: { authenticated: false } });
  const error = await review('tokenreviews', { token: ['hidden-token'] }).catch((caught: Error) => caught.message);
  expect(error).toContain('spec.token');
  expect(error).not.toContain('hidden-token');
});
