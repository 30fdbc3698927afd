import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { isInstalled } from '../../../test/support/git/signing-keys.ts';
import { runs } from '../../../test/support/runs.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { describePublicKey, parseSshPublicKey } from './ssh-public-key.ts';
import { parseSshSignature, verifySshSignature } from './ssh-signature.ts';
import { armorSshSignature, sshSigner, sshSigningKey } from './ssh-signer.ts';
import { sshString } from './ssh-wire.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

const NAMESPACE = 'statement@sluice.dev';
const pem = { type: 'pkcs8', format: 'pem' } as const;
const ed25519 = `${generateKeyPairSync('ed25519').privateKey.export(pem)}`;
const rsa = `${generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export(pem)}`;
const ecdsa = `${generateKeyPairSync('ec', { namedCurve: 'P-521' }).privateKey.export(pem)}`;

/** True if the text is a valid signature; false if it is one that is not valid; throws for text that is none. */
function check(text: string, payload: Uint8Array | string): Promise<boolean> {
  return verifySshSignature(parseSshSignature(text), payload, NAMESPACE);
}

describe('signatures and ssh-keygen', skipFor(!isInstalled('ssh-keygen') && 'ssh-keygen is not installed'), () => {
  describe.each([
    ['ed25519', []],
    ['ecdsa', ['-b', '256']],
    ['ecdsa', ['-b', '384']],
    ['ecdsa', ['-b', '521']],
    ['rsa', ['-b', '2048']],
  ])('%s %j', (type, more) => {
    const file = join(folder.path, `key-${type}${more.join('')}`);
    execFileSync('ssh-keygen', ['-q', '-t', type, '-N', '', ...more, '-C', 'a comment', '-f', file]);
    const publicLine = readFileSync(`${file}.pub`, 'utf8');

    test('the public key reads as ssh-keygen prints it', () => {
      const printed = execFileSync('ssh-keygen', ['-l', '-f', `${file}.pub`], { encoding: 'utf8' });
      const { fingerprint, line, comment } = parseSshPublicKey(publicLine);
      expect(printed.split(' ')[1]).toBe(fingerprint);
      expect(`${line} ${comment}\n`).toBe(publicLine);
      expect(sshSigningKey(readFileSync(file, 'utf8'), 'git').publicKey.line).toBe(line);
    });

    test.each(['sha256', 'sha512'])('a signature of ssh-keygen with %s is valid here', async (hash) => {
      // Numbers in signatures are written shorter or longer by what their first bits are.
      for (let count = 0; count < 4; count += 1) {
        const payload = `payload ${count}\n`;
        const signature = execFileSync(
          'ssh-keygen',
          ['-q', '-Y', 'sign', '-O', `hashalg=${hash}`, '-n', NAMESPACE, '-f', file],
          { input: payload, encoding: 'utf8', stdio: ['pipe', 'pipe', 'ignore'] },
        );
        const parsed = parseSshSignature(signature);
        expect(parsed).toMatchObject({ hash, namespace: NAMESPACE });
        expect(parsed.publicKey.line).toBe(parseSshPublicKey(publicLine).line);
        expect(await check(signature, payload)).toBe(true);
        expect(await check(bare(signature), Buffer.from(payload))).toBe(true);
        expect(await check(signature, `${payload} `)).toBe(false);
        expect(await verifySshSignature(parsed, payload, 'git')).toBe(false);
      }
    });

    test('a signature made here is valid for ssh-keygen', async () => {
      const sign = sshSigner(readFileSync(file, 'utf8'), NAMESPACE);
      const allowed = `${file}.allowed`;
      writeFileSync(allowed, `sluice namespaces="${NAMESPACE}" ${publicLine}`);
      for (let count = 0; count < 4; count += 1) {
        const payload = `payload ${count}\n`;
        const signature = await sign(Buffer.from(payload));
        expect(await check(signature, payload)).toBe(true);
        writeFileSync(`${file}.sig`, signature);
        const words = ['-Y', 'verify', '-f', allowed, '-I', 'sluice', '-n', NAMESPACE, '-s', `${file}.sig`];
        const verify = (input: string) =>
          execFileSync('ssh-keygen', words, { input, encoding: 'utf8', stdio: ['pipe', 'pipe', 'ignore'] });
        expect(verify(payload)).toContain(`Good "${NAMESPACE}" signature for sluice`);
        expect(() => verify(`${payload} `)).toThrow();
      }
    });
  });
});

function bare(armored: string): string {
  return armored.split('\n').slice(1, -2).join('');
}

test('the signature of one payload by another key, and one with a changed bit, are not valid', async () => {
  for (const privateKey of [ed25519, rsa, ecdsa]) {
    const key = sshSigningKey(privateKey, NAMESPACE);
    const signature = await key.sign('payload');
    expect(await check(signature.toString('base64'), 'payload')).toBe(true);
    for (let at = 0; at < signature.length; at += 1) {
      const changed = Buffer.from(signature);
      changed[at] = (changed[at] ?? 0) ^ (1 << (at % 8));
      const result = await outcome(changed.toString('base64'), 'payload');
      expect([at, result]).not.toEqual([at, true]);
    }
  }
});

/** Like `check`, with undefined for what is no signature. Anything but InvalidInput goes through. */
async function outcome(text: string, payload: string): Promise<boolean | undefined> {
  try {
    return await check(text, payload);
  } catch (error) {
    if (isSluiceError(error, 'InvalidInput')) return undefined;
    throw error;
  }
}

test('a signature has one form only: nothing may be added to it', async () => {
  const signature = await sshSigningKey(ed25519, NAMESPACE).sign('payload');
  const text = signature.toString('base64');
  const reserved = Buffer.concat([
    ...[Buffer.from('SSHSIG'), Buffer.from([0, 0, 0, 1]), sshString(sshSigningKey(ed25519, 'x').publicKey.blob)],
    ...[sshString(NAMESPACE), sshString('anything'), sshString('sha512'), signature.subarray(-87)],
  ]);
  const wrong = [
    ...['', 'x', '====', `${text}\n${text}`, `${text.slice(0, -1)}`, `${text}AAAA`, text.replace(/^(.{10})/, '$1\n')],
    ...['A'.repeat(20_000), armorSshSignature(signature).replace('SSH SIGNATURE', 'PGP MESSAGE')],
    ...[Buffer.concat([signature, Buffer.from([0])]).toString('base64'), reserved.toString('base64')],
    text.replaceAll('+', '-').replaceAll('/', '_').replace(/=*$/, '!'),
  ];
  for (const one of wrong) expect([one, await outcome(one, 'payload')]).toEqual([one, undefined]);
});

test('hostile texts are refused and nothing else', async () => {
  const valid = await Promise.all([ed25519, rsa, ecdsa].map((key) => sshSigningKey(key, NAMESPACE).sign('payload')));
  const pieces = fc.oneof(
    fc.uint8Array({ maxLength: 40 }),
    fc.constantFrom(...valid.map((signature) => new Uint8Array(signature.subarray(0, 60)))),
    fc.constantFrom(
      ...['SSHSIG', '\0\0\0\x01', 'ssh-rsa', 'ssh-ed25519', '\xff\xff\xff\xff'].map((text) =>
        Buffer.from(text, 'latin1'),
      ),
    ),
  );
  const changed = fc
    .tuple(fc.constantFrom(...valid), fc.nat(), fc.nat(60), fc.uint8Array({ maxLength: 8 }))
    .map(([signature, at, removed, more]) => {
      const start = at % signature.length;
      return Buffer.concat([signature.subarray(0, start), more, signature.subarray(start + removed)]);
    });
  const built = fc
    .array(pieces, { maxLength: 12 })
    .map((list) => Buffer.concat([Buffer.from('SSHSIG\0\0\0\x01'), ...list]));
  await fc.assert(
    fc.asyncProperty(fc.oneof(changed, built), async (data) => {
      if (valid.some((signature) => signature.equals(data))) return;
      expect(await outcome(data.toString('base64'), 'payload')).not.toBe(true);
    }),
    { numRuns: runs(500) },
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        fc.string().map((text) => `ssh-ed25519 ${text}`),
      ),
      (line) => {
        expect(() => parseSshPublicKey(line)).toThrow(/^the SSH key cannot be used: /);
      },
    ),
  );
});

test('public keys that are too weak, too large or of another type are refused', () => {
  const line = (type: string, ...numbers: Buffer[]) =>
    `${type} ${Buffer.concat([sshString(type), ...numbers.map(sshString)]).toString('base64')}`;
  const modulus = (bytes: number) => Buffer.concat([Buffer.from([0, 0xf1]), Buffer.alloc(bytes - 1, 0xff)]);
  const exponent = Buffer.from([1, 0, 1]);
  const refused = (text: string) => expect(() => parseSshPublicKey(text));
  refused(line('ssh-rsa', exponent, modulus(128))).toThrow('an RSA key must have at least 2048 bits');
  refused(line('ssh-rsa', exponent, modulus(2049))).toThrow('an RSA key must have at most 16384 bits');
  refused(line('ssh-rsa', modulus(9), modulus(256))).toThrow('the exponent of the RSA key is too large');
  refused(line('ssh-dss', exponent)).toThrow('it is of none of the types ssh-ed25519');
  refused(line('ssh-ed25519-cert-v01@openssh.com', exponent)).toThrow('it is of none of the types ssh-ed25519');
  refused(line('sk-ssh-ed25519@openssh.com', exponent)).toThrow('it is of none of the types ssh-ed25519');
});

test('a public key that is written otherwise is refused, since its fingerprint would differ', () => {
  const jwk = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey;
  const { blob } = describePublicKey(jwk);
  const line = (data: Buffer) => `ssh-rsa ${data.toString('base64')} comment`;
  expect(parseSshPublicKey(line(blob)).comment).toBe('comment');
  const exponent = Buffer.from([0, 1, 0, 1]);
  const padded = Buffer.concat([sshString('ssh-rsa'), sshString(exponent), blob.subarray(7 + 4 + 3 + 4)]);
  expect(() => parseSshPublicKey(line(padded))).toThrow('it is damaged');
  expect(() => parseSshPublicKey(line(Buffer.concat([blob, Buffer.from([0])])))).toThrow('it is damaged');
  expect(() => parseSshPublicKey(line(blob).replace('ssh-rsa', 'ssh-ed25519'))).toThrow('its first word');
  expect(() => parseSshPublicKey(`${line(blob)}\u001b[2J`)).toThrow('control characters');
});
