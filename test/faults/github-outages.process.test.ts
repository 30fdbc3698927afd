import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { pullRequestController } from '../../controllers/pull-request/pull-request-controller.ts';
import { GitHubForge } from '../../src/forge/github/github-forge.ts';
import { isSluiceError } from '../../src/foundation/sluice-error.ts';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../src/git/network/git-network.ts';
import { packagePolicyKind } from '../../src/resource/kinds/sluice/package-policy.ts';
import { ANNA, type Fixture } from '../support/fixture.ts';
import { fsck, git } from '../support/git/git-cli.ts';
import type { GitHubRepository } from '../support/github/github-repository.ts';
import { APP, type Fault, type GitHubRequest, GitHubServer } from '../support/github/github-server.ts';
import { open } from './forge-scenario.ts';

const CONTEXT = { signal: new AbortController().signal, failures: 0 };
const PACKAGES = ['a', 'b', 'c', 'd'];
const NAMES = PACKAGES.map((name) => `apps.${name}.v1`);
const MAX_TURNS = 8;
/** Longer ones are those of regular polls and of failures. */
const MAX_PAUSE_MS = 2000;
/** Until a request without a response has failed: far more than a response takes. */
const HANG_MS = 1500;
const LONG = { timeout: 60_000 };

describe('proposals of a repository on GitHub', () => {
  let server: GitHubServer;
  let folder: string;
  let repository: GitHubRepository;
  let world: Fixture;
  let forges: GitHubForge[];
  let limits: { readonly timeoutMs?: number };
  let controller: ReturnType<typeof pullRequestController>;

  beforeEach(async () => {
    server = new GitHubServer();
    folder = mkdtempSync(join(tmpdir(), 'sluice-github-outages-'));
    await server.listen();
    repository = server.createRepository('acme', 'packages', ['acme', 'anna']);
    mkdirSync(join(folder, 'data'));
    world = await open({ folder: join(folder, 'data'), packages: repository.gitDir });
    forges = [];
    limits = {};
    // The controller closes one that no proposal uses, and opens another one.
    const openForge = () => {
      const forge = new GitHubForge({
        ...{ api: server.api, owner: 'acme', name: 'packages', network: DEFAULT_NETWORK },
        ...{ tokenName: 'Secret default/github', ...limits },
        credentials: async () => ({
          app: { id: APP.id, privateKey: server.privateKey, installation: APP.installation },
        }),
      });
      forges.push(forge);
      return forge;
    };
    const host = { provider: 'github', api: server.api, secretRef: { name: 'github' } } as const;
    const review = { forge: host, publishOn: 'review', approvers: [{ user: 'anna', subject: 'anna@example.com' }] };
    await world.client.create(packagePolicyKind, { metadata: { name: 'review' }, spec: { review } } as never);
    const { client, store } = world;
    controller = pullRequestController({
      ...{ client, store, clock: systemClock, renderer: undefined, openForge },
      ...{ mayApprove: undefined, maySetConditions: undefined, recorder: world.recorder('controller:pull-request') },
    });
    for (const name of PACKAGES) {
      const draft = await world.draft(`apps/${name}/v1`, {
        'a.yaml': 'kind: A\napiVersion: v1\nmetadata: {name: a}\n',
      });
      await world.store.update(draft.name, { action: 'propose' }, { ...ANNA, actor: { name: 'berta' } });
    }
    await expect.poll(() => world.policyFor(world.store.get(NAMES[0] ?? '')).review).toBeDefined();
  });
  afterEach(async () => {
    server.fault = () => undefined;
    await Promise.all(forges.map((forge) => forge.close()));
    await world[Symbol.asyncDispose]();
    fsck(repository.gitDir);
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** All proposals at once, as the workers of the manager do, which repeats what failed, and waits for what requires it. */
  async function reconcile() {
    const attempt = (name: string) =>
      controller.reconcile({ namespace: 'default', name }, CONTEXT).catch((error: unknown) => {
        if (!isSluiceError(error)) throw error;
        return undefined;
      });
    const results = await Promise.all([...NAMES, 'apps'].map(attempt));
    const pauses = results.flatMap((result) => result?.requeueAfter ?? []).filter((pause) => pause < MAX_PAUSE_MS);
    await delay(Math.max(0, ...pauses));
    return results;
  }
  const lifecycles = () => NAMES.map((name) => world.store.get(name).lifecycle);

  async function approveAll(): Promise<void> {
    await nextSecond();
    const authorization = `Bearer ${server.createToken('anna')}`;
    for (const { number } of repository.pulls) {
      const address = `${server.api}/repos/acme/packages/pulls/${number}/reviews`;
      const body = JSON.stringify({ event: 'APPROVE', body: 'fine' });
      expect((await fetch(address, { method: 'POST', headers: { authorization }, body })).ok).toBe(true);
    }
    await nextSecond();
  }

  async function expectAllPublished(): Promise<void> {
    for (let turn = 0; turn < MAX_TURNS && repository.pulls.length < NAMES.length; turn += 1) await reconcile();
    await approveAll();
    const turn = async () => {
      await reconcile();
      return lifecycles();
    };
    await expect.poll(turn).toEqual(NAMES.map(() => 'Published'));
    expect(repository.pulls.map(({ head }) => head.branch).sort()).toEqual(
      PACKAGES.map((name) => `proposed/${name}/v1`),
    );
    expect(server.problems).toEqual([]);
  }

  test('a token that ends in a burst of requests is replaced, and each proposal has one pull request', async () => {
    let requests = 0;
    server.fault = () => {
      requests += 1;
      if (requests % 7 === 0) server.revokeInstallationTokens();
      return undefined;
    };
    for (let turn = 0; turn < MAX_TURNS; turn += 1) await reconcile();
    expect(repository.pulls).toHaveLength(NAMES.length);
    server.fault = () => undefined;
    await expectAllPublished();
  });

  test.each<[string, Fault]>([
    [
      'a secondary limit',
      {
        ...{ status: 403, headers: { 'retry-after': '1' } },
        body: '{"message":"You have exceeded a secondary rate limit. Please wait a few minutes"}',
      },
    ],
    ['status 429', { status: 429, headers: { 'retry-after': '1' }, body: '{"message":"Too many requests"}' }],
    ['status 500', { status: 500, body: '{"message":"Server Error"}' }],
    ['status 502 after the effect', { status: 502, body: '<html>Unicorn!</html>', afterEffect: true }],
    ['no response', 'hang'],
  ])(
    '%s to each kind of request leaves one pull request for each proposal, which is published once',
    async (_, fault) => {
      limits = { timeoutMs: HANG_MS };
      const counts = new Map<string, number>();
      const faulted = new Set<string>();
      const failSome = ({ method, url }: GitHubRequest): Fault | undefined => {
        const kind = `${method} ${url.replaceAll(/[0-9a-f]{40}|\d+/g, '*').split('?')[0]}`;
        const count = (counts.get(kind) ?? 0) + 1;
        counts.set(kind, count);
        if (count !== 1 && count !== 4) return undefined;
        faulted.add(kind);
        return fault;
      };
      server.fault = failSome;
      const openPulls = async () => {
        await reconcile();
        return repository.pulls.length;
      };
      await expect.poll(openPulls, LONG).toBe(NAMES.length);
      // Texts and checks are written too before a user decides.
      for (let turn = 0; turn < 2; turn += 1) await reconcile();
      server.fault = () => undefined;
      await approveAll();
      server.fault = failSome;
      const turn = async () => {
        await reconcile();
        return lifecycles();
      };
      await expect.poll(turn, LONG).toEqual(NAMES.map(() => 'Published'));
      for (let left = 0; left < 2; left += 1) await reconcile();
      expect(repository.pulls.map(({ head }) => head.branch).sort()).toEqual(
        PACKAGES.map((name) => `proposed/${name}/v1`),
      );
      expect(git(repository.gitDir, ['tag', '--list']).trim().split('\n').sort()).toEqual(
        PACKAGES.map((name) => `${name}/v1`),
      );
      for (const name of NAMES) {
        expect(world.store.get(name).outOfBand).toBeUndefined();
        expect((await world.events(name)).filter((event) => event.startsWith('Approved: '))).toHaveLength(1);
      }
      for (const kind of [/access_tokens$/, /^POST .*\/graphql$/, /^POST .*\/pulls$/, /^POST .*\/check-runs$/])
        expect([...faulted]).toContainEqual(expect.stringMatching(kind));
      expect(server.problems).toEqual([]);
    },
  );

  test('a pull request that was closed proposes its package again once its branch is restored and it is opened again', async () => {
    for (let turn = 0; turn < MAX_TURNS && repository.pulls.length < NAMES.length; turn += 1) await reconcile();
    await reconcile();
    const [pull] = repository.pulls;
    const name = `apps.${pull?.head.branch.split('/')[1]}.v1`;
    const commit = world.store.get(name).commit;
    const authorization = `Bearer ${server.createToken('anna')}`;
    const setState = async (state: string) => {
      const address = `${server.api}/repos/acme/packages/pulls/${pull?.number}`;
      return (await fetch(address, { method: 'PATCH', headers: { authorization }, body: JSON.stringify({ state }) }))
        .status;
    };
    const turn = async () => {
      await reconcile();
      return world.store.get(name).lifecycle;
    };
    await nextSecond();
    expect(await setState('closed')).toBe(200);
    await expect.poll(turn).toBe('Draft');
    await expect
      .poll(async () => {
        await reconcile();
        return pull?.body;
      })
      .toContain('restore the branch of this pull request, and open it again');
    await nextSecond();
    // The button of the page that restores the branch has the same rule.
    expect(await setState('open')).toBe(422);
    repository.branch(pull?.head.branch ?? '', commit);
    expect(await setState('open')).toBe(200);
    await world.store.repository('apps').sync();
    await expect.poll(turn).toBe('Proposed');
    await expect
      .poll(async () => {
        await reconcile();
        return pull?.body;
      })
      .toContain('Closing this pull request rejects the proposal');
    expect(repository.pulls).toHaveLength(NAMES.length);
    expect(pull?.closedAt).toBeUndefined();
    expect(await world.events(name)).toContainEqual(expect.stringMatching(/^PullRequestReopened: /));
    expect(server.problems).toEqual([]);
  });

  test.each(['merge', 'squash', 'rebase'])('are published by a merge that removes their branch: %s', async (method) => {
    const policy = { namespace: 'default', name: 'review' };
    await world.client.patch(packagePolicyKind, policy, { spec: { review: { publishOn: 'merge' } } });
    await expect.poll(() => world.policyFor(world.store.get(NAMES[0] ?? '')).review?.publishOn).toBe('merge');
    for (let turn = 0; turn < MAX_TURNS && repository.pulls.length < NAMES.length; turn += 1) await reconcile();
    await reconcile();
    const authorization = `Bearer ${server.createToken('anna')}`;
    await nextSecond();
    for (const { number, head } of repository.pulls) {
      const address = `${server.api}/repos/acme/packages/pulls/${number}/merge`;
      const body = JSON.stringify({ merge_method: method });
      expect((await fetch(address, { method: 'PUT', headers: { authorization }, body })).status).toBe(200);
      repository.deleteBranch(head.branch);
    }
    await world.store.repository('apps').sync();
    expect(NAMES.map((name) => world.store.find(name))).toEqual(NAMES.map(() => undefined));
    await expect
      .poll(async () => {
        await reconcile();
        await world.store.repository('apps').sync();
        return NAMES.map((name) => world.store.find(name)?.lifecycle);
      }, LONG)
      .toEqual(NAMES.map(() => 'Published'));
    expect(NAMES.map((name) => world.store.get(name).outOfBand)).toEqual(NAMES.map(() => undefined));
    expect(git(repository.gitDir, ['for-each-ref', 'refs/heads/proposed'])).toBe('');
    expect(server.problems).toEqual([]);
  });

  test.each<[string, (request: GitHubRequest) => Fault | undefined, RegExp]>([
    [
      'an App that was deleted',
      ({ url }) =>
        url.includes('/access_tokens') ? { status: 401, body: '{"message":"Integration not found"}' } : undefined,
      /^PullRequestFailed: .*401/,
    ],
    [
      'an App that was uninstalled',
      ({ url }) => (url.includes('/access_tokens') ? { status: 404, body: '{"message":"Not Found"}' } : undefined),
      /^PullRequestFailed: .*404.*install App/,
    ],
    [
      'a repository that was renamed',
      ({ url }) =>
        url.includes('/repos/acme/packages')
          ? { status: 301, headers: { location: `/repositories/1` }, body: '{"message":"Moved Permanently"}' }
          : undefined,
      /^PullRequestFailed: .*renamed; register its new address/,
    ],
  ])('%s is reported with the cause; nothing is lost, and the work goes on after it', async (_, fault, reported) => {
    for (let turn = 0; turn < 2; turn += 1) await reconcile();
    expect(repository.pulls).toHaveLength(NAMES.length);
    server.revokeInstallationTokens();
    server.fault = fault;
    // The branch of one proposal moves, so that its checks have to be written.
    for (const name of NAMES) await world.store.change(name, { metadata: { labels: { seen: 'yes' } } }, ANNA);
    // The first requests find that the token has ended, the next ones request another one.
    await reconcile();
    const results = await reconcile();
    expect(results).toContainEqual(expect.objectContaining({ requeueAfter: 60_000 }));
    expect(lifecycles()).toEqual(NAMES.map(() => 'Proposed'));
    for (const name of NAMES) expect(await world.events(name), name).toContainEqual(expect.stringMatching(reported));
    server.fault = () => undefined;
    await expectAllPublished();
  });
});

/** Hosts record times in seconds, and polls are seconds apart: two changes of one second look like one only here. */
async function nextSecond(): Promise<void> {
  await delay(1000 - (Date.now() % 1000));
}
