import { createHmac } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../foundation/time/clock.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { deliveryTargetKind } from '../../resource/kinds/sluice/delivery/delivery-target.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { type KubernetesObject, keyOf, keyText, type ObjectKey } from '../../resource/object/object.ts';
import type { Kind } from '../../resource/schema/kind.ts';
import { startTestServer, type TestServer } from '../../server/testing.ts';
import { SeenFile } from '../../server/webhooks/seen/seen-file.ts';
import { WebhookEndpoint } from '../../server/webhooks/webhook-endpoint.ts';
import { WEBHOOK_SECRET_ANNOTATION } from '../../server/webhooks/webhook-secrets.ts';
import { repositoryPlaces, targetPlaces } from '../policies/host-places.ts';
import { appWebhooks, targetsIn } from './app-webhooks.ts';

const SECRET = 'the secret of the App';
const HOOK_SECRET = 'the secret of the webhooks of repositories';
const COMMIT = 'a'.repeat(40);

let server: TestServer;
let folder: string;
let reported: string[];
let readers: Parameters<typeof appWebhooks>[0];
let restart: () => void;
const files: SeenFile[] = [];

beforeEach(async () => {
  reported = [];
  folder = mkdtempSync(join(tmpdir(), 'sluice-apps-'));
  let endpoint: WebhookEndpoint | undefined;
  const kinds = [repositoryKind, secretKind, packagePolicyKind, deliveryTargetKind] as unknown as readonly Kind[];
  server = await startTestServer({ webhooks: async (asked) => endpoint?.handle(asked) }, kinds);
  const client = new RegistryClient(server.registry, { name: 'admin' }, 'api');
  const annotations = { [WEBHOOK_SECRET_ANNOTATION]: 'hook' };
  await client.create(secretKind, { metadata: { name: 'hook' }, stringData: { token: HOOK_SECRET } });
  const repository = (namespace: string, name: string, repo: string) =>
    client.create(repositoryKind, { metadata: { namespace, name, annotations }, spec: { git: { repo } } });
  const repositories = [
    await repository('default', 'apps', 'https://github.com/acme/apps.git'),
    await repository('default', 'infra', 'git@github.com:acme/infra.git'),
    await repository('default', 'elsewhere', 'https://git.example.com/acme/apps.git'),
    await repository('other', 'apps', 'https://github.com/acme/apps.git'),
  ];
  const policy = (namespace: string, provider: 'github' | 'gitea', secret: string) =>
    client.create(packagePolicyKind, {
      metadata: { namespace, name: `with-${secret}` },
      spec: { review: { forge: { provider, api: 'https://api.github.com', secretRef: { name: secret } } } } as never,
    });
  const policies = [await policy('default', 'github', 'github'), await policy('default', 'gitea', 'gitea')];
  for (const name of ['github', 'gitea', 'deliveries', 'unused'])
    await client.create(secretKind, { metadata: { name }, stringData: { githubAppWebhookSecret: SECRET } });
  const target = (namespace: string, name: string, repo: string, secret: string) =>
    client.create(deliveryTargetKind, {
      metadata: { namespace, name },
      spec: {
        ...{ selector: {}, git: { repo, directory: name } },
        pullRequest: {
          forge: { provider: 'github', api: 'https://api.github.com', secretRef: { name: secret } },
        } as never,
      },
    });
  const targets = [
    await target('default', 'edge', 'git@github.com:acme/infra', 'github'),
    await target('default', 'site', 'https://github.com/acme/site', 'deliveries'),
    await target('other', 'edge', 'https://github.com/acme/infra', 'github'),
    await client.create(deliveryTargetKind, {
      metadata: { name: 'pushed' },
      spec: { selector: {}, git: { repo: 'https://github.com/acme/infra', directory: 'pushed' } },
    }),
  ];
  const reader = <T extends KubernetesObject>(objects: readonly T[], placesOf: (one: T) => string[] = () => []) =>
    ({
      listIn: (where: string) => objects.filter(({ metadata }) => metadata.namespace === where),
      get: ({ namespace, name }: ObjectKey) =>
        objects.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name),
      byIndex: (_: string, value: string) => objects.filter((one) => placesOf(one).includes(value)),
    }) as never;
  readers = {
    repositories: reader(repositories, repositoryPlaces),
    policies: reader(policies),
    targets: reader(targets, targetPlaces),
  };
  restart = () => {
    const file = new SeenFile(join(folder, 'webhooks.db'), (error) => {
      throw error;
    });
    files.push(file);
    endpoint = new WebhookEndpoint({
      ...{ client, clock: systemClock, seenFile: file },
      onMessage: ({ namespace, name }, scope, event) =>
        reported.push(`${namespace}/${name} ${scope} ${JSON.stringify(event?.hint)}`),
      onTarget: ({ namespace, name }) => reported.push(`target ${namespace}/${name}`),
      onPush: async ({ namespace, name }) => void reported.push(`pusher of ${namespace}/${name}`),
      apps: appWebhooks(readers),
    });
  };
  restart();
});
afterEach(async () => {
  await server.stop();
  for (const file of files.splice(0)) file.close();
  rmSync(folder, { recursive: true, force: true });
});

async function post(path: string, payload: object, more: { secret?: string; event?: string } = {}): Promise<string> {
  const { secret = SECRET, event = 'check_run' } = more;
  const body = JSON.stringify(payload);
  const signature = `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
  const headers = { 'X-GitHub-Event': event, 'X-Hub-Signature-256': signature };
  const response = await fetch(`${server.listener.url}/webhooks/${path}`, { method: 'POST', body, headers });
  return `${response.status} ${(await response.text()).trim().slice(0, 30)}`;
}

const repository = (name: string, host = 'github.com') => ({
  repository: { html_url: `https://${host}/acme/${name}` },
});

test('an App reports on the repositories that it reviews, in the namespace of its Secret', async () => {
  const rerun = { action: 'rerequested', check_run: { head_sha: COMMIT }, ...repository('infra') };
  expect(await post('github-app/default/github', rerun)).toBe('202 accepted');
  const queued = { action: 'checks_requested', merge_group: { head_sha: COMMIT }, ...repository('apps') };
  expect(await post('github-app/default/github', queued, { event: 'merge_group' })).toBe('202 accepted');
  const push = { ref: 'refs/heads/main', after: COMMIT, ...repository('apps') };
  expect(await post('github-app/default/github', push, { event: 'push' })).toBe('202 accepted');
  const suspended = { action: 'suspend', installation: { account: { html_url: 'https://github.com/acme' } } };
  expect(await post('github-app/default/github', suspended, { event: 'installation' })).toBe('202 accepted');
  expect(reported).toEqual([
    `default/infra undefined {"rerun":"${COMMIT}"}`,
    'default/apps undefined "merge-queue"',
    'default/apps branches undefined',
    'default/apps undefined undefined',
    'default/infra undefined undefined',
    'target default/edge',
  ]);
});

test('the webhook of a repository reports on that one alone, whichever repository its messages are about', async () => {
  const messages = [
    ['check_run', { action: 'rerequested', check_run: { head_sha: COMMIT } }],
    ['merge_group', { action: 'checks_requested', merge_group: { head_sha: COMMIT } }],
    ['pull_request', { action: 'closed', number: 7, pull_request: { number: 7, state: 'closed' } }],
    ['push', { ref: 'refs/heads/main', before: 'b'.repeat(40), after: COMMIT, pusher: { name: 'eve' } }],
    ['installation', { action: 'suspend', installation: { account: { html_url: 'https://github.com/acme' } } }],
  ] as const;
  for (const [event, message] of messages) {
    const other = { ...repository('infra').repository, full_name: 'acme/infra' };
    const about = { ...message, repository: other, sender: { login: 'eve' } };
    expect(await post('git/default/apps', about, { event, secret: HOOK_SECRET })).toBe('202 accepted');
    // One of an App is none of a repository, and the other way round.
    expect(await post('git/default/apps', about, { event })).toMatch(/^401/);
    expect(await post('github-app/default/github', about, { event, secret: HOOK_SECRET })).toMatch(/^401/);
  }
  expect(reported.length).toBeGreaterThanOrEqual(messages.length);
  expect(reported).toContainEqual(expect.stringContaining(COMMIT));
  expect(reported).toContain('pusher of default/apps');
  expect(reported.filter((one) => !/^(pusher of )?default\/apps\b/.test(one))).toEqual([]);
});

test('an App reports on the targets that it delivers to, whether or not it reviews', async () => {
  const head = { ref: 'sluice/delivery/site', sha: COMMIT, repo: { id: 1 } };
  const pull = { pull_request: { number: 7, head, base: { repo: { id: 1 } } } };
  for (const name of ['site', 'infra']) {
    const of = { ...pull, ...repository(name) };
    expect(await post('github-app/default/deliveries', of, { event: 'pull_request' })).toBe('202 accepted');
  }
  expect(reported).toEqual(['target default/site']);
});

test('checks that Sluice has set lead to no search, and those of others to one in an index', async () => {
  const places: string[] = [];
  const scan = () => {
    throw new Error('all objects are read');
  };
  for (const kind of ['repositories', 'targets'] as const) {
    const reader = readers[kind] as unknown as { byIndex(name: string, value: string): unknown };
    const byIndex = reader.byIndex.bind(reader);
    reader.byIndex = (name, value) => {
      places.push(value);
      return byIndex(name, value);
    };
  }
  Object.assign(readers.repositories, { listIn: scan });
  const check = (name: string) => ({ check_run: { name, head_sha: COMMIT }, ...repository('infra') });
  expect(await post('github-app/default/github', check('sluice/ready'))).toBe('202 accepted');
  expect(places).toEqual([]);
  expect(await post('github-app/default/github', check('build'))).toBe('202 accepted');
  expect(places).toEqual(Array(2).fill('default at github.com/acme/infra'));
  expect(reported).toEqual(['default/infra undefined undefined']);
});

test('the webhook of a repository reports on targets of its namespace that deliver to it by pull requests', () => {
  const targets = (name: string) =>
    targetsIn(readers, { namespace: 'default', name }).map((one) => keyText(keyOf(one)));
  expect(targets('infra')).toEqual(['default/edge']);
  for (const name of ['apps', 'missing']) expect(targets(name)).toEqual([]);
});

test('a message acts on no repository that it is not about, and none without the secret of a used App counts', async () => {
  for (const about of [repository('unknown'), repository('apps', 'github.com.example'), {}, { zen: '…' }])
    expect(await post('github-app/default/github', about)).toBe('202 accepted');
  expect(await post('github-app/default/github', repository('apps'), { secret: 'wrong' })).toMatch(/^401/);
  for (const path of ['default/gitea', 'default/unused', 'default/missing', 'other/github'])
    expect(await post(`github-app/${path}`, repository('apps'))).toMatch(/^401/);
  // The secret of an App is none of a repository, and the other way round.
  expect(await post('git/default/apps', repository('apps'))).toMatch(/^401/);
  for (const path of ['github-app/default', 'github-app/default/github/more', 'github-app/Default/github'])
    expect(await post(path, repository('apps'))).toMatch(/^40[134]/);
  expect(reported).toEqual([]);
});

test('a message that is repeated after a restart has no effect', async () => {
  const message = repository('apps');
  expect(await post('github-app/default/github', message)).toBe('202 accepted');
  restart();
  expect(await post('github-app/default/github', message)).toBe('202 seen before');
  expect(reported).toHaveLength(1);
});
