import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { HostRules } from '../../git/network/host-rules.ts';
import type { Authorizer } from '../authorization/authorizer.ts';
import { authorizerOf, binding, clusterRole } from '../authorization/testing.ts';
import { startTestServer, type TestServer } from '../testing.ts';
import { ADMISSION_PATH, AdmissionWebhook, admissionReviews } from './admission-webhook.ts';

const ANNA = { kind: 'User', name: 'anna' };
const ROOT = { username: 'root', groups: ['system:masters'] };
const REMOTE = 'https://git.example.com/a.git';
const POST_REVIEWS = { verbs: ['post'], nonResourceURLs: [ADMISSION_PATH] };

/** As an installation has it, with a caller without credentials. */
const { authorizer: rbac } = authorizerOf(
  clusterRole('reviews', [POST_REVIEWS]),
  binding('', 'reviews', 'ClusterRole/reviews', { kind: 'Group', name: 'system:unauthenticated' }),
  clusterRole('secret', [{ verbs: ['get'], apiGroups: [''], resources: ['secrets'], resourceNames: ['mine'] }]),
  binding('a', 'secret', 'ClusterRole/secret', ANNA),
  clusterRole('owner', [{ verbs: ['update'], apiGroups: ['config.porch.kpt.dev'], resources: ['repositories'] }]),
  binding('owned', 'owner', 'ClusterRole/owner', { kind: 'Group', name: 'owners' }),
);

let api: TestServer;
let webhook: AdmissionWebhook;
let authorizer: Authorizer;
const errors: unknown[] = [];

beforeEach(async () => {
  authorizer = rbac;
  errors.length = 0;
  webhook = new AdmissionWebhook({
    authenticator: {
      authenticate({ headers: { authorization } }) {
        return authorization === undefined ? undefined : { name: authorization, groups: [] };
      },
    },
    authorizer: { authorize: (attributes, signal) => authorizer.authorize(attributes, signal) },
    hosts: new HostRules(['127.0.0.1:3000']),
    policyGates: async () => new Set(),
    policyIssuers: async () => [],
    clock: systemClock,
    onError: (error) => errors.push(error),
  });
  api = await startTestServer({ webhooks: webhook.handle });
});
afterEach(() => api.stop());

function send(body: unknown, { method = 'POST', headers = {}, query = '' } = {}): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const contentType = { 'content-type': 'application/json', ...headers };
  const init = { method, headers: contentType, ...(method === 'GET' ? {} : { body: text }) };
  return fetch(`${api.listener.url}${ADMISSION_PATH}${query}`, init);
}

const REPOSITORY = { group: 'config.porch.kpt.dev', version: 'v1alpha1', kind: 'Repository' };
const TARGET = { group: 'sluice.dev', version: 'v1alpha1', kind: 'DeliveryTarget' };
const CONFIG_MAP = { group: '', version: 'v1', kind: 'ConfigMap' };

/** An AdmissionReview as a kube-apiserver sends it. */
function review(kind: typeof REPOSITORY, fields: object, request: object = {}) {
  return {
    apiVersion: 'admission.k8s.io/v1',
    kind: 'AdmissionReview',
    request: {
      ...{ uid: 'e9a4', kind, resource: { ...kind, resource: 'x' }, requestKind: kind, options: null, dryRun: false },
      ...{ namespace: 'a', name: 'x', operation: 'CREATE', oldObject: null },
      object: written(kind, fields),
      userInfo: { username: 'anna', uid: 'u1', groups: ['system:authenticated'], extra: { 'example.org/k': ['v'] } },
      ...request,
    },
  };
}

function written({ group, version, kind }: typeof REPOSITORY, fields: object, metadata: object = {}) {
  const apiVersion = group === '' ? version : `${group}/${version}`;
  return { apiVersion, kind, metadata: { name: 'x', namespace: 'a', uid: 'u', ...metadata }, ...fields };
}

const repository = (git: object) => ({ spec: { type: 'git', git: { repo: REMOTE, branch: 'main', ...git } } });
const target = (spec: object) => ({ spec: { selector: {}, git: { repo: REMOTE }, ...spec } });
const keys = (text: string) => ({ data: { allowed_signers: text } });

interface Decision {
  readonly uid: string;
  readonly allowed: boolean;
  readonly status?: { readonly code: number; readonly reason: string; readonly message: string };
}

async function decide(body: unknown, options?: Parameters<typeof send>[1]): Promise<Decision> {
  const answer = await send(body, options);
  expect(answer.status).toBe(200);
  const { apiVersion, kind, response } = (await answer.json()) as Record<string, unknown>;
  expect([apiVersion, kind]).toEqual(['admission.k8s.io/v1', 'AdmissionReview']);
  return response as Decision;
}

const refused = (code: number, reason: string, message: string | RegExp) => ({
  uid: 'e9a4',
  allowed: false,
  status: expect.objectContaining({
    ...{ status: 'Failure', code, reason },
    message: typeof message === 'string' ? expect.stringContaining(message) : expect.stringMatching(message),
  }),
});
const ADMITTED = { uid: 'e9a4', allowed: true };

describe('the rules of the embedded server apply', () => {
  test('a Secret that the user of the request cannot read', async () => {
    const theirs = review(REPOSITORY, repository({ secretRef: { name: 'theirs' } }));
    const message =
      'repositories.config.porch.kpt.dev "x" is forbidden: the Secret a/theirs is sent to spec.git.repo, and User "anna" cannot read it';
    expect(await decide(theirs)).toEqual(refused(403, 'Forbidden', message));
    expect(await decide(review(REPOSITORY, repository({ secretRef: { name: 'mine' } })))).toEqual(ADMITTED);
    const elsewhere = review(REPOSITORY, repository({ secretRef: { name: 'mine' } }), { namespace: 'owned' });
    (elsewhere.request.object.metadata as { namespace: string }).namespace = 'owned';
    expect(await decide(elsewhere)).toEqual(refused(403, 'Forbidden', 'the Secret owned/mine'));
  });

  test('an address on the machine of the server, and a host that the operator did not permit', async () => {
    const local = review(TARGET, target({ git: { repo: 'file:///var/cache/sluice/mirror.git' } }));
    expect(await decide(local)).toEqual(refused(403, 'Forbidden', 'on localrepositories.sluice.dev'));
    expect(await decide({ ...local, request: { ...local.request, userInfo: ROOT } })).toEqual(ADMITTED);
    const host = review(REPOSITORY, repository({ repo: 'https://169.254.169.254/a.git' }), { userInfo: ROOT });
    expect(await decide(host)).toEqual(refused(403, 'Forbidden', '--allow-git-host'));
  });

  test('what decides over deliveries and over users takes the right to update Repositories', async () => {
    const outOfBand = review(TARGET, target({ allowOutOfBand: true }));
    expect(await decide(outOfBand)).toEqual(refused(403, 'Forbidden', 'spec.allowOutOfBand'));
    const list = review(CONFIG_MAP, keys('anna ssh-ed25519 AAAA'));
    expect(await decide(list)).toEqual(refused(403, 'Forbidden', 'its key allowed_signers says whose signature'));
    const owner = { username: 'olga', groups: ['owners'] };
    const owned = review(CONFIG_MAP, {}, { namespace: 'owned', userInfo: owner });
    owned.request.object = written(CONFIG_MAP, keys('x'), { namespace: 'owned' });
    expect(await decide(owned)).toEqual(ADMITTED);
  });

  test('the schema, as far as a definition cannot express it', async () => {
    const user = review(REPOSITORY, repository({ repo: 'https://me:secret@git.example.com/a.git' }));
    const decision = await decide(user);
    expect(decision).toEqual(refused(422, 'Invalid', /Repository.*"x" is invalid: spec\.git\.repo: .*use secretRef/));
    expect(JSON.stringify(decision)).not.toContain('secret@');
  });
});

describe('operations', () => {
  const update = (before: object, after: object) =>
    review(REPOSITORY, after, { operation: 'UPDATE', oldObject: written(REPOSITORY, before) });

  test('an update is judged by what it changes', async () => {
    const theirs = repository({ secretRef: { name: 'theirs' } });
    expect(await decide(update(theirs, theirs))).toEqual(ADMITTED);
    const elsewhere = repository({ repo: 'https://evil.example.com/a.git', secretRef: { name: 'theirs' } });
    expect(await decide(update(theirs, elsewhere))).toMatchObject({ allowed: false });
  });

  test('what was invalid before may stay, so that finalizers can be removed; other problems may not come', async () => {
    const bad = repository({ branch: 'no branch' });
    expect(await decide(update(bad, bad))).toEqual(ADMITTED);
    const worse = repository({ branch: 'no branch', directory: '../up' });
    expect(await decide(update(bad, worse))).toEqual(refused(422, 'Invalid', /is invalid: spec\.git\.directory:/));
  });

  test('a deletion is judged by the object that is deleted, except that of a whole namespace', async () => {
    const deletion = { operation: 'DELETE', object: null, oldObject: written(CONFIG_MAP, keys('x')) };
    expect(await decide(review(CONFIG_MAP, {}, deletion))).toEqual(refused(403, 'Forbidden', 'allowed_signers'));
    const username = 'system:serviceaccount:kube-system:namespace-controller';
    expect(await decide(review(CONFIG_MAP, {}, { ...deletion, userInfo: { username } }))).toEqual(ADMITTED);
    const bare = review(CONFIG_MAP, {}, { ...deletion, oldObject: null });
    expect(await decide(bare)).toEqual(refused(400, 'BadRequest', 'request.oldObject is missing'));
  });

  test('a list of users is not removed by a label or an owner', async () => {
    const relabelled = (metadata: object) =>
      review(
        CONFIG_MAP,
        {},
        {
          operation: 'UPDATE',
          oldObject: written(CONFIG_MAP, keys('x')),
          object: written(CONFIG_MAP, keys('x'), metadata),
        },
      );
    const hidden = relabelled({ labels: { 'sluice.dev/trust-ledger': 'x' } });
    expect(await decide(hidden)).toEqual(refused(403, 'Forbidden', 'a change of the label sluice.dev/trust-ledger'));
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'u1' };
    const owned = relabelled({ ownerReferences: [owner] });
    expect(await decide(owned)).toEqual(refused(403, 'Forbidden', 'a change of metadata.ownerReferences'));
    expect(await decide(relabelled({ labels: null, ownerReferences: null }))).toEqual(ADMITTED);
  });

  test('a generated name is in no message before it exists, and is no problem', async () => {
    const generated = review(REPOSITORY, {}, { name: '' });
    const metadata = { name: '', generateName: 'team-' };
    generated.request.object = written(REPOSITORY, repository({}), metadata);
    expect(await decide(generated)).toEqual(ADMITTED);
    generated.request.object = written(REPOSITORY, repository({ branch: '-' }), metadata);
    expect(await decide(generated)).toEqual(refused(422, 'Invalid', /^Repository.*spec\.git\.branch/));
  });

  test('dry runs and sub-resources are judged alike', async () => {
    const theirs = repository({ secretRef: { name: 'theirs' } });
    for (const request of [{ dryRun: true }, { subResource: 'status' }])
      expect(await decide(review(REPOSITORY, theirs, request))).toMatchObject({ allowed: false });
  });

  test('kinds without rules, sub-resources with another kind and connections are admitted', async () => {
    const pod = { group: '', version: 'v1', kind: 'Pod' };
    expect(await decide(review(pod, {}))).toEqual(ADMITTED);
    const scale = { group: 'autoscaling', version: 'v1', kind: 'Scale' };
    expect(await decide(review(scale, {}, { subResource: 'scale' }))).toEqual(ADMITTED);
    expect(await decide(review(REPOSITORY, {}, { operation: 'CONNECT', object: null }))).toEqual(ADMITTED);
  });
});

describe('nothing is admitted by what is left out or contradictory', () => {
  test.each([
    ['no object', { object: null }, 'request.object is missing'],
    ['no old object', { operation: 'UPDATE' }, 'request.oldObject is missing'],
    ['another kind', { object: written(TARGET, target({})) }, 'not of the kind'],
    ['another namespace', { object: written(REPOSITORY, {}, { namespace: 'b' }) }, 'not in the namespace'],
    ['another name', { name: 'y' }, 'does not have the name'],
    ['another version', { kind: { ...REPOSITORY, version: 'v2' } }, 'of version v2 is not known'],
    ['no text', { object: written(REPOSITORY, { spec: { git: { repo: 1 } } }) }, 'spec.git.repo'],
  ])('%s', async (_what, request, message) => {
    expect(await decide(review(REPOSITORY, repository({}), request))).toEqual(refused(400, 'BadRequest', message));
  });

  test('a cluster that does not decide', async () => {
    authorizer = {
      authorize: async (attributes) => {
        if (!attributes.isResource) return { allowed: true, reason: '' };
        throw new SluiceError('Unavailable', 'the cluster does not respond');
      },
    };
    const theirs = review(REPOSITORY, repository({ secretRef: { name: 'mine' } }));
    expect(await decide(theirs)).toEqual(refused(503, 'ServiceUnavailable', 'is not decided'));
    expect(errors).toHaveLength(1);
  });

  test('a decision that takes longer than the caller waits', async () => {
    authorizer = {
      authorize: ({ isResource }) =>
        isResource ? new Promise(() => undefined) : Promise.resolve({ allowed: true, reason: '' }),
    };
    const theirs = review(REPOSITORY, repository({ secretRef: { name: 'mine' } }));
    expect(await decide(theirs, { query: '?timeout=1s' })).toEqual(refused(504, 'Timeout', ''));
  });
});

describe('requests that are no reviews', () => {
  test.each([
    ['another method', {}, { method: 'GET' }, 405],
    ['another media type', {}, { headers: { 'content-type': 'application/yaml' } }, 415],
    ['a compressed body', {}, { headers: { 'content-encoding': 'gzip' } }, 415],
    ['no JSON', '{', {}, 400],
    ['an empty body', '', {}, 400],
    ['an older version', { ...review(REPOSITORY, {}), apiVersion: 'admission.k8s.io/v1beta1' }, {}, 400],
    ['no request', { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview' }, {}, 400],
    ['no user', review(REPOSITORY, {}, { userInfo: {} }), {}, 400],
    ['no uid', review(REPOSITORY, {}, { uid: '' }), {}, 400],
    ['more than the limit', ' '.repeat(4 * 1024 * 1024 + 1), {}, 413],
  ])('%s', async (_what, body, options, status) => {
    expect((await send(body, options)).status).toBe(status);
  });
});

describe('many reviews at the same time', () => {
  const theirs = review(REPOSITORY, repository({ secretRef: { name: 'mine' } }));

  test('are refused beyond 50, without a question to the cluster, until others end', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let questions = 0;
    authorizer = {
      async authorize({ isResource }) {
        questions += 1;
        if (isResource) await released;
        return { allowed: true, reason: '' };
      },
    };
    const open = Array.from({ length: 50 }, () => send(theirs));
    // One about the caller and one about its user.
    await expect.poll(() => questions).toBe(100);
    const further = await send(theirs);
    expect([further.status, further.headers.get('retry-after')]).toEqual([429, '1']);
    expect(await further.json()).toMatchObject({ reason: 'TooManyRequests' });
    expect(questions).toBe(100);
    release();
    expect((await Promise.all(open)).map(({ status }) => status)).toEqual(Array(50).fill(200));
    expect(await decide(theirs)).toEqual(ADMITTED);
  });

  test('are read in turns of the event loop, so that timers and other requests run between them', async () => {
    let turn = 0;
    let immediate = setImmediate(function next() {
      turn += 1;
      immediate = setImmediate(next);
    });
    onTestFinished(() => clearImmediate(immediate));
    const turns = new Set<number>();
    authorizer = {
      async authorize({ isResource }) {
        if (isResource) turns.add(turn);
        return { allowed: true, reason: '' };
      },
    };
    const arrived = Array.from({ length: 20 }, () => {
      const request = new IncomingMessage(new Socket());
      request.method = 'POST';
      request.push(JSON.stringify(theirs));
      request.push(null);
      request.complete = true;
      return webhook.handle({ path: ADMISSION_PATH, query: new URLSearchParams(), request });
    });
    expect((await Promise.all(arrived)).map((answer) => answer?.status)).toEqual(Array(20).fill(200));
    expect(turns.size).toBe(20);
  });
});

test('each request is measured when it begins and when it ends', async () => {
  const codes: (number | undefined)[] = [];
  onTestFinished(admissionReviews.subscribe(({ code }) => codes.push(code)));
  await decide(review(REPOSITORY, repository({ secretRef: { name: 'theirs' } })));
  await send('{');
  expect(codes).toEqual([undefined, 200, undefined, 400]);
});

test('the caller must be allowed to post reviews', async () => {
  const body = review(REPOSITORY, repository({}));
  expect(await decide(body)).toEqual(ADMITTED);
  expect((await send(body, { headers: { authorization: 'mallory' } })).status).toBe(403);
  authorizer = authorizerOf(
    clusterRole('reviews', [POST_REVIEWS]),
    binding('', 'reviews', 'ClusterRole/reviews', { kind: 'User', name: 'kube-apiserver' }),
  ).authorizer;
  expect(await decide(body, { headers: { authorization: 'kube-apiserver' } })).toEqual(ADMITTED);
  expect((await send(body)).status).toBe(401);
});
