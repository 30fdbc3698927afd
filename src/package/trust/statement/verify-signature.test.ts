import { generateKeyPairSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { sshSigner } from '../../../git/signing/ssh-signer.ts';
import { STATEMENT_NAMESPACE } from './statement-signature.ts';
import { statementSigner } from './statement-signer.ts';
import { verifySignature } from './verify-signature.ts';

const newKey = () => `${generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })}`;
const privateKey = newKey();

test('a statement is signed in one line, and the signature names its key', async () => {
  const signer = statementSigner(privateKey);
  const signature = await signer.sign('{"statement":1}');
  expect(signature).toMatch(/^[A-Za-z0-9+/]+=*$/);
  expect(signer.publicKey).toMatch(/^ssh-ed25519 [A-Za-z0-9+/]+=*$/);
  expect(signer.fingerprint).toMatch(/^SHA256:[A-Za-z0-9+/]{43}$/);
  expect(await verifySignature('{"statement":1}', signature)).toBe(signer.fingerprint);
});

test('anything else names no key', async () => {
  const signature = await statementSigner(privateKey).sign('payload');
  expect(await verifySignature('payload\n', signature)).toBeUndefined();
  expect(await verifySignature('payload', '')).toBeUndefined();
  expect(await verifySignature('payload', `${signature}AAAA`)).toBeUndefined();
  expect(await verifySignature('payload', 'x'.repeat(1_000_000))).toBeUndefined();
  // A key that signs commits too: its signatures of commits are no statements.
  expect(await verifySignature('payload', await sshSigner(privateKey)(Buffer.from('payload')))).toBeUndefined();
  const armored = await sshSigner(privateKey, STATEMENT_NAMESPACE)(Buffer.from('payload'));
  expect(await verifySignature('payload', armored)).toBe(statementSigner(privateKey).fingerprint);
});

test('text that is no key makes no signer, without a word of it', () => {
  expect(() => statementSigner('secret')).toThrow(/^the SSH key cannot be used: it is no private key/);
});
