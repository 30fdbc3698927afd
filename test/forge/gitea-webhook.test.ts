import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterEach, describe, expect, inject, test, vi } from 'vitest';
import { SyncRequests } from '../../controllers/repository/sync-requests.ts';
import { serveWebhooks } from '../../src/app/service/serve-webhooks.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { RegistryClient } from '../../src/resource/client/registry-client.ts';
import { secretKind } from '../../src/resource/kinds/core/secret.ts';
import { repositoryKind } from '../../src/resource/kinds/porch/repository.ts';
import { MemoryStorage } from '../../src/resource/storage/memory/memory-storage.ts';
import { Registry } from '../../src/resource/storage/registry.ts';
import { EventLog } from '../../src/resource/watch/event-log.ts';
import type { Listener } from '../../src/server/listener.ts';
import type { HostEvent } from '../../src/server/webhooks/host/host-event.ts';
import type { HostPush } from '../../src/server/webhooks/host/host-push.ts';
import { WebhookEndpoint } from '../../src/server/webhooks/webhook-endpoint.ts';
import { webhookPath } from '../../src/server/webhooks/webhook-path.ts';
import { anna } from '../support/scratch-repository.ts';
import { skipFor } from '../support/skip.ts';
import { Gitea, OWNER } from './support/gitea.ts';

const missing = inject('giteaMissing');
const gitea = new Gitea({ url: inject('giteaUrl'), folder: inject('giteaFolder') });

const run = promisify(execFile);
const WAITS = { timeout: 90_000, interval: 50 };

let listener: Listener | undefined;
afterEach(async () => {
  await listener?.stop(0);
  listener = undefined;
});

/** Serves webhooks for the repository `packages` with this secret, and records their messages. */
async function receive(secret: string, repository: string) {
  const log = new EventLog({ clock: systemClock });
  const registry = new Registry();
  registry.register(new MemoryStorage(repositoryKind, { clock: systemClock, log }));
  registry.register(new MemoryStorage(secretKind, { clock: systemClock, log }));
  const client = new RegistryClient(registry, anna.actor, anna.face);
  const metadata = { name: 'packages', namespace: 'default' };
  await client.create(secretKind, { metadata: { ...metadata, name: 'webhook' }, stringData: { token: secret } });
  await client.create(repositoryKind, {
    metadata: { ...metadata, annotations: { 'sluice.dev/webhook-secret': 'webhook' } },
    spec: { git: { repo: gitea.addressOf(repository) } },
  });
  const messages: string[] = [];
  const pulls: HostEvent['pull'][] = [];
  const others: Pick<HostEvent, 'push' | 'checked' | 'isOwnCheck'>[] = [];
  const requests = new SyncRequests(systemClock);
  const pushes: HostPush[] = [];
  const statuses: number[] = [];
  const warnings: string[] = [];
  const endpoint = new WebhookEndpoint({
    client,
    clock: systemClock,
    onMessage: (key, scope, event) => {
      messages.push(`${key.name} ${scope}`);
      pulls.push(event?.pull);
      const { push, checked, isOwnCheck = false } = event ?? {};
      others.push({ push, checked, isOwnCheck });
      if (event?.written !== undefined) requests.addWritten(key, event.written);
    },
    onPush: async (_repository, push) => void pushes.push(push),
  });
  listener = await serveWebhooks({
    address: { host: '127.0.0.1', port: 0, tls: false },
    clock: systemClock,
    handle: endpoint.handle,
    onRequest: ({ code }) => statuses.push(code),
    warn: (subject, message) => warnings.push(`${subject}: ${message}`),
  });
  const url = `http://127.0.0.1:${listener.port}${webhookPath(metadata)}`;
  return { url, messages, pulls, others, pushes, requests, statuses, warnings };
}

/** Lets the forge send webhooks for pushes to a repository. */
async function register(
  repository: string,
  url: string,
  secret: string,
  form: 'json' | 'form' = 'json',
  events = ['push', 'create', 'delete'],
) {
  const config = { url, secret, content_type: form };
  const hook = { type: 'gitea', active: true, events, config };
  await gitea.api('POST', `/repos/${OWNER.username}/${repository}/hooks`, hook);
}

/** Pushes a branch with git, as users do. */
async function push(repository: string, branch: string): Promise<void> {
  const address = new URL(gitea.addressOf(repository));
  Object.assign(address, OWNER);
  const folder = gitea.pathOf(repository);
  await run('git', [
    '-c',
    'safe.directory=*',
    '-C',
    folder,
    'push',
    '--quiet',
    address.href,
    `main:refs/heads/${branch}`,
  ]);
}

describe('webhooks of Gitea', skipFor(missing !== '' && missing), () => {
  test('are accepted by the endpoint as signed', async () => {
    await gitea.createRepository('hooked');
    const { url, messages, pushes, statuses, warnings } = await receive('a-word', 'hooked');
    await register('hooked', url, 'a-word');
    await push('hooked', 'drafts/shop/v1');
    await vi.waitFor(() => expect(messages).toContain('packages branches'), WAITS);
    const { stdout } = await run('git', ['-c', 'safe.directory=*', '-C', gitea.pathOf('hooked'), 'rev-parse', 'main']);
    const pushed = {
      ...{ provider: 'gitea', user: OWNER.username, repository: `${OWNER.username}/hooked` },
      ...{ ref: 'refs/heads/drafts/shop/v1', before: undefined, after: stdout.trim() },
    };
    // The message of the new branch can come first.
    await vi.waitFor(() => expect(pushes).toEqual([pushed]), WAITS);
    await vi.waitFor(() => expect(new Set(statuses)).toEqual(new Set([202])), WAITS);
    expect(warnings).toEqual([]);
  });

  test('name the pull request of a comment, of a review and of an end, and its branch also once that is gone', async () => {
    const repository = 'named';
    await gitea.createRepository(repository);
    const reviewer = await gitea.createUser('hook-carl');
    await gitea.addWriter(reviewer.username, repository);
    const path = `/repos/${OWNER.username}/${repository}`;
    const file = { content: 'eA==', message: 'x', branch: 'main', new_branch: 'proposed/app/v1' };
    const { commit } = (await gitea.api('POST', `${path}/contents/a.txt`, file)) as { commit: { sha: string } };
    const opened = { title: 'x', head: 'proposed/app/v1', base: 'main' };
    const { number } = (await gitea.api('POST', `${path}/pulls`, opened)) as { number: number };
    const issue = (await gitea.api('POST', `${path}/issues`, { title: 'x' })) as { number: number };
    const { url, pulls, statuses } = await receive('a-word', repository);
    await register(repository, url, 'a-word', 'json', [
      ...['pull_request', 'pull_request_review', 'issue_comment', 'pull_request_comment'],
    ]);
    const head = { branch: 'proposed/app/v1', commit: commit.sha };
    /** Messages of what happened before can be late. */
    const expectNext = async (happen: () => Promise<unknown>, expected: object | undefined) => {
      const before = pulls.length;
      await happen();
      await vi.waitFor(() => expect(pulls.slice(before)).toContainEqual(expected), WAITS);
    };
    const comment = (of: number) =>
      gitea.api('POST', `${path}/issues/${of}/comments`, { body: '/sluice why' }, reviewer);
    await expectNext(() => comment(issue.number), undefined);
    const said = { number, isReview: false, isComment: true };
    await expectNext(() => comment(number), expect.objectContaining(said));
    const review = { event: 'APPROVED', body: 'fine' };
    const shown = { number, updatedAt: expect.any(String), isComment: false, head };
    const approve = () => gitea.api('POST', `${path}/pulls/${number}/reviews`, review, reviewer);
    await expectNext(approve, { ...shown, state: 'open', isReview: true });
    const remove = () => gitea.api('DELETE', `${path}/branches/${encodeURIComponent('proposed/app/v1')}`);
    await expectNext(remove, { ...shown, state: 'closed', isReview: false });
    expect(new Set(statuses)).toEqual(new Set([202]));
  });

  test('name the files of a push, and the commit of a check that has ended', async () => {
    const repository = 'changed';
    await gitea.createRepository(repository);
    const path = `/repos/${OWNER.username}/${repository}`;
    const { url, others } = await receive('a-word', repository);
    await register(repository, url, 'a-word', 'json', ['push', 'status']);
    const file = { content: 'eA==', message: 'x', branch: 'main' };
    const made = await gitea.api('POST', `${path}/contents/clusters%2Fedge%2Fa.txt`, file);
    const { sha } = (made as { commit: { sha: string } }).commit;
    const push = { branch: 'main', paths: ['clusters/edge/a.txt'] };
    await vi.waitFor(() => expect(others).toEqual([{ push, checked: undefined, isOwnCheck: false }]), WAITS);
    const expectStatus = async (context: string, state: string, expected: Partial<(typeof others)[number]>) => {
      const count = others.length + 1;
      await gitea.api('POST', `${path}/statuses/${sha}`, { context, state });
      await vi.waitFor(() => expect(others).toHaveLength(count), WAITS);
      expect(others.at(-1)).toMatchObject({ push: undefined, ...expected });
    };
    await expectStatus('build', 'pending', { checked: undefined, isOwnCheck: false });
    await expectStatus('build', 'success', { checked: sha, isOwnCheck: false });
    await expectStatus('sluice/ready', 'success', { checked: sha, isOwnCheck: true });
  });

  test('have comments as their authors wrote them, whatever others make of them within the same second', async () => {
    const repository = 'commented';
    await gitea.createRepository(repository);
    const [bob, wally] = [await gitea.createUser('hook-bob'), await gitea.createUser('hook-wally')];
    for (const { username } of [bob, wally]) await gitea.addWriter(username, repository);
    const path = `/repos/${OWNER.username}/${repository}`;
    const file = { content: 'eA==', message: 'x', branch: 'main', new_branch: 'feature' };
    await gitea.api('POST', `${path}/contents/a.txt`, file);
    const pull = { title: 'x', head: 'feature', base: 'main' };
    const { number } = (await gitea.api('POST', `${path}/pulls`, pull)) as { number: number };
    const { url, requests } = await receive('a-word', repository);
    await register(repository, url, 'a-word', 'json', ['issue_comment', 'pull_request_comment']);
    const comment = async (body: string) =>
      (await gitea.api('POST', `${path}/issues/${number}/comments`, { body }, bob)) as { id: number };
    const changed = await comment('looks nice, I will read it tomorrow');
    await gitea.api('PATCH', `${path}/issues/comments/${changed.id}`, { body: '/sluice approve' }, wally);
    const kept = await comment('/sluice approve');
    const key = { namespace: 'default', name: 'packages' };
    const isAsWritten = ({ id }: { readonly id: number }) =>
      requests.isAsWritten(key, {
        ...{ id: String(id), author: bob.username, body: '/sluice approve', url: '' },
        ...{ createdAt: '', updatedAt: '' },
      });
    await vi.waitFor(() => expect([changed, kept].map(isAsWritten)).toEqual([false, true]), WAITS);
  });

  test.each([
    ['under another secret', 'another-word', 'json'],
    ['without a secret', '', 'json'],
    ['as a form, whose signature is over a part of it', 'a-word', 'form'],
  ] as const)('are rejected %s', async (how, secret, form) => {
    const repository = `foreign-${how.length}`;
    await gitea.createRepository(repository);
    const { url, messages, statuses, warnings } = await receive('a-word', repository);
    await register(repository, url, secret, form);
    await push(repository, 'drafts/shop/v1');
    await vi.waitFor(() => expect(statuses.length).toBeGreaterThan(0), WAITS);
    expect(new Set(statuses)).toEqual(new Set([401]));
    expect(messages).toEqual([]);
    expect(warnings).toEqual([]);
  });
});
