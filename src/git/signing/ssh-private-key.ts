import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { SshReader, withoutZeros } from './ssh-wire.ts';

/** The largest keys in use, RSA with 16,384 bits, take a fifth of it. */
const MAX_TEXT_CHARACTERS = 64 * 1024;
const OPENSSH = /^-----BEGIN OPENSSH PRIVATE KEY-----\s+([A-Za-z0-9+/=\s]+)-----END OPENSSH PRIVATE KEY-----\s*$/;
const MAGIC = 'openssh-key-v1\0';
/** Names of the curves in SSH and in a JSON Web Key, and the bytes of a coordinate. */
const CURVES: ReadonlyMap<string, readonly [name: string, bytes: number]> = new Map([
  ['nistp256', ['P-256', 32]],
  ['nistp384', ['P-384', 48]],
  ['nistp521', ['P-521', 66]],
]);

/**
 * Reads a private key in the format of `ssh-keygen` or in PEM (PKCS#8, and the older forms of OpenSSL). Throws InvalidInput for
 * other text and for keys with a passphrase; no message contains a part of the key.
 */
export function parseSshPrivateKey(text: string): KeyObject {
  try {
    if (text.length > MAX_TEXT_CHARACTERS) throw new SluiceError('InvalidInput', 'it is too long');
    const encoded = OPENSSH.exec(text.trim())?.[1];
    if (encoded === undefined) return createPrivateKey(text);
    return createPrivateKey({ key: parseOpenSsh(Buffer.from(encoded, 'base64')), format: 'jwk' });
  } catch (error) {
    // A message of the crypto library can contain parts of the key.
    const reason = isSluiceError(error) ? error.message : 'it is no private key in the form of OpenSSH or PEM';
    throw new SluiceError('InvalidInput', `the SSH key cannot be used: ${reason}; it has to be without a passphrase`);
  }
}

/** The format is described in PROTOCOL.key of OpenSSH. */
function parseOpenSsh(data: Buffer): JsonWebKey {
  const outer = new SshReader(data);
  if (outer.take(MAGIC.length).toString('latin1') !== MAGIC) throw new SluiceError('InvalidInput', 'it is damaged');
  const cipher = outer.text();
  if (cipher !== 'none') throw new SluiceError('InvalidInput', 'it is encrypted');
  outer.bytes();
  outer.bytes();
  if (outer.uint32() !== 1) throw new SluiceError('InvalidInput', 'it contains several keys');
  outer.bytes();
  const key = new SshReader(outer.bytes());
  const [check, sameCheck] = [key.uint32(), key.uint32()];
  if (check !== sameCheck) throw new SluiceError('InvalidInput', 'it is damaged');
  const type = key.text();
  if (type === 'ssh-ed25519') return ed25519(key);
  if (type === 'ssh-rsa') return rsa(key);
  const curve = CURVES.get(type.replace(/^ecdsa-sha2-/, ''));
  if (curve !== undefined) return ecdsa(key, ...curve);
  throw new SluiceError('InvalidInput', 'it is of none of the types ed25519, ecdsa and rsa');
}

function ed25519(key: SshReader): JsonWebKey {
  const x = key.bytes();
  const d = key.bytes().subarray(0, 32);
  return { kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url'), d: d.toString('base64url') };
}

function ecdsa(key: SshReader, crv: string, length: number): JsonWebKey {
  key.bytes();
  const point = key.bytes();
  if (point[0] !== 4 || point.length !== 1 + 2 * length) throw new SluiceError('InvalidInput', 'it is damaged');
  const secret = withoutZeros(key.bytes());
  if (secret.length > length) throw new SluiceError('InvalidInput', 'it is damaged');
  const d = Buffer.concat([Buffer.alloc(length - secret.length), secret]);
  const [x, y] = [point.subarray(1, 1 + length), point.subarray(1 + length)];
  return { kty: 'EC', crv, x: x.toString('base64url'), y: y.toString('base64url'), d: d.toString('base64url') };
}

function rsa(key: SshReader): JsonWebKey {
  const [n, e, d] = [key.bytes(), key.bytes(), key.bytes()];
  const [qi, p, q] = [key.bytes(), key.bytes(), key.bytes()];
  const [dp, dq] = [modulo(d, p), modulo(d, q)];
  const numbers = Object.entries({ n, e, d, p, q, dp, dq, qi });
  const encoded = numbers.map(([name, value]) => [name, Buffer.from(withoutZeros(value)).toString('base64url')]);
  return { kty: 'RSA', ...Object.fromEntries(encoded) };
}

/** The exponent for one of the two primes: d mod (prime - 1). */
function modulo(exponent: Buffer, prime: Buffer): Buffer {
  const divisor = number(prime) - 1n;
  if (divisor <= 0n) throw new SluiceError('InvalidInput', 'it is damaged');
  const hex = (number(exponent) % divisor).toString(16);
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex');
}

function number(value: Buffer): bigint {
  return BigInt(`0x0${value.toString('hex')}`);
}
