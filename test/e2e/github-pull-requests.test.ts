import { mkdirSync, symlinkSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type CliFixture, cliFixture } from '../../src/cli/testing.ts';
import { RunningUp } from '../support/api/running-up.ts';
import { freePort } from '../support/free-port.ts';
import { fsck, git } from '../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import type { GitHubRepository, Pull } from '../support/github/github-repository.ts';
import { APP, GitHubServer } from '../support/github/github-server.ts';
import { GitHubWebhooks, postSigned } from '../support/github/github-webhooks.ts';

/** Administers the repositories, and may merge in spite of a missing check. */
const OWNER = 'acme';
const GATE = 'example.com/Tested';
const READY = 'sluice/ready';
/** Commands run in the process of the servers: seldom enough to let those respond. */
const WAIT = { timeout: 120_000, interval: 100 };
const SECRET = 'the secret of the webhook of the App';
const POLICY = {
  ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'PackagePolicy', metadata: { name: 'review' } },
  spec: {
    requiredGates: [{ conditionType: GATE, approveOnly: true }],
    // Who merges is not mapped: without the review, the merge would be no approval.
    approval: { quorum: { required: 1 } },
    review: {
      publishOn: 'merge',
      approvers: [{ user: 'bob', subject: 'bob@example.com' }],
      ...{ reviewers: { users: ['bob'] }, labels: ['package'], gateChecks: [GATE] },
    },
  },
};

let cli: CliFixture;
let server: GitHubServer;
let host: GitServer;
let packages: GitHubRepository;
let edge: GitHubRepository;
let up: RunningUp;
let webhooks: GitHubWebhooks;
let hooksUrl: string;
let refs = new Map<string, string>();
const events = new Set<string>();
const responses: (number | undefined)[] = [];

/** A repository of the host that is served for Git too. */
function createRepository(name: string): GitHubRepository {
  const repository = server.createRepository(OWNER, name, [OWNER, 'anna', 'bob', APP.user]);
  mkdirSync(join(server.folder, OWNER), { recursive: true });
  symlinkSync(repository.gitDir, join(server.folder, OWNER, `${name}.git`));
  return repository;
}

/** Reports the branches and tags that have changed since the last report. */
function reportPushes(): void {
  const format = '--format=%(refname) %(objectname)';
  const lines = git(packages.gitDir, ['for-each-ref', format, 'refs/heads', 'refs/tags']).split('\n');
  const now = new Map(lines.map((line) => line.split(' ') as [string, string]));
  for (const ref of new Set([...refs.keys(), ...now.keys()]))
    if (refs.get(ref) !== now.get(ref)) webhooks.reportPush(ref);
  refs = now;
}

beforeAll(async () => {
  cli = await cliFixture();
  server = new GitHubServer();
  await server.listen();
  packages = createRepository('packages');
  edge = createRepository('edge');
  packages.protections.set('main', { check: READY, exemptsOwner: true });
  host = await startGitServer({
    root: server.folder,
    afterRequest: (url) => {
      if (url.endsWith(`/${packages.name}.git/git-receive-pack`)) reportPushes();
    },
  });
  const port = await freePort();
  hooksUrl = `http://127.0.0.1:${port}/webhooks/github-app/default/forge`;
  webhooks = new GitHubWebhooks({
    ...{ repository: packages, url: hooksUrl, secret: SECRET },
    get page() {
      return `${host.url}/${OWNER}/${packages.name}`;
    },
    onSend: (event, payload) => {
      events.add([event, ...(payload.action === undefined ? [] : [payload.action])].join(' '));
      server.checkWebhook(event, payload);
    },
    onResponse: (status) => responses.push(status),
  });
  server.after = (request) => {
    webhooks.report(request);
    if (request.method === 'PUT') reportPushes();
  };
  const words = ['--allow-git-host', '127.0.0.1', '--webhook-listen', `127.0.0.1:${port}`];
  up = await RunningUp.start(cli.data, { words });
  const app = { githubAppID: `${APP.id}`, githubAppInstallationID: `${APP.installation}` };
  const keys = { githubAppPrivateKey: server.privateKey, githubAppWebhookSecret: SECRET };
  const secret = { ...app, ...keys, username: 'x', token: 'x' };
  await create('/api/v1/namespaces/default/secrets', {
    ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'forge' }, stringData: secret },
  });
  await create('/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings', {
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata: { name: 'bob-approves' } },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'sluice:approver' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'bob@example.com' }],
  });
  const forge = { provider: 'github', api: server.api, secretRef: { name: 'forge' } };
  const spec = { ...POLICY.spec, review: { ...POLICY.spec.review, forge } };
  await create('/apis/sluice.dev/v1alpha1/namespaces/default/packagepolicies', { ...POLICY, spec });
  const secretRef = { name: 'forge' };
  await register('packages');
  await create('/apis/sluice.dev/v1alpha1/namespaces/default/deliverytargets', {
    ...{ apiVersion: 'sluice.dev/v1alpha1', kind: 'DeliveryTarget', metadata: { name: 'edge' } },
    spec: { selector: { repositories: ['packages'] }, git: { repo: address('edge'), branch: 'main', secretRef } },
  });
});
afterAll(async () => {
  await up?.end();
  await host?.close();
  await server?.close();
  await cli?.[Symbol.asyncDispose]();
});

const address = (repository: string) => `${host.url}/${OWNER}/${repository}.git`;

/** Registers a repository of the host as `packages`. */
async function register(repository: string): Promise<void> {
  await create('/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories', {
    ...{ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name: 'packages' } },
    spec: { git: { repo: address(repository), secretRef: { name: 'forge' } } },
  });
}

async function create(path: string, object: object): Promise<void> {
  const { status, text } = await up.api.post(path, object);
  expect(status, text).toBe(201);
}

async function sluice(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await cli.run(...words);
  expect(code, `sluice ${words.join(' ')}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

/** A command that prints this text at last. */
async function shows(text: string | RegExp, ...words: string[]): Promise<void> {
  await expect.poll(() => sluice(...words), WAIT).toMatch(text);
}

/** Calls the API as a user of the host does with buttons. Returns the status and the message. */
async function press(
  user: string,
  method: string,
  path: string,
  body: object,
  repository = 'packages',
): Promise<string> {
  const response = await fetch(`${server.api}/repos/${OWNER}/${repository}/${path}`, {
    ...{ method, headers: { authorization: `Bearer ${server.createToken(user)}` }, body: JSON.stringify(body) },
  });
  const { message = '' } = (await response.json()) as { message?: string };
  return `${response.status} ${message}`;
}

/** Edits a draft and proposes it. Returns its pull request, once it has its label. */
async function propose(name: string, value: string): Promise<Pull> {
  const folder = join(cli.folder, name);
  await sluice('rpkg', 'pull', name, folder);
  const configMap = `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  value: ${value}\n`;
  await writeFile(join(folder, 'cm.yaml'), configMap);
  await sluice('rpkg', 'push', name, folder);
  const before = packages.pulls.length;
  await sluice('rpkg', 'propose', name);
  await expect.poll(() => [...(packages.pulls[before]?.labels ?? [])], WAIT).toEqual(['package']);
  return packages.pulls[before] as Pull;
}

/** The check at the head of the pull request. */
function checkOf({ head }: Pull, name: string) {
  packages.follow();
  return packages.runs.findLast((run) => run.commit === head.commit && run.name === name);
}

const delivered = () => git(edge.gitDir, ['show', 'main:web/cm.yaml']);

test('a proposal with a failing gate is tested, reviewed by a second user, merged with the button, published and delivered', async () => {
  await shows(/packages .*True/, 'repo', 'get');
  await sluice('rpkg', 'init', 'web', '--repository', 'packages', '--workspace', 'v1');
  const name = 'packages.web.v1';
  const pull = await propose(name, 'one');
  expect(pull).toMatchObject({ author: APP.user, title: 'Publish web (v1)', base: 'main' });
  await expect.poll(() => [...pull.requestedUsers], WAIT).toEqual(['bob']);

  const failed = ['--reason', 'LoadTest', '--message', '3 of 100 requests failed'];
  await sluice('rpkg', 'condition', 'set', name, GATE, 'False', ...failed);
  await expect.poll(() => checkOf(pull, READY)?.conclusion, WAIT).toBe('failure');
  const gate = `sluice/gate/${GATE}`;
  await expect.poll(() => checkOf(pull, gate)?.conclusion, WAIT).toBe('failure');
  expect(checkOf(pull, READY)?.text).toMatch(
    /\| `example.com\/Tested` \| \*\*NotTrue\*\* \| .*3 of 100 requests failed/,
  );
  await expect.poll(() => pull.body, WAIT).toContain('3 of 100 requests failed');
  expect(await press('anna', 'PUT', `pulls/${pull.number}/merge`, {})).toBe(
    `405 Required status check "${READY}" is expected.`,
  );

  await sluice('rpkg', 'condition', 'set', name, GATE, 'True', '--reason', 'LoadTest');
  await expect.poll(() => checkOf(pull, READY)?.conclusion, WAIT).toBe('success');
  await expect.poll(() => checkOf(pull, gate)?.conclusion, WAIT).toBe('success');
  expect(await press('bob', 'POST', `pulls/${pull.number}/reviews`, { event: 'APPROVE', body: 'fine' })).toBe('200 ');
  expect(await press('anna', 'PUT', `pulls/${pull.number}/merge`, { merge_method: 'squash' })).toMatch(/^200 /);
  await shows(/Published/, 'rpkg', 'get', name);

  expect(git(packages.gitDir, ['rev-parse', 'web/v1^{commit}'])).toBe(pull.merged?.commit);
  expect(git(packages.gitDir, ['rev-parse', 'main'])).toBe(pull.merged?.commit);
  await expect.poll(() => git(packages.gitDir, ['for-each-ref', 'refs/heads/proposed']), WAIT).toBe('');
  expect(await sluice('rpkg', 'history', name)).toMatch(/bob@example\.com .*approve .*\/acme\/packages\/pull\/1/);
  expect(await sluice('why', name)).not.toMatch(/out of band/i);
  await shows(/edge +1 +True/, 'target', 'get');
  expect(delivered()).toContain('value: one');
});

test('a merge by an administrator in spite of a closed gate is flagged, and not delivered', async () => {
  await sluice('rpkg', 'copy', 'packages.web.v1', '--workspace', 'v2');
  const name = 'packages.web.v2';
  const pull = await propose(name, 'two');
  const pending = { status: 'in_progress', title: expect.stringMatching(/^1 of 1 gates closed: example.com\/Tested/) };
  await expect.poll(() => checkOf(pull, READY), WAIT).toMatchObject(pending);
  expect(await press('bob', 'PUT', `pulls/${pull.number}/merge`, {})).toMatch(/^405 Required status check/);
  expect(await press(OWNER, 'PUT', `pulls/${pull.number}/merge`, {})).toMatch(/^200 /);
  await shows(/Published/, 'rpkg', 'get', name);
  await shows(/edge: Not delivered: v2 was published out of band/, 'why', name);
  expect(await sluice('why', name)).toMatch(/it did not come through the gates \(GateUnmet\): .*example\.com\/Tested/);
  const { body } = await up.api.list(`/api/v1/namespaces/default/events?fieldSelector=involvedObject.name=${name}`);
  expect(body.items.map(({ reason, message }) => `${reason}: ${message}`)).toContainEqual(
    expect.stringMatching(/^OutOfBand: .*\/pull\/2 was merged by acme although it could not be published/),
  );
  expect(delivered()).toContain('value: one');
});

test('commands in comments do not run again when the repository has another name', async () => {
  await sluice('rpkg', 'init', 'api', '--repository', 'packages', '--workspace', 'v1');
  const name = 'packages.api.v1';
  const { number, comments } = await propose(name, 'one');
  const command = (body: string, repository?: string) =>
    press('bob', 'POST', `issues/${number}/comments`, { body }, repository);
  const reply = () => comments.map(({ body }) => body).join('\n');
  expect(await command('/sluice approve')).toMatch(/^201/);
  await expect.poll(reply, WAIT).toMatch(/\*\*Refused\*\*: .*example\.com\/Tested/);
  await sluice('rpkg', 'condition', 'set', name, GATE, 'True', '--reason', 'LoadTest');

  packages.name = 'renamed';
  symlinkSync(packages.gitDir, join(server.folder, OWNER, 'renamed.git'));
  await sluice('repo', 'unreg', 'packages');
  expect(await command('/sluice reject too late', 'renamed')).toMatch(/^201/);
  // Both times are in whole seconds.
  await new Promise((resolve) => setTimeout(resolve, 2000));
  await register('renamed');
  await expect.poll(reply, WAIT).toContain('it was written before the Repository was registered');
  // In the order of writing: the first one is not executed before it.
  expect(await sluice('rpkg', 'get', name)).toMatch(/Proposed/);
});

test('all requests, responses and webhooks are as GitHub describes them, and each webhook was accepted', async () => {
  await expect.poll(() => responses.length, WAIT).toBeGreaterThanOrEqual(events.size);
  expect([...new Set(responses)]).toEqual([202]);
  expect([...events]).toEqual(
    expect.arrayContaining([
      ...['pull_request opened', 'pull_request labeled', 'pull_request edited', 'pull_request review_requested'],
      ...['check_run created', 'pull_request_review submitted', 'pull_request closed', 'push'],
    ]),
  );
  expect((await postSigned(hooksUrl, 'another secret', 'push', { ref: 'refs/heads/main' })).status).toBe(401);
  expect(server.problems).toEqual([]);
  expect(up.ownFailures()).toEqual([]);
  for (const { gitDir } of [packages, edge]) fsck(gitDir);
});
