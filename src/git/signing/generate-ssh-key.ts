import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { sshString } from './ssh-wire.ts';

/** Block size of the cipher "none", to which the private section is padded. */
const BLOCK_BYTES = 8;

/** A new ed25519 key in the form in which `ssh-keygen -t ed25519 -N ''` writes one (PROTOCOL.key of OpenSSH). */
export function generateSshKey(comment: string): string {
  const { x = '', d = '' } = generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' });
  const [publicPart, seed] = [Buffer.from(x, 'base64url'), Buffer.from(d, 'base64url')];
  const type = sshString('ssh-ed25519');
  const check = randomBytes(4);
  const secret = Buffer.concat([
    ...[check, check, type, sshString(publicPart)],
    ...[sshString(Buffer.concat([seed, publicPart])), sshString(comment)],
  ]);
  const padding = Buffer.from(Array.from({ length: -secret.length & (BLOCK_BYTES - 1) }, (_, index) => index + 1));
  const data = Buffer.concat([
    ...[Buffer.from('openssh-key-v1\0'), sshString('none'), sshString('none'), sshString('')],
    ...[Buffer.from([0, 0, 0, 1]), sshString(Buffer.concat([type, sshString(publicPart)]))],
    sshString(Buffer.concat([secret, padding])),
  ]);
  const lines = data.toString('base64').replace(/.{70}/g, '$&\n').trimEnd();
  return `-----BEGIN OPENSSH PRIVATE KEY-----\n${lines}\n-----END OPENSSH PRIVATE KEY-----\n`;
}
