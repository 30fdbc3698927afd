import { expect, test } from 'vitest';
import { objectBench } from '../../../controllers/testing-objects.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { credentialsOf, secretCredentials } from './credentials.ts';

test('a reference without a name is none, as clients written in Go send it', async () => {
  await using bench = objectBench();
  const { client } = bench;
  const repositoryWith = (name: string) => {
    const git = { repo: 'https://git.example.com/apps.git', secretRef: { name } };
    return repositoryKind.complete({ metadata: { name: 'apps' }, spec: { git } });
  };
  const askedFor = (name: string) => credentialsOf(client, repositoryWith(name), { name });
  expect(askedFor('')).toBeUndefined();
  await expect(askedFor('auth')?.()).rejects.toThrow('Secret default/auth, which Repository default/apps refers to,');
});

const ssh = { privateKey: 'a key', knownHosts: 'host ssh-ed25519 AAAA' };

test.each([
  [{ username: 'ci', password: 'pw\n' }, { basic: { username: 'ci', password: 'pw' } }],
  [{ token: 't' }, { basic: { username: 'x-access-token', password: 't' } }],
  [{ username: 'ci', bearerToken: 't' }, { basic: { username: 'ci', password: 't' } }],
  [{ identity: 'a key\n', known_hosts: 'host ssh-ed25519 AAAA\n' }, { ssh }],
  [{ 'ssh-privatekey': 'a key', known_hosts: 'host ssh-ed25519 AAAA' }, { ssh }],
  [{ 'ca.crt': 'PEM\n' }, { certificateAuthorities: 'PEM' }],
  [
    { identity: 'a key', known_hosts: 'host ssh-ed25519 AAAA', token: 't', 'ca.crt': 'PEM' },
    { basic: { username: 'x-access-token', password: 't' }, ssh, certificateAuthorities: 'PEM' },
  ],
])('what a Secret holds: %j', async (stringData, credentials) => {
  expect(await held(stringData)).toEqual({ ...credentials, source: 'Secret default/auth' });
});

test.each([
  [{ identity: 'hidden-key' }, 'identity but no known_hosts', 'ssh-keyscan'],
  [{ 'ssh-privatekey': 'hidden-key', known_hosts: '\n' }, 'ssh-privatekey but no known_hosts', 'fingerprint'],
  [{ username: 'hidden' }, 'neither username and password', 'identity and known_hosts'],
  [{ known_hosts: 'hidden' }, 'neither username and password', 'ca.crt'],
])('an incomplete Secret is reported by the names of the missing keys: %j', async (stringData, ...words) => {
  const error = await held(stringData).catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ code: 'InvalidInput' });
  for (const word of words) expect(String(error)).toContain(word);
  expect(String(error)).not.toContain('hidden');
});

async function held(stringData: Record<string, string>) {
  await using bench = objectBench();
  await bench.client.create(secretKind, { metadata: { name: 'auth', namespace: 'default' }, stringData });
  return await secretCredentials(bench.client, { namespace: 'default', name: 'auth' }, 'which a test refers to,');
}

test('a Secret that the cluster does not let Sluice read is reported with the command that permits it', async () => {
  await using bench = objectBench();
  const { client } = bench;
  const refusal = (user: string) =>
    `secrets "auth" is forbidden: User "${user}" cannot get resource "secrets" in API group "" in the namespace "blue"`;
  const read = (user: string) => {
    client.find = () => Promise.reject(new SluiceError('Refused', refusal(user)));
    return secretCredentials(client, { namespace: 'blue', name: 'auth' }, 'which a test refers to,');
  };
  await expect(read('system:serviceaccount:sluice-system:sluice')).rejects.toThrow(
    `${refusal('system:serviceaccount:sluice-system:sluice')}; permit it: kubectl create rolebinding sluice-git-credentials --namespace blue --clusterrole=sluice-git-credentials --serviceaccount=sluice-system:sluice`,
  );
  await expect(read('anna')).rejects.toMatchObject({ message: refusal('anna') });
});
