import { expect, onTestFinished, test } from 'vitest';
import { type Clock, systemClock } from '../foundation/time/clock.ts';
import { configMapKind } from '../resource/kinds/core/config-map.ts';
import { issue, trustData } from '../server/authentication/testing-cluster.ts';
import type { Authorizer } from '../server/authorization/authorizer.ts';
import { permission } from '../server/authorization/require-allowed.ts';
import { accessReviews } from '../server/reviews/access-reviews.ts';
import { tokenReview } from '../server/reviews/identity-reviews.ts';
import { startTestServer, WIDGETS } from '../server/testing.ts';
import { Connection } from './connection/connection.ts';
import { delegateAccess } from './delegated-access.ts';
import { HttpClient } from './http-client.ts';
import { fixedAccess, sendJson, WireServer } from './testing.ts';

const ANNA = { name: 'anna', groups: ['dev'] };

/** Waits a hundredth of the time between attempts. */
const hurriedClock: Clock = {
  ...systemClock,
  schedule: (ms, action) => systemClock.schedule(ms < 9000 ? ms / 100 : ms, action),
};

test('reviews of admission use up neither the reviews nor the connections of other requests', async () => {
  const cluster = await new WireServer().start();
  const asked: string[] = [];
  cluster.handle = ({ path, body }, response) => {
    if (!path.endsWith('/subjectaccessreviews')) return sendJson(response, 200, {});
    const { user } = JSON.parse(body).spec;
    asked.push(user);
    if (!user.startsWith('flood')) sendJson(response, 201, { status: { allowed: true } });
  };
  const connection = new Connection(cluster.access());
  const client = new HttpClient({ connection, face: 'api' });
  const access = delegateAccess({
    ...{ client, clock: systemClock, onAuthorities: () => undefined, onError: () => undefined },
  });
  const extension = await startTestServer({ authenticator: access.authenticator, authorizer: access.authorizer });
  const end = new AbortController();
  onTestFinished(async () => {
    end.abort();
    await access.stop();
    await extension.stop();
    await connection.close();
    await cluster.stop();
  });
  const codes: string[] = [];
  const ask = (authorizer: Authorizer, name: string) =>
    authorizer.authorize(permission({ name, groups: [] }, 'get', {}), end.signal);
  for (let index = 0; index < 300; index += 1)
    void ask(access.admissionAuthorizer, `flood${index}`).catch(({ code }) => codes.push(code));
  await expect.poll(() => [codes.length, asked.length]).toEqual([250, 50]);
  expect(new Set(codes)).toEqual(new Set(['TooManyRequests']));
  expect(await ask(access.authorizer, 'anna')).toMatchObject({ allowed: true });
  // As the renewal of a Lease.
  await client.raw('PUT', '/apis/coordination.k8s.io/v1/namespaces/a/leases/sluice', '{}');
  // Refused before anything is reviewed.
  const anonymous = await fetch(`${extension.listener.url}${WIDGETS}`, { method: 'POST', body: '{}' });
  expect([anonymous.status, asked.length]).toEqual([401, 51]);
  expect(cluster.received.filter(({ path }) => path.endsWith('/tokenreviews'))).toEqual([]);
});

test('a server behind another one has the users and rights of that one', async () => {
  const authorizer = {
    authorize: async ({ user }: { user: { name: string } }) => ({ allowed: user.name !== 'bob', reason: '' }),
  };
  const users = new Map(['anna', 'bob'].map((name) => [name, { ...ANNA, name }]));
  const reviews = [...accessReviews(authorizer), tokenReview((token) => users.get(token))];
  const cluster = await startTestServer({ reviews, authorizer }, [configMapKind]);
  const connection = new Connection(fixedAccess(cluster.listener.url, 'admin'));
  const client = new HttpClient({ connection, face: 'api' });
  const errors: unknown[] = [];
  const authorities: string[] = [];
  const access = delegateAccess({
    ...{ client, clock: hurriedClock },
    onAuthorities: (clientCa) => authorities.push(clientCa),
    onError: (error) => errors.push(error),
  });
  const extension = await startTestServer({ authenticator: access.authenticator, authorizer: access.authorizer });
  onTestFinished(async () => {
    await access.stop();
    await extension.stop();
    await connection.close();
    await cluster.stop();
  });

  await access.whenSynced();
  expect(access.clientCa).toBe('');
  const [proxy, userCa] = await Promise.all(
    ['proxy', 'users'].map(async (commonName) => (await issue({ commonName, usage: 'authority' })).certificate),
  );
  const metadata = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };
  await client.create(configMapKind, { metadata, data: trustData({ proxy: proxy ?? '', client: userCa ?? '' }) });
  await expect.poll(() => authorities).toEqual([`${proxy}${userCa}`]);
  expect(access.clientCa).toBe(authorities[0]);

  const statusFor = async (user: string) => (await extension.fetch(WIDGETS, {}, user)).status;
  expect(await statusFor('anna')).toBe(200);
  expect(await statusFor('bob')).toBe(403);
  expect(await statusFor('carl')).toBe(401);
  expect(await access.authorizer.authorize(permission(ANNA, 'get', {}))).toMatchObject({ allowed: true });
  expect(errors).toEqual([]);

  // No server decides any more: every request is refused, also of users who were allowed before.
  await connection.close();
  const lost = await extension.fetch(`${WIDGETS}/other`, {}, 'anna');
  expect(lost.status).toBe(503);
  const unchecked = await extension.fetch(WIDGETS, {}, 'dora');
  expect(unchecked.status).toBe(503);
  expect(unchecked.headers.get('retry-after')).toBe('1');
  expect(((await unchecked.json()) as { message: string }).message).toBe(
    'cannot authenticate the request: the credentials could not be checked; try again later. The log of the server has the cause',
  );
});
