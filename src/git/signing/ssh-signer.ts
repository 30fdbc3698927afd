import { type KeyObject, hash as oneShotHash, sign } from 'node:crypto';
import { promisify } from 'node:util';
import type { ObjectSigner } from '../git-repository.ts';
import { parseSshPrivateKey } from './ssh-private-key.ts';
import { describePublicKey, type SshPublicKey } from './ssh-public-key.ts';
import { sshNumber, sshString } from './ssh-wire.ts';

/** The start of a signature and of what is signed (PROTOCOL.sshsig of OpenSSH). */
export const SSHSIG_MAGIC = Buffer.from('SSHSIG');
/** The namespace that Git signs for, and verifies. */
const GIT_NAMESPACE = 'git';
const HASH = 'sha512';

/** Signs for one namespace: the detached signature in binary form. */
export interface SshSigningKey {
  readonly publicKey: SshPublicKey;
  sign(payload: Uint8Array | string): Promise<Buffer>;
}

const signData = promisify(sign);

/** Signs as `ssh-keygen -Y sign -n git` does, or for another namespace. Throws InvalidInput for a key that cannot be used. */
export function sshSigner(privateKey: string, namespace = GIT_NAMESPACE): ObjectSigner {
  const key = sshSigningKey(privateKey, namespace);
  return async (payload) => armorSshSignature(await key.sign(payload));
}

/** The same without armor. */
export function sshSigningKey(privateKey: string, namespace: string): SshSigningKey {
  const key = parseSshPrivateKey(privateKey);
  const publicKey = describePublicKey(key);
  const { algorithm, signature } = schemeOf(key, publicKey.type);
  const frame = [sshString(namespace), sshString(''), sshString(HASH)];
  const version = Buffer.from([0, 0, 0, 1]);
  const start = Buffer.concat([SSHSIG_MAGIC, version, sshString(publicKey.blob), ...frame]);
  const name = sshString(algorithm);
  return {
    publicKey,
    async sign(payload) {
      const made = await signature(signedData(namespace, HASH, payload));
      return Buffer.concat([start, sshString(Buffer.concat([name, sshString(made)]))]);
    },
  };
}

/** Returns the data that the key signs: not the payload, but its digest with the namespace. */
export function signedData(namespace: string, hash: string, payload: Uint8Array | string): Buffer {
  const digest = oneShotHash(hash, payload, 'buffer');
  return Buffer.concat([SSHSIG_MAGIC, sshString(namespace), sshString(''), sshString(hash), sshString(digest)]);
}

/** The text form of a signature, as `ssh-keygen -Y sign` writes it. */
export function armorSshSignature(signature: Buffer): string {
  const lines = signature.toString('base64').replace(/.{70}/g, '$&\n').trimEnd();
  return `-----BEGIN SSH SIGNATURE-----\n${lines}\n-----END SSH SIGNATURE-----\n`;
}

function schemeOf(
  key: KeyObject,
  type: string,
): { readonly algorithm: string; readonly signature: (data: Buffer) => Promise<Buffer> } {
  // It takes 30 µs, less than handing it to another thread.
  if (type === 'ssh-ed25519') return { algorithm: type, signature: async (data) => sign(null, data, key) };
  if (type === 'ssh-rsa') return { algorithm: 'rsa-sha2-512', signature: (data) => signData('sha512', data, key) };
  return {
    algorithm: type,
    signature: async (data) => {
      const both = await signData(ecdsaHash(type), data, { key, dsaEncoding: 'ieee-p1363' });
      const half = both.length / 2;
      return Buffer.concat([sshNumber(both.subarray(0, half)), sshNumber(both.subarray(half))]);
    },
  };
}

/** The hash that belongs to a curve (RFC 5656, 6.2.1). */
export function ecdsaHash(type: string): 'sha256' | 'sha384' | 'sha512' {
  if (type.endsWith('256')) return 'sha256';
  return type.endsWith('384') ? 'sha384' : 'sha512';
}
