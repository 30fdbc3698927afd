import { verify } from 'node:crypto';
import { promisify } from 'node:util';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { decodeBase64, readSshPublicKey, type SshPublicKey } from './ssh-public-key.ts';
import { ecdsaHash, SSHSIG_MAGIC, signedData } from './ssh-signer.ts';
import { SshReader, withoutZeros } from './ssh-wire.ts';

/** A signature by the largest RSA key takes 5.7 KB. */
const MAX_TEXT_CHARACTERS = 16 * 1024;
const VERSION = 1;
const NAME = 'the SSH signature cannot be read: it';
const ARMOR = /^-----BEGIN SSH SIGNATURE-----\r?\n([A-Za-z0-9+/=\r\n]+)-----END SSH SIGNATURE-----$/;

/** A detached SSH signature (PROTOCOL.sshsig of OpenSSH) that is well formed; whether it is valid depends on the payload. */
export interface SshSignature {
  readonly publicKey: SshPublicKey;
  readonly namespace: string;
  /** Of the payload. */
  readonly hash: 'sha256' | 'sha512';
  /** With which the key signed the digest, for Node; null where the algorithm has its own. */
  readonly digest: 'sha256' | 'sha384' | 'sha512' | null;
  /** As Node verifies it: for ecdsa the two numbers in fixed width. */
  readonly value: Buffer;
}

const verifyData = promisify(verify);

/**
 * Reads a signature as `ssh-keygen -Y sign` writes it, or its base64 in one line. Throws InvalidInput for other text and for keys and
 * algorithms that do not count: certificates, hardware keys, SHA-1, RSA below 2048 bits.
 */
export function parseSshSignature(text: string): SshSignature {
  if (text.length > MAX_TEXT_CHARACTERS) throw refused('it is too long');
  const trimmed = text.trim();
  const data = decodeBase64(ARMOR.exec(trimmed)?.[1]?.replace(/[\r\n]/g, '') ?? trimmed);
  if (data === undefined) throw refused('it is neither base64 nor armored');
  const reader = new SshReader(data, NAME);
  if (!reader.take(SSHSIG_MAGIC.length).equals(SSHSIG_MAGIC)) throw refused('it is no SSH signature');
  if (reader.uint32() !== VERSION) throw refused('it is of an unknown version');
  const publicKey = readSshPublicKey(reader.bytes());
  const namespace = reader.bytes();
  // OpenSSH ignores the reserved part, which is not signed: it could contain any text.
  if (reader.bytes().length > 0) throw refused('it has a reserved part');
  const hash = reader.text();
  if (hash !== 'sha256' && hash !== 'sha512') throw refused('its hash is neither sha256 nor sha512');
  const signature = new SshReader(reader.bytes(), NAME);
  reader.end();
  const scheme = schemeOf(publicKey.type, signature.text(), signature.bytes());
  signature.end();
  return { publicKey, namespace: textOf(namespace), hash, ...scheme };
}

/** True if the signature was made for exactly this payload and namespace. Works in the thread pool; throws nothing. */
export async function verifySshSignature(
  { publicKey, namespace, hash, digest, value }: SshSignature,
  payload: Uint8Array | string,
  expectedNamespace: string,
): Promise<boolean> {
  if (namespace !== expectedNamespace) return false;
  const data = signedData(namespace, hash, payload);
  const key = digest === null ? publicKey.key : { key: publicKey.key, dsaEncoding: 'ieee-p1363' as const };
  try {
    return await verifyData(digest, data, key, value);
  } catch {
    // OpenSSL refuses to calculate with some numbers, such as an even modulus; no valid signature has them.
    return false;
  }
}

function schemeOf(type: string, algorithm: string, blob: Buffer): Pick<SshSignature, 'digest' | 'value'> {
  if (type === 'ssh-rsa') {
    if (algorithm === 'rsa-sha2-256') return { digest: 'sha256', value: blob };
    if (algorithm === 'rsa-sha2-512') return { digest: 'sha512', value: blob };
    throw refused('its algorithm is neither rsa-sha2-256 nor rsa-sha2-512');
  }
  if (algorithm !== type) throw refused('its algorithm is not that of its key');
  if (type === 'ssh-ed25519') return { digest: null, value: blob };
  const reader = new SshReader(blob, NAME);
  const width = Math.ceil(Number(type.slice(-3)) / 8);
  const value = Buffer.concat([fixedWidth(reader.bytes(), width), fixedWidth(reader.bytes(), width)]);
  reader.end();
  return { digest: ecdsaHash(type), value };
}

function fixedWidth(number: Buffer, width: number): Buffer {
  const digits = withoutZeros(number);
  if (digits.length > width) throw refused('it is damaged');
  return Buffer.concat([Buffer.alloc(width - digits.length), digits]);
}

function textOf(namespace: Buffer): string {
  const text = namespace.toString('utf8');
  if (!Buffer.from(text).equals(namespace)) throw refused('its namespace is no text');
  return text;
}

function refused(reason: string): SluiceError {
  return new SluiceError('InvalidInput', `the SSH signature cannot be read: ${reason}`);
}
