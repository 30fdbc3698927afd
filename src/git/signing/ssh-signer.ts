import { createHash, createPublicKey, type JsonWebKey, type KeyObject, sign } from 'node:crypto';
import { promisify } from 'node:util';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { ObjectSigner } from '../git-repository.ts';
import { parseSshPrivateKey } from './ssh-private-key.ts';
import { sshNumber, sshString } from './ssh-wire.ts';

const MAGIC = Buffer.from('SSHSIG');
/** What Git signs for, and verifies. */
const NAMESPACE = 'git';
const HASH = 'sha512';
const SMALLEST_RSA = 2048;

/** How signatures of one key are made. */
interface Scheme {
  /** The public key as SSH writes it. */
  readonly publicKey: Buffer;
  readonly algorithm: string;
  signature(data: Buffer): Promise<Buffer>;
}

const signData = promisify(sign);

/** Signs as `ssh-keygen -Y sign -n git` does (PROTOCOL.sshsig of OpenSSH). Throws InvalidInput for a key that cannot be used. */
export function sshSigner(privateKey: string): ObjectSigner {
  const { publicKey, algorithm, signature } = schemeOf(parseSshPrivateKey(privateKey));
  return async (payload) => {
    const frame = [sshString(NAMESPACE), sshString(''), sshString(HASH)];
    const digest = createHash(HASH).update(payload).digest();
    const made = await signature(Buffer.concat([MAGIC, ...frame, sshString(digest)]));
    const version = Buffer.from([0, 0, 0, 1]);
    const blob = Buffer.concat([sshString(algorithm), sshString(made)]);
    return armor(Buffer.concat([MAGIC, version, sshString(publicKey), ...frame, sshString(blob)]));
  };
}

function schemeOf(key: KeyObject): Scheme {
  const jwk = createPublicKey(key).export({ format: 'jwk' });
  const value = (name: 'x' | 'y' | 'n' | 'e') => Buffer.from(jwk[name] ?? '', 'base64url');
  switch (key.asymmetricKeyType) {
    case 'ed25519': {
      const algorithm = 'ssh-ed25519';
      const publicKey = Buffer.concat([sshString(algorithm), sshString(value('x'))]);
      return { publicKey, algorithm, signature: (data) => signData(null, data, key) };
    }
    case 'rsa': {
      if ((key.asymmetricKeyDetails?.modulusLength ?? 0) < SMALLEST_RSA)
        throw unusable(`an RSA key must have at least ${SMALLEST_RSA} bits`);
      const publicKey = Buffer.concat([sshString('ssh-rsa'), sshNumber(value('e')), sshNumber(value('n'))]);
      return { publicKey, algorithm: 'rsa-sha2-512', signature: (data) => signData('sha512', data, key) };
    }
    case 'ec':
      return ecdsaScheme(key, jwk, Buffer.concat([Buffer.from([4]), value('x'), value('y')]));
    default:
      throw unusable('it is of none of the types ed25519, ecdsa and rsa');
  }
}

function ecdsaScheme(key: KeyObject, { crv }: JsonWebKey, point: Buffer): Scheme {
  const size = /^P-(256|384|521)$/.exec(crv ?? '')?.[1];
  if (size === undefined) throw unusable('its curve is none of nistp256, nistp384 and nistp521');
  const algorithm = `ecdsa-sha2-nistp${size}`;
  const hash = size === '521' ? 'sha512' : `sha${size}`;
  return {
    publicKey: Buffer.concat([sshString(algorithm), sshString(`nistp${size}`), sshString(point)]),
    algorithm,
    signature: async (data) => {
      const both = await signData(hash, data, { key, dsaEncoding: 'ieee-p1363' });
      const half = both.length / 2;
      return Buffer.concat([sshNumber(both.subarray(0, half)), sshNumber(both.subarray(half))]);
    },
  };
}

function unusable(reason: string): SluiceError {
  return new SluiceError('InvalidInput', `the SSH key cannot be used: ${reason}`);
}

function armor(data: Buffer): string {
  const lines = data.toString('base64').replace(/.{70}/g, '$&\n').trimEnd();
  return `-----BEGIN SSH SIGNATURE-----\n${lines}\n-----END SSH SIGNATURE-----\n`;
}
