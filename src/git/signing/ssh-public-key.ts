import { createHash, createPublicKey, type JsonWebKey, type KeyObject } from 'node:crypto';
import { LruCache } from '../../foundation/lru-cache.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { SshReader, sshNumber, sshString, withoutZeros } from './ssh-wire.ts';

/** An RSA key with 16,384 bits, the largest that OpenSSH accepts, takes 2.8 KB; comments are short. */
const MAX_LINE_CHARACTERS = 16 * 1024;
const MIN_RSA_BITS = 2048;
const MAX_RSA_BITS = 16_384;
/** OpenSSL accepts no larger exponents for large keys; without a limit a key could make each verification slow. */
const MAX_RSA_EXPONENT_BYTES = 8;
const ED25519_BYTES = 32;
/** Standard base64 with padding and without anything else, such as line breaks. */
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

const MAX_KNOWN_KEYS = 256;
const UNUSABLE = 'the SSH key cannot be used: ';

/** A public key that can verify signatures: ed25519, ecdsa on the three NIST curves, or rsa from 2048 bits. */
export interface SshPublicKey {
  /** `ssh-ed25519`, `ssh-rsa` or `ecdsa-sha2-nistp…` */
  readonly type: string;
  /** As SSH writes it (RFC 4253, 6.6). A key has exactly one such form here. */
  readonly blob: Buffer;
  /** `SHA256:…`, as ssh-keygen prints it. */
  readonly fingerprint: string;
  /** One line as in `id_ed25519.pub`, without a comment. */
  readonly line: string;
  readonly key: KeyObject;
}

/** Reads a line as in `id_ed25519.pub`. Throws InvalidInput for anything else. */
export function parseSshPublicKey(line: string): SshPublicKey & { readonly comment: string } {
  if (line.length > MAX_LINE_CHARACTERS) throw unusable('it is too long');
  const [type = '', encoded = '', ...words] = line.trim().split(/[ \t]+/);
  const data = decodeBase64(encoded);
  if (data === undefined || encoded === '' || !/^[a-z0-9@.-]+$/.test(type))
    throw unusable('it is no line of the form "ssh-ed25519 AAAA… comment"');
  const key = readSshPublicKey(data);
  if (key.type !== type) throw unusable(`its first word is not its type, ${key.type}`);
  const comment = words.join(' ');
  if (/[\u0000-\u001f\u007f]/.test(comment)) throw unusable('its comment has control characters');
  return { ...key, comment };
}

/**
 * Reads the binary form of a public key. Throws InvalidInput for damaged keys, other types, and keys that are too weak. The last keys
 * are cached: many signatures come from few keys, and reading a key costs more than verifying a signature.
 */
export function readSshPublicKey(blob: Buffer): SshPublicKey {
  const name = blob.toString('latin1');
  const known = lastKeys.get(name);
  if (known !== undefined) return known;
  const key = readNewKey(blob);
  lastKeys.set(name, key);
  return key;
}

const lastKeys = new LruCache<string, SshPublicKey>({ maxEntries: MAX_KNOWN_KEYS });

function readNewKey(blob: Buffer): SshPublicKey {
  let key: KeyObject;
  try {
    key = createPublicKey({ key: webKeyOf(blob), format: 'jwk' });
  } catch (error) {
    throw isSluiceError(error) ? error : unusable('it is damaged');
  }
  const described = describePublicKey(key);
  // A second form of the same key would have another fingerprint, which a list of revoked keys does not contain.
  if (!described.blob.equals(blob)) throw unusable('it is damaged');
  return described;
}

/** The public half of any key of Node. Throws InvalidInput for keys that are too weak and for other types. */
export function describePublicKey(key: KeyObject): SshPublicKey {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  const { type, numbers } = partsOf(publicKey);
  const blob = Buffer.concat([sshString(type), ...numbers]);
  const fingerprint = `SHA256:${createHash('sha256').update(blob).digest('base64').replace(/=+$/, '')}`;
  return { type, blob, fingerprint, line: `${type} ${blob.toString('base64')}`, key: publicKey };
}

/** The bytes of canonical base64; undefined for other text. */
export function decodeBase64(text: string): Buffer | undefined {
  if (!BASE64.test(text)) return undefined;
  const data = Buffer.from(text, 'base64');
  return data.toString('base64') === text ? data : undefined;
}

function partsOf(key: KeyObject): { readonly type: string; readonly numbers: readonly Buffer[] } {
  const { asymmetricKeyType } = key;
  if (asymmetricKeyType !== 'ed25519' && asymmetricKeyType !== 'rsa' && asymmetricKeyType !== 'ec')
    throw unusable('it is of none of the types ed25519, ecdsa and rsa');
  const jwk = key.export({ format: 'jwk' });
  const value = (name: 'x' | 'y' | 'n' | 'e') => Buffer.from(jwk[name] ?? '', 'base64url');
  if (asymmetricKeyType === 'ed25519') return { type: 'ssh-ed25519', numbers: [sshString(value('x'))] };
  if (asymmetricKeyType === 'rsa') {
    const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
    if (bits < MIN_RSA_BITS) throw unusable(`an RSA key must have at least ${MIN_RSA_BITS} bits`);
    if (bits > MAX_RSA_BITS) throw unusable(`an RSA key must have at most ${MAX_RSA_BITS} bits`);
    if (value('e').length > MAX_RSA_EXPONENT_BYTES) throw unusable('the exponent of the RSA key is too large');
    return { type: 'ssh-rsa', numbers: [sshNumber(value('e')), sshNumber(value('n'))] };
  }
  const size = /^P-(256|384|521)$/.exec(jwk.crv ?? '')?.[1];
  if (size === undefined) throw unusable('its curve is none of nistp256, nistp384 and nistp521');
  const point = Buffer.concat([Buffer.from([4]), value('x'), value('y')]);
  return { type: `ecdsa-sha2-nistp${size}`, numbers: [sshString(`nistp${size}`), sshString(point)] };
}

function webKeyOf(blob: Buffer): JsonWebKey {
  const reader = new SshReader(blob, `${UNUSABLE}it`);
  const type = reader.text();
  if (type === 'ssh-ed25519') {
    const x = reader.bytes();
    if (x.length !== ED25519_BYTES) throw unusable('it is damaged');
    return { kty: 'OKP', crv: 'Ed25519', x: x.toString('base64url') };
  }
  if (type === 'ssh-rsa') {
    const [e, n] = [withoutZeros(reader.bytes()), withoutZeros(reader.bytes())];
    if (n.length > MAX_RSA_BITS / 8) throw unusable(`an RSA key must have at most ${MAX_RSA_BITS} bits`);
    return { kty: 'RSA', n: Buffer.from(n).toString('base64url'), e: Buffer.from(e).toString('base64url') };
  }
  const size = /^ecdsa-sha2-nistp(256|384|521)$/.exec(type)?.[1];
  if (size === undefined) throw unusable('it is of none of the types ssh-ed25519, ecdsa-sha2-nistp… and ssh-rsa');
  reader.bytes();
  const point = reader.bytes();
  const length = Math.ceil(Number(size) / 8);
  if (point[0] !== 4 || point.length !== 1 + 2 * length) throw unusable('it is damaged');
  const [x, y] = [point.subarray(1, 1 + length), point.subarray(1 + length)];
  return { kty: 'EC', crv: `P-${size}`, x: x.toString('base64url'), y: y.toString('base64url') };
}

function unusable(reason: string): SluiceError {
  return new SluiceError('InvalidInput', `${UNUSABLE}${reason}`);
}
