import { generateKeyPairSync } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { initBare, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { isInstalled, sshKey } from '../../../test/support/git/signing-keys.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { commitOf } from '../git-repository.conformance.ts';
import { EMPTY_TREE } from '../git-repository.ts';
import { openRepository } from '../open/open-repository.ts';
import { sshSigner } from './ssh-signer.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

describe('SSH signatures', skipFor(!isInstalled('ssh-keygen') && 'ssh-keygen is not installed'), () => {
  const path = initBare(`${folder.path}/repository.git`);

  test.each([
    ['ed25519', []],
    ['ecdsa', ['-b', '256']],
    ['ecdsa', ['-b', '384']],
    ['ecdsa', ['-b', '521']],
    ['rsa', ['-b', '2048']],
    ['rsa', ['-b', '3072', '-m', 'PEM']],
    ['ecdsa', ['-b', '256', '-m', 'PKCS8']],
  ])('of a key by ssh-keygen -t %s %j are verified by git', async (type, more) => {
    const { privateKey, verify } = sshKey(folder.path, type, more);
    const repository = await openRepository(path, { signer: sshSigner(privateKey) });
    // Numbers in signatures are written shorter or longer by what their first bits are.
    for (let count = 0; count < 4; count += 1) {
      const object = await repository.writeCommit(commitOf(EMPTY_TREE, [], `${type} ${count}\n`));
      const tag = await repository.writeTag({
        ...{ object, type: 'commit', name: 'v1', message: 'v1\n' },
        tagger: commitOf(EMPTY_TREE).author,
      });
      await repository.editTree(undefined, new Map());
      await repository.transaction([]);
      verify(path, 'commit', object);
      verify(path, 'tag', tag);
    }
    await repository.close();
  });

  test('a commit that another key signed is not verified', async () => {
    const [mine, other] = [sshKey(folder.path, 'ed25519', ['-a', '1']), sshKey(folder.path, 'ed25519', ['-a', '2'])];
    const repository = await openRepository(path, { signer: sshSigner(mine.privateKey) });
    const object = await repository.writeCommit(commitOf(EMPTY_TREE));
    await repository.transaction([]);
    mine.verify(path, 'commit', object);
    expect(() => other.verify(path, 'commit', object)).toThrow(/No principal matched/);
    await repository.close();
  });

  test('a key with a passphrase is refused', () => {
    const { privateKey } = sshKey(folder.path, 'ed25519', ['-N', 'geheim']);
    expect(() => sshSigner(privateKey)).toThrow('the SSH key cannot be used: it is encrypted; it has to be without');
  });

  test('a key that is cut off or changed is refused without quoting it', () => {
    const { privateKey } = sshKey(folder.path, 'rsa', ['-b', '2048', '-C', 'damaged']);
    const body = privateKey.split('\n').slice(1, -2).join('');
    for (let length = 0; length < body.length; length += 52) {
      const text = `-----BEGIN OPENSSH PRIVATE KEY-----\n${body.slice(0, length)}\n-----END OPENSSH PRIVATE KEY-----\n`;
      const refused = expect(() => sshSigner(text), `${length}`);
      refused.toThrow(/^the SSH key cannot be used: [a-z ,]+(OpenSSH or PEM)?; it has to be without a passphrase$/);
    }
  });
});

test.each([
  ['an empty text', ''],
  ['other text', 'hello'],
  ['a public key', 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGeheim'],
  ['a PEM that is none', '-----BEGIN PRIVATE KEY-----\nZ2VoZWlt\n-----END PRIVATE KEY-----\n'],
  ['a text without end', 'x'.repeat(100_000)],
])('%s is no key', (_, text) => {
  expect(() => sshSigner(text)).toThrow(/^the SSH key cannot be used: it is [a-zA-Z ]+; it has to be without a pass/);
});

test('keys that Git does not accept, and weak keys, are refused', () => {
  const pem = { type: 'pkcs8', format: 'pem' } as const;
  const { privateKey: short } = generateKeyPairSync('rsa', { modulusLength: 1024 });
  const small = `${short.export(pem)}`;
  expect(() => sshSigner(small)).toThrow('an RSA key must have at least 2048 bits');
  const { privateKey: curve } = generateKeyPairSync('ec', { namedCurve: 'secp256k1' });
  expect(() => sshSigner(`${curve.export(pem)}`)).toThrow('its curve is none of nistp256');
  const { privateKey: exchange } = generateKeyPairSync('x25519');
  expect(() => sshSigner(`${exchange.export(pem)}`)).toThrow('none of the types ed25519');
});
