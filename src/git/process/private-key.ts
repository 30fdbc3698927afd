import { SluiceError } from '../../foundation/sluice-error.ts';

const MAX_KEY_CHARACTERS = 64 * 1024;
const ARMOUR = /^-----BEGIN ((?:[A-Z0-9]+ )*)PRIVATE KEY-----\n([A-Za-z0-9+/=:,\-.\s]*?)\n-----END \1PRIVATE KEY-----$/;

/**
 * Checks a private key as ssh reads it from a file. Throws InvalidInput, without a part of the key in the message, for other text and for
 * a key with a passphrase, since no user is present to enter one.
 */
export function checkPrivateKey(text: string): string {
  const key = text.length > MAX_KEY_CHARACTERS ? '' : text.replaceAll('\r\n', '\n').trim();
  const [, kind, body = ''] = ARMOUR.exec(key) ?? [];
  if (kind === undefined)
    throw new SluiceError(
      'InvalidInput',
      'cannot use the private key for ssh: invalid PEM, a key file begins with "-----BEGIN … PRIVATE KEY-----"; use the file without .pub',
    );
  if (kind === 'ENCRYPTED ' || /^Proc-Type:.*ENCRYPTED/m.test(body) || (kind === 'OPENSSH ' && isEncrypted(body)))
    throw new SluiceError(
      'InvalidInput',
      'cannot use the private key for ssh: it has a passphrase, and the server cannot enter one; use a key without passphrase, made for this purpose (ssh-keygen -t ed25519 -N "" -f <file>)',
    );
  return `${key}\n`;
}

/** A key in OpenSSH's own format names its cipher first (PROTOCOL.key): magic, then a string with its length before it. */
function isEncrypted(body: string): boolean {
  const magic = 'openssh-key-v1\0';
  const data = Buffer.from(body, 'base64');
  const start = magic.length + 4;
  if (data.toString('latin1', 0, magic.length) !== magic || data.length < start) return false;
  return data.toString('latin1', start, start + data.readUInt32BE(magic.length)) !== 'none';
}
