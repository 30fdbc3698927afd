import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ErrorCode, SluiceError } from '../foundation/sluice-error.ts';
import { systemClock } from '../foundation/time/clock.ts';
import { ManualClock } from '../foundation/time/manual-clock.ts';
import { withAuthenticatedGroup } from '../server/authentication/authenticator.ts';
import { TokenReviewAuthenticator } from '../server/authentication/token-review-authenticator.ts';
import { AccessReviewAuthorizer } from '../server/authorization/access-review-authorizer.ts';
import type { RequestAttributes } from '../server/authorization/authorizer.ts';
import { permission } from '../server/authorization/require-allowed.ts';
import { authorizerOf, binding, clusterRole } from '../server/authorization/testing.ts';
import { accessReviews } from '../server/reviews/access-reviews.ts';
import { tokenReview } from '../server/reviews/identity-reviews.ts';
import { startTestServer, type TestServer } from '../server/testing.ts';
import { clusterReviews } from './cluster-reviews.ts';
import { Connection } from './connection/connection.ts';
import { HttpClient } from './http-client.ts';
import { fixedAccess, sendStatus, WireServer } from './testing.ts';

const ANNA = { name: 'anna', uid: 'u-1', groups: ['dev'], extra: { scopes: ['a', 'b'] } };
const REVISIONS = { group: 'porch.kpt.dev', resource: 'packagerevisions', namespace: 'blue', name: 'web' };
const reader = [{ verbs: ['get'], apiGroups: ['porch.kpt.dev'], resources: ['packagerevisions'] }];
const approver = [{ verbs: ['update'], apiGroups: ['porch.kpt.dev'], resources: ['packagerevisions/approval'] }];

const withToken = (token: string) =>
  ({ headers: { authorization: `Bearer ${token}` } }) as Parameters<TokenReviewAuthenticator['authenticate']>[0];

describe('over the reviews of an API server', () => {
  let cluster: TestServer;
  let connection: Connection;
  let clock: ManualClock;
  let reviews: string[];
  let authenticator: TokenReviewAuthenticator;
  let authorizer: AccessReviewAuthorizer;
  const { index, authorizer: rbac } = authorizerOf(
    clusterRole('reader', reader),
    clusterRole('approver', approver),
    binding('blue', 'readers', 'ClusterRole/reader', { kind: 'Group', name: 'dev' }),
    binding('blue', 'approvers', 'ClusterRole/approver', { kind: 'User', name: 'otto' }),
  );

  beforeEach(async () => {
    clock = new ManualClock();
    reviews = [];
    const reviewed = [...accessReviews(rbac), tokenReview((token) => (token === 'good' ? ANNA : undefined))];
    cluster = await startTestServer({
      reviews: reviewed,
      onRequest: ({ resource, code }) => reviews.push(`${resource} ${code}`),
    });
    connection = new Connection(fixedAccess(cluster.listener.url, 'admin'));
    const reviewer = clusterReviews(new HttpClient({ connection, face: 'api' }));
    authenticator = new TokenReviewAuthenticator({ reviewer, clock });
    authorizer = new AccessReviewAuthorizer({ reviewer, clock });
  });
  afterEach(async () => {
    await connection.close();
    await cluster.stop();
  });

  test('a token proves its user for ten seconds, a wrong one is reviewed again after one', async () => {
    const anna = withAuthenticatedGroup(ANNA);
    const both = await Promise.all([1, 2].map(() => authenticator.authenticate(withToken('good'))));
    expect(both).toEqual([anna, anna]);
    clock.advance(9_999);
    expect(await authenticator.authenticate(withToken('good'))).toEqual(anna);
    expect(reviews).toEqual(['tokenreviews 201']);
    clock.advance(1);
    await authenticator.authenticate(withToken('good'));
    expect(reviews).toHaveLength(2);

    for (const ageMs of [999, 1, 0]) {
      expect(await authenticator.authenticate(withToken('bad'))).toBeUndefined();
      clock.advance(ageMs);
    }
    expect(reviews).toHaveLength(4);
    // Those that are no tokens are not sent anywhere.
    for (const header of [undefined, 'Basic YTpi', 'Bearer ', `Bearer ${'x'.repeat(16_385)}`])
      expect(await authenticator.authenticate({ headers: { authorization: header } } as never)).toBeUndefined();
    expect(reviews).toHaveLength(4);
  });

  test('a token without the audience of this server proves no user', async () => {
    const reviewer = clusterReviews(new HttpClient({ connection, face: 'api' }));
    const ours = new TokenReviewAuthenticator({ reviewer, clock, audiences: ['sluice'] });
    expect(await ours.authenticate(withToken('good'))).toBeUndefined();
  });

  test('the cluster decides, once in ten seconds for each kind of request', async () => {
    const get = (name: string, about: object = {}) =>
      authorizer.authorize(permission({ ...ANNA, name }, 'get', { ...REVISIONS, ...about }));
    for (let time = 0; time < 3; time += 1) expect(await get('anna')).toMatchObject({ allowed: true });
    expect(reviews).toEqual(['subjectaccessreviews 201']);
    expect(await get('anna', { namespace: 'red' })).toEqual({ allowed: false, reason: '' });
    expect(await get('anna', { namespace: 'red' })).toEqual({ allowed: false, reason: '' });
    expect(reviews).toHaveLength(2);

    const next = binding('red', 'readers', 'ClusterRole/reader', { kind: 'User', name: 'anna' });
    index.put('RoleBinding', next);
    clock.advance(9_999);
    expect(await get('anna', { namespace: 'red' })).toMatchObject({ allowed: false });
    clock.advance(1);
    expect(await get('anna', { namespace: 'red' })).toMatchObject({ allowed: true });
    index.remove('RoleBinding', next);
  });

  test('the right to approve is one on the sub-resource alone', async () => {
    const otto = { name: 'otto', groups: [] };
    const update = (subResource: string) =>
      authorizer.authorize(permission(otto, 'update', { ...REVISIONS, subResource }));
    expect(await update('approval')).toMatchObject({ allowed: true });
    expect(await update('')).toMatchObject({ allowed: false });
    expect(await update('status')).toMatchObject({ allowed: false });
  });

  test('administrators and health checks need no review', async () => {
    const root = { name: 'root', groups: ['system:masters'] };
    expect(await authorizer.authorize(permission(root, 'delete', REVISIONS))).toMatchObject({ allowed: true });
    const path = (text: string): RequestAttributes => ({
      ...permission(ANNA, 'get', {}),
      ...{ isResource: false, path: text },
    });
    for (const text of ['/healthz', '/livez', '/readyz'])
      expect(await authorizer.authorize(path(text))).toMatchObject({ allowed: true });
    expect(reviews).toEqual([]);
    expect(await authorizer.authorize(path('/readyz/other'))).toMatchObject({ allowed: false });
    expect(await authorizer.authorize({ ...path('/healthz'), isResource: true })).toMatchObject({ allowed: false });
    expect(reviews).toHaveLength(2);
  });
});

describe('over a server that misbehaves', () => {
  let server: WireServer;
  let connection: Connection;
  let authenticator: TokenReviewAuthenticator;
  let authorizer: AccessReviewAuthorizer;
  const decide = () => authorizer.authorize(permission(ANNA, 'get', REVISIONS));
  const token = withToken('secret-token');

  beforeEach(async () => {
    server = await new WireServer().start();
    connection = new Connection(server.access());
    const reviewer = clusterReviews(new HttpClient({ connection, face: 'api' }));
    // Without waiting between attempts.
    const clock = {
      ...systemClock,
      schedule: (ms: number, run: () => void) => systemClock.schedule(ms < 9000 ? 0 : ms, run),
    };
    authenticator = new TokenReviewAuthenticator({ reviewer, clock, audiences: ['sluice', 'other'] });
    authorizer = new AccessReviewAuthorizer({ reviewer, clock });
  });
  afterEach(async () => {
    await connection.close();
    await server.stop();
  });

  const respond = (status: unknown) => {
    server.handle = (_request, response) =>
      void response.setHeader('content-type', 'application/json').end(JSON.stringify({ kind: 'Review', status }));
  };

  test('reviews contain the selectors of the request, and another selector is another question', async () => {
    respond({ allowed: true });
    const list = permission(ANNA, 'list', REVISIONS);
    const selectors = (app: string) => ({
      labelSelector: { requirements: [{ key: 'app', operator: 'In' as const, values: [app] }] },
    });
    for (const app of ['a', 'b', 'a']) await authorizer.authorize({ ...list, selectors: selectors(app) });
    const sent = server.received.map(({ body }) => JSON.parse(body).spec.resourceAttributes);
    expect(sent).toMatchObject([selectors('a'), selectors('b')]);
  });

  test('reviews contain what the schema of Kubernetes names, and all of the user', async () => {
    respond({ authenticated: true, user: { username: 'anna' }, audiences: ['other'] });
    expect(await authenticator.authenticate(token)).toEqual({ name: 'anna', groups: [] });
    respond({ allowed: true });
    await decide();
    await authorizer.authorize({ ...permission(ANNA, 'get', {}), isResource: false, path: '/metrics' });
    expect(server.received.map(({ path, body }) => [path, JSON.parse(body) as unknown])).toEqual([
      [
        '/apis/authentication.k8s.io/v1/tokenreviews',
        {
          apiVersion: 'authentication.k8s.io/v1',
          kind: 'TokenReview',
          spec: { token: 'secret-token', audiences: ['sluice', 'other'] },
        },
      ],
      ...[
        {
          resourceAttributes: {
            ...{ verb: 'get', group: 'porch.kpt.dev', version: 'v1', resource: 'packagerevisions' },
            ...{ subresource: '', namespace: 'blue', name: 'web' },
          },
        },
        { nonResourceAttributes: { path: '/metrics', verb: 'get' } },
      ].map((attributes) => [
        '/apis/authorization.k8s.io/v1/subjectaccessreviews',
        {
          apiVersion: 'authorization.k8s.io/v1',
          kind: 'SubjectAccessReview',
          spec: { user: 'anna', uid: 'u-1', groups: ['dev'], extra: { scopes: ['a', 'b'] }, ...attributes },
        },
      ]),
    ]);
  });

  test.each([
    [{ authenticated: true, user: { username: '' }, audiences: ['sluice'] }],
    [{ authenticated: true, user: null, audiences: ['sluice'] }],
    [{ authenticated: true, user: { username: 'anna' }, audiences: ['elsewhere'] }],
    [{ authenticated: true, user: { username: 'anna' } }],
    [{ authenticated: false, user: { username: 'anna' }, audiences: ['sluice'] }],
    [{ user: {}, error: 'invalid bearer token' }],
  ])('%j proves no user', async (status) => {
    respond(status);
    expect(await authenticator.authenticate(token)).toBeUndefined();
  });

  test('what is both allowed and denied is denied', async () => {
    respond({ allowed: true, denied: true, reason: 'quarantine' });
    expect(await decide()).toEqual({ allowed: false, reason: 'quarantine' });
  });

  test.each([[undefined], [{}], [{ allowed: 'true', authenticated: 'true' }], ['yes']])(
    'the status %j is no decision',
    async (status) => {
      respond(status);
      await expect(decide()).rejects.toMatchObject({ code: 'Unavailable' });
      if (typeof status !== 'object' || 'authenticated' in status)
        await expect(authenticator.authenticate(token)).rejects.toMatchObject({ code: 'Unavailable' });
    },
  );

  test('a failure that passes is repeated, and one that does not pass is never a right', async () => {
    let failures = 2;
    server.handle = (_request, response) => {
      failures -= 1;
      if (failures >= 0) return sendStatus(response, 503, 'ServiceUnavailable', 'etcd is away');
      response.setHeader('content-type', 'application/json').end(JSON.stringify({ status: { allowed: true } }));
    };
    expect(await decide()).toEqual({ allowed: true, reason: '' });
    expect(server.received).toHaveLength(3);
    const cases: [number, string, ErrorCode][] = [
      [500, 'InternalError', 'Internal'],
      [403, 'Forbidden', 'Unavailable'],
      [401, 'Unauthorized', 'Unavailable'],
    ];
    for (const [status, reason, code] of cases) {
      server.handle = (_request, response) => sendStatus(response, status, reason, 'no reviews for you');
      const error = await authenticator.authenticate(token).then(String, (failure: unknown) => failure);
      expect(error).toBeInstanceOf(SluiceError);
      expect(error).toMatchObject({ code, message: expect.not.stringContaining('secret-token') });
      await expect(authorizer.authorize(permission(ANNA, `verb-${status}`, REVISIONS))).rejects.toMatchObject({ code });
    }
  });
});
