import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { newKey } from '../../../test/support/git/ssh-server.ts';
import { checkPrivateKey } from './private-key.ts';

const PASSPHRASE = 'open sesame';

function made(use: (folder: string) => string): string {
  const folder = temporaryFolder();
  try {
    return use(folder.path);
  } finally {
    folder.remove();
  }
}

/** The public key that ssh-keygen finds in what was checked. */
function publicPart(folder: string, text: string): string {
  const file = join(folder, 'checked');
  execFileSync('sh', ['-c', 'umask 077; cat > "$0"', file], { input: text });
  return execFileSync('ssh-keygen', ['-y', '-P', '', '-f', file], { encoding: 'utf8' }).trim();
}

test.each([[['-t', 'ed25519']], [['-t', 'ecdsa']], [['-t', 'rsa', '-m', 'PEM']], [['-t', 'ed25519', '-m', 'PKCS8']]])(
  'a key made with %j is taken, whatever the ends of its lines are',
  (kind) => {
    made((folder) => {
      const { privateKey, publicKey } = newKey(folder, 'key', '', ...kind);
      for (const text of [privateKey, privateKey.trim(), privateKey.replaceAll('\n', '\r\n'), `\n ${privateKey}\n\n`])
        expect(publicPart(folder, checkPrivateKey(text))).toBe(publicKey);
      return '';
    });
  },
);

test.each([[['-t', 'ed25519']], [['-t', 'rsa', '-m', 'PEM']], [['-t', 'rsa', '-m', 'PKCS8']]])(
  'a key with a passphrase made with %j is refused',
  (kind) => {
    const key = made((folder) => newKey(folder, 'key', PASSPHRASE, ...kind).privateKey);
    expect(() => checkPrivateKey(key)).toThrow(/it has a passphrase.*ssh-keygen/);
  },
);

test('what is no private key is refused without its text', () => {
  const { publicKey } = generateKeyPairSync('ed25519');
  const key = made((folder) => newKey(folder, 'key').privateKey);
  const others = [
    '',
    'hidden',
    String(publicKey.export({ type: 'spki', format: 'pem' })),
    made((folder) => newKey(folder, 'key').publicKey),
    key.slice(0, -20),
    `${key}\nProxyCommand hidden`,
    `hidden\n${key}`,
    key.replace('END OPENSSH', 'END RSA'),
    key.replace('\n', `\n${'A'.repeat(70_000)}\n`),
  ];
  for (const text of others) {
    expect(() => checkPrivateKey(text)).toThrow(/invalid PEM/);
    expect(() => checkPrivateKey(text)).not.toThrow(/hidden|AAAA/);
  }
});
