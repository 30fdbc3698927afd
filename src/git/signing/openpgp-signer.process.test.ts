import { generateKey, type KeyOptions } from 'openpgp';
import { afterAll, describe, expect, test } from 'vitest';
import { initBare, temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { gpgKey, gpgVerifier, isInstalled, type Verify } from '../../../test/support/git/signing-keys.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { commitOf } from '../git-repository.conformance.ts';
import { EMPTY_TREE, type ObjectSigner } from '../git-repository.ts';
import { openRepository } from '../open/open-repository.ts';
import { openPgpSigner } from './openpgp-signer.ts';

const USER = [{ name: 'Sluice', email: 'sluice@localhost' }];
const folder = temporaryFolder();
afterAll(() => folder.remove());

describe('OpenPGP signatures', skipFor(!isInstalled('gpg') && 'gpg is not installed'), () => {
  const path = initBare(`${folder.path}/repository.git`);

  async function signAndVerify(signer: ObjectSigner, verify: Verify): Promise<void> {
    const repository = await openRepository(path, { signer });
    const object = await repository.writeCommit(commitOf(EMPTY_TREE, [], 'signed\n'));
    const tagger = commitOf(EMPTY_TREE).author;
    const tag = await repository.writeTag({ object, type: 'commit', name: 'v1', tagger, message: 'v1\n' });
    await repository.editTree(undefined, new Map());
    await repository.transaction([]);
    verify(path, 'commit', object);
    verify(path, 'tag', tag);
    await repository.close();
  }

  test('of a key that gpg made and locked are verified by git', async () => {
    const home = temporaryFolder();
    const { armored, verify, end } = gpgKey(home.path, 'geheim');
    try {
      await signAndVerify(await openPgpSigner(armored, 'geheim', systemClock), verify);
      await expect(openPgpSigner(armored, 'other', systemClock)).rejects.toThrow(
        /^the passphrase of the OpenPGP key [0-9A-F]{16} is wrong$/,
      );
      await expect(openPgpSigner(armored, undefined, systemClock)).rejects.toThrow(
        /^the OpenPGP key [0-9A-F]{16} is encrypted, and there is no passphrase$/,
      );
    } finally {
      end();
      home.remove();
    }
  });

  const kinds: readonly (readonly [string, Pick<KeyOptions, 'type' | 'rsaBits' | 'curve' | 'subkeys'>])[] = [
    ['rsa', { type: 'rsa', rsaBits: 2048 }],
    ['nistP256 with a subkey for signatures', { type: 'ecc', curve: 'nistP256', subkeys: [{ sign: true }] }],
  ];
  test.each(kinds)('of a key of type %s are verified by git', async (_, options) => {
    const home = temporaryFolder();
    const { privateKey, publicKey } = await generateKey({ ...options, userIDs: USER, format: 'armored' });
    await signAndVerify(await openPgpSigner(privateKey, undefined, systemClock), gpgVerifier(home.path, publicKey));
    home.remove();
  });
});

test('a key that has expired does not sign, and one that has not yet does', async () => {
  const clock = new ManualClock(Date.parse('2026-01-01T00:00:00Z'));
  const { privateKey } = await generateKey({
    ...{ type: 'ecc', userIDs: USER, format: 'armored' },
    ...{ date: new Date(clock.now()), keyExpirationTime: 3600 },
  });
  const signer = await openPgpSigner(privateKey, undefined, clock);
  expect(await signer(Buffer.from('x'))).toMatch(/^-----BEGIN PGP SIGNATURE-----\n/);
  clock.advance(3_601_000);
  await expect(signer(Buffer.from('x'))).rejects.toThrow(/^the OpenPGP key [0-9A-F]{16} cannot sign: .*expired/);
});

test('what is not a private key is refused without quoting it', async () => {
  const { privateKey, publicKey } = await generateKey({ type: 'ecc', userIDs: USER, format: 'armored' });
  const withoutBlankLine = privateKey.replace(/\n\n/, '\n');
  const texts = ['', 'geheim', publicKey, withoutBlankLine, privateKey.slice(0, 300), 'x'.repeat(2_000_000)];
  for (const text of texts) {
    await expect(openPgpSigner(text, undefined, systemClock)).rejects.toThrow(
      /^cannot read the OpenPGP private key: the text contains none; export it with gpg --export-secret-keys --armor$/,
    );
  }
});
