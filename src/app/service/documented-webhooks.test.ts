import { createHash } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ReviewRequest, SyncRequests } from '../../../controllers/repository/sync-requests.ts';
import {
  type DocumentedPayload,
  documentedPayloads,
  postSigned,
} from '../../../test/support/github/github-webhooks.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { type KubernetesObject, keyText, type ObjectKey } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { startTestServer, type TestServer } from '../../server/testing.ts';
import { WebhookEndpoint } from '../../server/webhooks/webhook-endpoint.ts';
import { WEBHOOK_SECRET_ANNOTATION } from '../../server/webhooks/webhook-secrets.ts';
import { repositoryPlaces, targetPlaces } from '../policies/host-places.ts';
import { webhookReceivers } from './app-webhooks.ts';

const EVENTS = [
  ...['pull_request', 'pull_request_review', 'issue_comment', 'merge_group', 'installation', 'push'],
  ...['check_run', 'check_suite', 'status'],
];
const [SECRET, APP_SECRET] = ['the secret of a repository', 'the secret of the App'];
/** Registered repositories of the documented payloads; those of others are in them too. */
const ADDRESSES: Readonly<Record<string, string>> = {
  hello: 'https://github.com/Codertocat/Hello-World',
  octo: 'https://github.com/octo-org/octo-repo',
};

/** What a message has woken. */
interface Effect {
  readonly woken: readonly string[];
  readonly targets: readonly string[];
  readonly scope?: 'branches' | 'everything' | undefined;
  readonly review?: ReviewRequest | undefined;
}
const NOTHING: Effect = { woken: [], targets: [] };
/** The pull request of the target `edge` is the documented one; that of `coast` is another one. Both have checks of the same commit. */
const EDGE_PULL = 2;

let server: TestServer;
let clock: ManualClock;
let requests: SyncRequests;
let woken: string[];
let targets: string[];

beforeEach(async () => {
  [woken, targets] = [[], []];
  clock = new ManualClock();
  requests = new SyncRequests(clock);
  const targetRequests = new SyncRequests(clock);
  requests.subscribe((repository) => woken.push(keyText(repository)));
  targetRequests.subscribe((target) => targets.push(keyText(target)));
  let endpoint: WebhookEndpoint | undefined;
  const kinds = [repositoryKind, secretKind, packagePolicyKind, deliveryTargetKind] as unknown as readonly Kind[];
  server = await startTestServer({ webhooks: async (request) => endpoint?.handle(request) }, kinds);
  const client = new RegistryClient(server.registry, { name: 'admin' }, 'api');
  const forge = { provider: 'github', api: 'https://api.github.com', secretRef: { name: 'github' } } as const;
  const repository = (namespace: string, name: string) =>
    client.create(repositoryKind, {
      metadata: { namespace, name, annotations: { [WEBHOOK_SECRET_ANNOTATION]: 'hook' } },
      spec: { git: { repo: `${ADDRESSES[name]}.git` } },
    });
  const repositories = [
    ...[await repository('default', 'hello'), await repository('default', 'octo'), await repository('other', 'hello')],
  ];
  const policies = [
    await client.create(packagePolicyKind, { metadata: { name: 'review' }, spec: { review: { forge } as never } }),
  ];
  const target = async (name: string, number: number, directory: string) => {
    const git = { repo: ADDRESSES.hello ?? '', branch: 'master', directory };
    const spec = { selector: {}, git, pullRequest: { forge, merge: 'automatic' } as never };
    const made = await client.create(deliveryTargetKind, { metadata: { name }, spec });
    const status = { pullRequest: { number, url: '', state: 'Open', commit: 'f'.repeat(40) } } as const;
    return { ...made, status };
  };
  const delivery = [await target('edge', EDGE_PULL, ''), await target('coast', 9, 'clusters/coast')];
  await client.create(secretKind, { metadata: { name: 'hook' }, stringData: { token: SECRET } });
  await client.create(secretKind, { metadata: { name: 'github' }, stringData: { githubAppWebhookSecret: APP_SECRET } });
  const reader = <T extends KubernetesObject>(objects: readonly T[], placesOf: (one: T) => string[] = () => []) =>
    ({
      listIn: (where: string) => objects.filter(({ metadata }) => metadata.namespace === where),
      get: ({ namespace, name }: ObjectKey) =>
        objects.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
      byIndex: (_: string, value: string) => objects.filter((one) => placesOf(one).includes(value)),
    }) as never;
  const readers = {
    repositories: reader(repositories, repositoryPlaces),
    policies: reader(policies),
    targets: reader(delivery, targetPlaces),
  };
  endpoint = new WebhookEndpoint({
    ...{ client, clock },
    isRegistered: ({ namespace, name }) =>
      repositories.some(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
    ...webhookReceivers(readers, { requests, targetRequests }),
  });
});
afterEach(() => server.stop());

/** Posts it, and returns the status with what it has woken since. */
async function post(path: string, secret: string, event: string, payload: unknown): Promise<readonly [number, Effect]> {
  const { status } = await postSigned(`${server.listener.url}/webhooks/${path}`, secret, event, payload);
  // What is woken again soon after waits for this: a target where its repository and the App report on it.
  clock.advance(1000);
  const effect = { woken: [...new Set(woken.splice(0))], targets: [...new Set(targets.splice(0))] };
  const [name] = effect.woken;
  if (name === undefined) return [status, effect];
  const [namespace = '', repository = ''] = name.split('/');
  const key = { namespace, name: repository };
  const { scope } = requests.take(key) ?? {};
  const [review, ofUsers] = (['proposals', 'users'] as const).map((reader) => requests.takeReview(key, reader));
  expect(ofUsers).toEqual(review);
  return [status, { ...effect, scope, review }];
}

/** What a payload has to wake of a registered repository, by its documentation. */
function effectOf(event: string, payload: DocumentedPayload, repository: string): Effect {
  const { action = '', ref = '', issue, check_run: run, check_suite: suite, pull_request: pull } = payload;
  const effect: Effect = { woken: [`default/${repository}`], targets: [], scope: undefined, review: undefined };
  const none = { reruns: new Set<string>(), mergeQueue: false, pulls: new Map() };
  const ofPull = (number: number, more: object) => ({
    ...effect,
    targets: number === EDGE_PULL ? ['default/edge'] : [],
    review: { ...none, pulls: new Map([[number, { number, isReview: false, isComment: false, ...more }]]) },
  });
  switch (event) {
    case 'push':
      if (!ref.startsWith('refs/heads/')) return { ...effect, scope: 'everything' };
      // The file that is changed is in the directory of the one, and not in that of the other.
      return { ...effect, scope: 'branches', targets: ['default/edge'] };
    case 'merge_group':
      return { ...effect, review: { ...none, mergeQueue: true } };
    case 'check_run':
    case 'check_suite':
    case 'status':
      // What was created or completed is not read. None of the documented ones is of a commit that waits for its merge.
      return ['rerequested', 'requested_action'].includes(action)
        ? { ...effect, review: { ...none, reruns: new Set([(run ?? suite)?.head_sha ?? '']) } }
        : NOTHING;
    case 'installation':
      return { ...effect, targets: repository === 'hello' ? ['default/edge', 'default/coast'] : [] };
    case 'issue_comment':
      return issue?.pull_request === undefined ? effect : ofPull(issue.number, { isComment: true });
    case 'pull_request':
    case 'pull_request_review': {
      const { number, updated_at: updatedAt, state, head, base } = pull as unknown as Shown;
      const isOwn = head.repo?.id === base.repo.id;
      const shown = { updatedAt, state, head: isOwn ? { branch: head.ref, commit: head.sha } : undefined };
      return ofPull(number, { ...shown, isReview: event === 'pull_request_review' });
    }
    default:
      return effect;
  }
}

interface Shown {
  readonly number: number;
  readonly updated_at: string;
  readonly state: string;
  readonly head: { readonly ref: string; readonly sha: string; readonly repo: { readonly id: number } | null };
  readonly base: { readonly repo: { readonly id: number } };
}

/** The registered repository that a payload is about, if any. */
function registered({ repository, installation }: DocumentedPayload): string | undefined {
  const page = repository?.html_url;
  const owner = installation?.account?.html_url;
  return Object.keys(ADDRESSES).find((name) =>
    page === undefined ? ADDRESSES[name]?.startsWith(`${owner}/`) : ADDRESSES[name] === page,
  );
}

/** Each once: some are documented several times. */
function payloadsOf(event: string): readonly DocumentedPayload[] {
  const digest = (payload: DocumentedPayload) => createHash('sha256').update(JSON.stringify(payload)).digest('hex');
  return [...new Map(documentedPayloads(event).map((payload) => [digest(payload), payload])).values()];
}

describe.each(EVENTS)('each documented payload of %s', (event) => {
  const payloads = payloadsOf(event);
  const about = payloads.filter((payload) => registered(payload) !== undefined);

  test('wakes what it is about, by the webhook of an App, and nothing of a repository that is not registered', async () => {
    expect(about.length).toBeGreaterThan(0);
    for (const payload of payloads) {
      const repository = registered(payload);
      const expected = repository === undefined ? NOTHING : effectOf(event, payload, repository);
      const what = `${event} ${payload.action} ${payload.repository?.html_url}`;
      expect(await post('github-app/default/github', APP_SECRET, event, payload), what).toEqual([202, expected]);
      expect(await post('github-app/default/github', APP_SECRET, event, payload), what).toEqual([202, NOTHING]);
      expect(await post('github-app/default/github', SECRET, event, payload), what).toEqual([401, NOTHING]);
    }
  });

  test('wakes its repository, by the webhook of that, and no other one', async () => {
    for (const payload of about) {
      const name = registered(payload) ?? '';
      const all = effectOf(event, payload, name);
      // Only Apps have installations.
      const expected = event === 'installation' ? { ...all, targets: [] } : all;
      expect(await post(`git/default/${name}`, SECRET, event, payload), payload.action).toEqual([202, expected]);
      for (const path of ['git/default/missing', 'git/missing/hello'])
        expect(await post(path, SECRET, event, payload), payload.action).toEqual([401, NOTHING]);
    }
  });
});

test('the comments of the documented payloads are remembered as their authors wrote them', async () => {
  const key = { namespace: 'default', name: 'hello' };
  for (const payload of payloadsOf('issue_comment')) {
    const { id, user, body } = payload.comment as { id: number; user: { login: string }; body: string };
    const comment = { id: String(id), author: user.login, body } as Parameters<SyncRequests['isAsWritten']>[1];
    const before = requests.isAsWritten(key, comment);
    await post('github-app/default/github', APP_SECRET, 'issue_comment', payload);
    expect(requests.isAsWritten(key, comment)).toBe(payload.action === 'created' ? true : before);
    if (payload.action === 'created')
      expect(requests.isAsWritten(key, { ...comment, body: 'another text' })).toBe(false);
  }
});
