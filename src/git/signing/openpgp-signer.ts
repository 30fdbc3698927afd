import type { PrivateKey } from 'openpgp';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { ObjectSigner } from '../git-repository.ts';

/** Maximum size; a key with many subkeys and third-party signatures has some 100 KB. */
const MAX_TEXT_CHARACTERS = 1024 * 1024;

/**
 * Signs as `gpg --detach-sign --armor` does, with the first key of an armored text. Throws InvalidInput for a text that is not a
 * private key and for a wrong passphrase, and Unavailable if the package `openpgp` is not installed; the signer throws InvalidInput
 * when the key has expired or may not sign. No message contains a part of the key or the passphrase.
 */
export async function openPgpSigner(
  armoredKey: string,
  passphrase: string | undefined,
  clock: Clock,
): Promise<ObjectSigner> {
  const openpgp = await loadOpenPgp();
  const key = await unlocked(openpgp, armoredKey, passphrase);
  return async (payload) => {
    const date = new Date(clock.now());
    try {
      const message = await openpgp.createMessage({ binary: payload, date });
      return await openpgp.sign({ message, signingKeys: key, detached: true, format: 'armored', date });
    } catch (error) {
      throw new SluiceError('InvalidInput', `the OpenPGP key ${idOf(key)} cannot sign: ${messageOf(error)}`);
    }
  };
}

/** The package is optional because of its size (17 MB) and its licence (LGPL), so it is loaded only for a key of this kind. */
async function loadOpenPgp(): Promise<typeof import('openpgp')> {
  try {
    return await import('openpgp');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new SluiceError(
      'Unavailable',
      'cannot sign with an OpenPGP key: the optional package openpgp is not installed; install it beside Sluice with "npm install openpgp@6" (with --global if Sluice is installed globally) and restart Sluice, or use an SSH key',
      { cause: error },
    );
  }
}

async function unlocked(
  { readPrivateKey, decryptKey }: typeof import('openpgp'),
  armoredKey: string,
  passphrase: string | undefined,
): Promise<PrivateKey> {
  const key = await readKey(readPrivateKey, armoredKey);
  if (key.isDecrypted()) return key;
  if (passphrase === undefined)
    throw new SluiceError('InvalidInput', `the OpenPGP key ${idOf(key)} is encrypted, and there is no passphrase`);
  try {
    return await decryptKey({ privateKey: key, passphrase });
  } catch {
    // No other error is possible here, and the library's message is about its packets.
    throw new SluiceError('InvalidInput', `the passphrase of the OpenPGP key ${idOf(key)} is wrong`);
  }
}

async function readKey(
  readPrivateKey: typeof import('openpgp')['readPrivateKey'],
  armoredKey: string,
): Promise<PrivateKey> {
  try {
    if (armoredKey.length <= MAX_TEXT_CHARACTERS) return await readPrivateKey({ armoredKey });
  } catch {
    // The library quotes lines that it cannot read, which can be lines of the key.
  }
  throw new SluiceError(
    'InvalidInput',
    'cannot read the OpenPGP private key: the text contains none; export it with gpg --export-secret-keys --armor',
  );
}

function idOf(key: PrivateKey): string {
  return key.getFingerprint().toUpperCase().slice(-16);
}
