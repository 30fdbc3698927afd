import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RequestRecord } from '../request/request-record.ts';
import { startTestServer, type TestServer, WIDGETS } from '../testing.ts';
import type { RequestAttributes } from './authorizer.ts';

let api: TestServer;
let attributesSeen: RequestAttributes[];
let records: RequestRecord[];
let refused: (attributes: RequestAttributes) => boolean;

beforeEach(async () => {
  attributesSeen = [];
  records = [];
  refused = () => false;
  api = await startTestServer({
    authorizer: {
      authorize: async (attributes) => {
        attributesSeen.push(attributes);
        return { allowed: !refused(attributes), reason: '' };
      },
    },
    onRequest: (record) => records.push(record),
  });
});
afterEach(async () => {
  await api.stop();
  expect(api.errors).toEqual([]);
});

/** With headers that may stand more than once, which `fetch` would join. */
const get = (headers: Record<string, string | string[]>) =>
  new Promise<{ status: number; body: unknown }>((resolve, reject) => {
    const options = { headers: { authorization: 'Bearer admin', ...headers }, agent: false };
    const sent = request(`${api.listener.url}${WIDGETS}`, options, async (response) => {
      resolve({ status: response.statusCode ?? 0, body: JSON.parse(await text(response)) });
    });
    sent.on('error', reject).end();
  });
const recorded = () =>
  attributesSeen.map(({ user, verb, group, resource, subResource, namespace, name }) =>
    [user.name, verb, group, resource, subResource, namespace, name].join('|'),
  );

test('every part of the other must be granted; then the request is judged and recorded as that user', async () => {
  const response = await get({
    'impersonate-user': 'anna',
    'impersonate-group': ['editors', 'reviewers'],
    'impersonate-uid': 'u1',
    'impersonate-extra-scopes%2fa': 'view',
    'impersonate-extra-__proto__': 'x',
  });
  expect(response.status).toBe(200);
  expect(recorded()).toEqual([
    'admin|impersonate||users|||anna',
    'admin|impersonate||groups|||editors',
    'admin|impersonate||groups|||reviewers',
    'admin|impersonate|authentication.k8s.io|uids|||u1',
    'admin|impersonate|authentication.k8s.io|userextras|scopes/a||view',
    'admin|impersonate|authentication.k8s.io|userextras|__proto__||x',
    'anna|list|test.sluice.dev|widgets||default|',
  ]);
  expect(attributesSeen.at(-1)?.user).toEqual({
    name: 'anna',
    uid: 'u1',
    groups: ['editors', 'reviewers', 'system:authenticated'],
    extra: JSON.parse('{"scopes/a": ["view"], "__proto__": ["x"]}'),
  });
  expect(records).toMatchObject([{ user: 'anna', impersonator: 'admin', code: 200 }]);
});

test('a service account is one, and brings its groups', async () => {
  await get({ 'impersonate-user': 'system:serviceaccount:team:robot' });
  expect(recorded()[0]).toBe('admin|impersonate||serviceaccounts||team|robot');
  expect(attributesSeen.at(-1)?.user.groups).toEqual([
    'system:serviceaccounts',
    'system:serviceaccounts:team',
    'system:authenticated',
  ]);
});

test('one part that is not granted refuses the request', async () => {
  refused = ({ resource }) => resource === 'groups';
  const response = await get({ 'impersonate-user': 'anna', 'impersonate-group': 'system:masters' });
  expect(response.body).toMatchObject({
    code: 403,
    message:
      'groups "system:masters" is forbidden: User "admin" cannot impersonate resource "groups" in API group "" at the cluster scope',
  });
});

test('groups without a user, and too many of them, are a bad request', async () => {
  expect((await get({ 'impersonate-group': 'editors' })).status).toBe(400);
  const many = Array.from({ length: 65 }, (_, index) => `g${index}`);
  expect((await get({ 'impersonate-user': 'anna', 'impersonate-group': many })).status).toBe(400);
  expect(attributesSeen).toEqual([]);
});

test('a user or a uid that is named twice is a bad request, also where one is empty', async () => {
  for (const users of [
    ['anna', 'ben'],
    ['', 'anna'],
    ['anna', ''],
    ['', ''],
  ])
    expect(await get({ 'impersonate-user': users })).toMatchObject({ status: 400, body: { reason: 'BadRequest' } });
  expect((await get({ 'impersonate-user': 'anna', 'impersonate-uid': ['u1', 'u2'] })).status).toBe(400);
  expect((await get({ 'impersonate-user': '', 'impersonate-group': 'editors' })).status).toBe(400);
  expect(attributesSeen).toEqual([]);
});

test('reserved and misleading names cannot be impersonated', async () => {
  expect((await get({ 'impersonate-user': 'controller:approval' })).status).toBe(400);
  expect((await get({ 'impersonate-user': 'push' })).status).toBe(400);
});
