import { expect, test } from 'vitest';
import { APP, GitHubServer } from '../../../test/support/github/github-server.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { DEFAULT_NETWORK } from '../../git/network/git-network.ts';
import { RegistryClient } from '../../resource/client/registry-client.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { packagePolicyKind } from '../../resource/kinds/sluice/package-policy.ts';
import { MemoryStorage } from '../../resource/storage/memory/memory-storage.ts';
import { Registry } from '../../resource/storage/registry.ts';
import { EventLog } from '../../resource/watch/event-log.ts';
import { reviewProblems } from './review-problems.ts';

type Data = Readonly<Record<string, string>>;

interface Api {
  readonly provider: 'gitea' | 'github';
  readonly api: string;
}

const GITEA: Api = { provider: 'gitea', api: 'https://git.example.com/api/v1' };
const GITHUB: Api = { provider: 'github', api: 'https://api.github.com' };

async function problemsOf(forge: Api, stringData: Data | undefined, review: object = {}): Promise<string[]> {
  const registry = new Registry();
  registry.register(new MemoryStorage(secretKind, { clock: systemClock, log: new EventLog({ clock: systemClock }) }));
  const client = new RegistryClient(registry, { name: 'anna' }, 'controller');
  const metadata = { name: 'forge', namespace: 'default' };
  if (stringData !== undefined) await client.create(secretKind, { metadata, stringData });
  const policy = packagePolicyKind.complete({
    metadata: { name: 'reviewed', namespace: 'default' },
    spec: { review: { forge: { ...forge, secretRef: { name: 'forge' } }, ...review } },
  });
  return reviewProblems(client, DEFAULT_NETWORK.hosts, policy, new AbortController().signal);
}

const { privateKey } = new GitHubServer();
const app = { githubAppID: String(APP.id), githubAppPrivateKey: privateKey };

test.each<[string, Api, Data]>([
  ['a token for Gitea', GITEA, { token: 'x' }],
  ['a token for GitHub', GITHUB, { token: 'x' }],
  ['an App', GITHUB, app],
])('%s has the form that is needed', async (_what, forge, data) => {
  expect(await problemsOf(forge, data)).toEqual([]);
});

test.each<[string, Api, Data | undefined, RegExp]>([
  ['that is missing', GITEA, undefined, /^Secret forge of spec.review.forge.secretRef does not exist/],
  ['with an empty token', GITEA, { token: '\n' }, /policy reviewed refers to, has no value for the key token/],
  ['with an App alone, for Gitea', GITEA, app, /has no value for the key token/],
  ['without the key of the App', GITHUB, { githubAppID: '1' }, /has no value for the key githubAppPrivateKey/],
  [
    'with another text as key of the App',
    GITHUB,
    { ...app, githubAppPrivateKey: 'secret-junk' },
    /the private key of the App in Secret default\/forge, .* is no RSA key in PEM/,
  ],
  ['with a name as id', GITHUB, { ...app, githubAppID: 'secret-app' }, /has no number for the key githubAppID/],
])('a Secret %s is a problem before any proposal, and its values are not shown', async (_what, forge, data, text) => {
  const problems = await problemsOf(forge, data);
  expect(problems).toEqual([expect.stringMatching(text)]);
  expect(problems.join()).not.toMatch(/secret-/);
});

test.each([
  [
    { ...GITEA, api: 'https://git.example.com' },
    /spec.review.forge.api of policy reviewed does not end with \/api\/v1/,
  ],
  [{ ...GITEA, api: 'https://git.example.com/api/v3' }, /spec.review.forge.api of policy reviewed ends with \/api\/v3/],
  [
    { ...GITEA, api: 'http://git.example.com/api/v1' },
    /^spec.review.forge.api of policy reviewed: remote .* is refused: http sends everything in clear text/,
  ],
])('the address in %j is a problem, which names the field', async (forge, text) => {
  expect(await problemsOf(forge, { token: 'x' })).toEqual([expect.stringMatching(text)]);
});

test('a Secret that the cluster does not let Sluice read is a problem, with the command that permits it', async () => {
  const refusal =
    'secrets "forge" is forbidden: User "system:serviceaccount:sluice-system:sluice" cannot get resource "secrets" in API group "" in the namespace "default"';
  const policy = packagePolicyKind.complete({
    metadata: { name: 'reviewed', namespace: 'default' },
    spec: { review: { forge: { ...GITEA, api: 'https://git.example.com', secretRef: { name: 'forge' } } } },
  });
  const problemsWith = (error: Error) => {
    const client = { find: () => Promise.reject(error) } as never;
    return reviewProblems(client, DEFAULT_NETWORK.hosts, policy, new AbortController().signal);
  };
  expect(await problemsWith(new SluiceError('Refused', refusal))).toEqual([
    expect.stringContaining('does not end with /api/v1'),
    `${refusal}; permit it: kubectl create rolebinding sluice-git-credentials --namespace default --clusterrole=sluice-git-credentials --serviceaccount=sluice-system:sluice`,
  ]);
  await expect(problemsWith(new SluiceError('Unavailable', 'gone'))).rejects.toThrow('gone');
});

test('a user of the host who is mapped twice is named', async () => {
  const approvers = ['bob', 'eve', 'Bob'].map((user) => ({ user, subject: `${user}@example.com` }));
  expect(await problemsOf(GITEA, { token: 'x' }, { approvers })).toEqual([
    'spec.review.approvers of policy reviewed lists Bob more than once, of which only the first entry counts; remove the others',
  ]);
});

test.each(['https://git.example.com/api/v1?token=x', 'https://git.example.com/api/v1#x', 'https://git.example.com?a'])(
  'the address %s is refused: its query would be a secret that every reader sees',
  async (api) => {
    await expect(problemsOf({ ...GITEA, api }, undefined)).rejects.toThrow(/forge\.api.*a query or a fragment/);
  },
);
