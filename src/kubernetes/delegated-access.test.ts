import { expect, onTestFinished, test } from 'vitest';
import { type Clock, systemClock } from '../foundation/time/clock.ts';
import { configMapKind } from '../resource/kinds/core/config-map.ts';
import { issue, trustData } from '../server/authentication/testing-cluster.ts';
import { permission } from '../server/authorization/require-allowed.ts';
import { accessReviews } from '../server/reviews/access-reviews.ts';
import { tokenReview } from '../server/reviews/identity-reviews.ts';
import { startTestServer, WIDGETS } from '../server/testing.ts';
import { Connection } from './connection/connection.ts';
import { delegateAccess } from './delegated-access.ts';
import { HttpClient } from './http-client.ts';
import { fixedAccess } from './testing.ts';

const ANNA = { name: 'anna', groups: ['dev'] };

/** Waits a hundredth of the time between attempts. */
const hurriedClock: Clock = {
  now: systemClock.now,
  schedule: (ms, action) => systemClock.schedule(ms < 9000 ? ms / 100 : ms, action),
};

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
