import { afterAll, beforeAll, expect, test } from 'vitest';
import { APP, GitHubServer } from '../../../test/support/github/github-server.ts';
import type { Forge } from '../../forge/forge.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../git/network/git-network.ts';
import type { ReviewPolicy } from '../../package/model/policy/review-policy.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { providerProblem, repositoryAt } from './forge-repository.ts';
import { openForges } from './forges.ts';

const NO_SIGNAL = new AbortController().signal;
const server = new GitHubServer();
const forges: Forge[] = [];
beforeAll(async () => {
  await server.listen();
  server.createRepository('acme', 'packages', ['sluice-user']);
});
afterAll(async () => {
  for (const forge of forges) await forge.close();
  await server.close();
  expect(server.problems).toEqual([]);
});

/** Opens a repository with the credentials of a Secret. */
async function open(
  stringData: Readonly<Record<string, string>>,
  address = `${server.url}/acme/packages.git`,
  api = server.api,
  teams: ReviewPolicy['teams'] = [],
) {
  const registry = new Registry();
  registry.register(new MemoryStorage(secretKind, { clock: systemClock, log: new EventLog({ clock: systemClock }) }));
  const client = new RegistryClient(registry, { name: 'anna' }, 'controller');
  await client.create(secretKind, { metadata: { name: 'forge', namespace: 'default' }, stringData });
  const review: ReviewPolicy = {
    policy: 'reviewed',
    forge: { provider: 'github', api, secretRef: { name: 'forge', key: 'token' } },
    ...{
      publishOn: 'approval',
      mergeMethod: 'merge',
      approvers: [],
      teams,
      reviewers: { users: [], teams: [] },
      labels: [],
      gateChecks: [],
      userPullRequests: 'check',
    },
  };
  const forge = openForges({ client, network: DEFAULT_NETWORK, clock: systemClock }).forReview(
    review,
    'default',
    address,
  );
  forges.push(forge);
  return forge;
}

const app = () => ({ githubAppID: String(APP.id), githubAppPrivateKey: server.privateKey });

test('the permission to read members is requested for policies with teams alone', async () => {
  const requested = async (teams: ReviewPolicy['teams']) => {
    const forge = await open(app(), undefined, undefined, teams);
    await forge.listOpen('main', 1, NO_SIGNAL);
    const { body } = server.requests.findLast(({ url }) => url.endsWith('/access_tokens')) ?? {};
    return (body as { permissions: Record<string, string> }).permissions.members;
  };
  expect(await requested([])).toBeUndefined();
  expect(await requested([{ team: 'acme/sre', groups: ['sre'] }])).toBe('read');
});

test.each<[string, () => Readonly<Record<string, string>>]>([
  ['a token', () => ({ token: `${server.createToken('sluice-user')}\n` })],
  ['an App', () => ({ ...app(), token: 'not used' })],
  ['an App with its installation', () => ({ ...app(), githubAppInstallationID: `${APP.installation}\n` })],
])('GitHub is opened with %s', async (_what, data) => {
  const forge = await open(data());
  expect(await forge.listOpen('main', 10, NO_SIGNAL)).toEqual([]);
});

test.each<[string, () => Readonly<Record<string, string>>, RegExp]>([
  [
    'has neither',
    () => ({ other: 'x' }),
    /Secret default\/forge, which .* of policy reviewed .*no value for the key token/,
  ],
  ['has no key', () => ({ githubAppID: '1' }), /no value for the key githubAppPrivateKey/],
  ['has a name for the id', () => ({ ...app(), githubAppID: 'secret-app' }), /no number for the key githubAppID/],
  [
    'has no number',
    () => ({ ...app(), githubAppInstallationID: '-1' }),
    /no number for the key githubAppInstallationID/,
  ],
])('a Secret that %s is reported, without its values', async (_what, data, message) => {
  const forge = await open(data());
  const failed = await forge.listOpen('main', 10, NO_SIGNAL).catch((error: unknown) => String(error));
  expect(failed).toMatch(message);
  expect(failed).not.toContain('secret-app');
});

test.each([
  ['https://github.com/acme/packages.git', 'https://api.github.com'],
  ['git@github.com:acme/packages.git', 'https://api.github.com/'],
  ['https://acme.ghe.com/acme/packages', 'https://api.acme.ghe.com'],
  ['https://ghe.example.com/acme/packages', 'https://ghe.example.com/api/v3'],
])('the repository %s is on the host of %s', async (address, api) => {
  await open({ token: 'x' }, address, api);
  expect(repositoryAt(address, api, 'spec.review.forge')).toEqual({ owner: 'acme', name: 'packages' });
});

test.each([
  ['https://git.example.com/acme/packages', 'https://api.github.com'],
  ['https://example.com/acme/packages', 'https://api.example.com'],
  ['https://evil.com/acme/packages', 'https://api.github.com.evil.com'],
])('the repository %s is not on the host of %s', async (address, api) => {
  await expect(open({ token: 'x' }, address, api)).rejects.toThrow(
    /the repository is not on .*, which spec\.review\.forge\.api of policy reviewed names/,
  );
});

test('no token is sent in plain text for a repository with an https:// address', async () => {
  await expect(
    open({ token: 'x' }, 'https://git.example.com/acme/packages', 'http://git.example.com/api/v1'),
  ).rejects.toThrow(/spec\.review\.forge\.api of policy reviewed is not an https:\/\/ address/);
});

test.each([
  ['github', 'https://git.example.com/api/v1', true],
  ['github', 'https://git.example.com/gitea/api/v1/', true],
  ['github', 'https://api.github.com', false],
  ['github', 'https://git.example.com/api/v3', false],
  ['gitea', 'https://git.example.com/api/v3', true],
  ['forgejo', 'https://git.example.com/api/v1', false],
])('the API of a kind of host is not read as that of another one: %s, %s', (provider, api, isOther) => {
  const problem = providerProblem(provider, api, 'spec.review.forge.secretRef of policy review');
  expect(problem !== undefined).toBe(isOther);
  if (isOther) expect(problem).toContain(`spec.review.forge.provider of policy review is ${provider}`);
});

test('nothing is requested from the API of another kind of host', async () => {
  await expect(open({ token: 'x' }, `${server.url}/acme/packages`, `${server.url}/api/v1`)).rejects.toThrow(
    /ends with \/api\/v1, as that of Gitea and Forgejo does/,
  );
});
