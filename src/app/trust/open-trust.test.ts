import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { isInstalled } from '../../../test/support/git/signing-keys.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { ManualClock } from '../../foundation/time/manual-clock.ts';
import { generateSshKey } from '../../git/signing/generate-ssh-key.ts';
import { createKeyFile, replaceKeyFile } from '../../package/trust/keys/statement-key-file.ts';
import { statementSigner } from '../../package/trust/statement/statement-signer.ts';
import { verifySignature } from '../../package/trust/statement/verify-signature.ts';
import { ledgerPath, openTrust, statementKeyPath } from './open-trust.ts';

const root = mkdtempSync(join(tmpdir(), 'sluice-trust-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folder = root;
beforeEach(() => {
  folder = mkdtempSync(join(root, 'data-'));
});

test('the first start makes a key, and later ones have the same', async () => {
  const first = await openTrust(folder);
  const { fingerprint, publicKey } = first.signer();
  expect(first.ledger.keys()).toEqual([
    {
      ...{ fingerprint, publicKey, origin: 'own' },
      comment: expect.stringMatching(/^sluice@[A-Za-z0-9._-]+$/),
      addedAt: expect.stringMatching(/^20\d\d-.*Z$/),
    },
  ]);
  first.ledger.close();
  expect(statSync(statementKeyPath(folder)).mode & 0o777).toBe(0o600);
  expect(statSync(join(folder, 'keys')).mode & 0o777).toBe(0o700);
  expect(readdirSync(join(folder, 'keys'))).toEqual(['statement-key']);
  const second = await openTrust(folder);
  expect(second.signer().fingerprint).toBe(fingerprint);
  expect(await verifySignature('payload', await second.signer().sign('payload'))).toBe(fingerprint);
  expect(second.ledger.keys()).toHaveLength(1);
  second.ledger.close();
});

test(
  'ssh-keygen reads keys that are made, and Sluice those of ssh-keygen',
  skipFor(!isInstalled('ssh-keygen') && 'ssh-keygen is not installed'),
  async () => {
    for (const comment of ['', 'a', 'ab', 'sluice@localhost', 'x'.repeat(200)]) {
      const path = join(folder, `key-${comment.length}`);
      expect(createKeyFile(path, generateSshKey(comment))).toBe(true);
      const printed = execFileSync('ssh-keygen', ['-y', '-f', path], { encoding: 'utf8' }).trim();
      expect(printed).toBe(`${statementSigner(readFileSync(path, 'utf8')).publicKey} ${comment}`.trim());
    }
    const made = join(folder, 'made');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', made]);
    const { signer, ledger } = await openTrust(folder, { key: { file: made } });
    expect(readFileSync(`${made}.pub`, 'utf8').startsWith(signer().publicKey)).toBe(true);
    ledger.close();
  },
);

test('a key that others may read is refused with the command to run, and nothing is signed with it', async () => {
  (await openTrust(folder)).ledger.close();
  const path = statementKeyPath(folder);
  for (const mode of [0o640, 0o604, 0o620]) {
    chmodSync(path, mode);
    await expect(openTrust(folder)).rejects.toThrow(`run: chmod 600 ${path}`);
  }
  chmodSync(path, 0o400);
  (await openTrust(folder)).ledger.close();
});

describe('a key that an operator provides', () => {
  test('is a file in PEM or OpenSSH form; none is made in the data folder', async () => {
    const pem = `${generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })}`;
    const file = join(folder, 'ci key');
    writeFileSync(file, pem, { mode: 0o600 });
    const { signer, ledger } = await openTrust(folder, { key: { file } });
    expect(signer().fingerprint).toBe(statementSigner(pem).fingerprint);
    expect(ledger.keys()).toMatchObject([{ fingerprint: signer().fingerprint, origin: 'own' }]);
    ledger.close();
    expect(existsSync(statementKeyPath(folder))).toBe(false);
    chmodSync(file, 0o644);
    await expect(openTrust(folder, { key: { file } })).rejects.toThrow(`run: chmod 600 '${file}'`);
    writeFileSync(file, 'secret', { mode: 0o600 });
    chmodSync(file, 0o600);
    await expect(openTrust(folder, { key: { file } })).rejects.toThrow(`${file}: the SSH key cannot be used: it is no`);
    const none = join(folder, 'none');
    await expect(openTrust(folder, { key: { file: none } })).rejects.toThrow(`${none}: there is no such file`);
    await expect(openTrust(folder, { key: { file: folder } })).rejects.toThrow('is no file with a private key');
  });

  test('in a Secret counts as it is now', async () => {
    let text = generateSshKey('one');
    const key = { secret: 'default/signing', read: () => text };
    const { signer, ledger } = await openTrust(folder, { key });
    const before = signer().fingerprint;
    text = generateSshKey('two');
    expect(await verifySignature('payload', await signer().sign('payload'))).toBe(statementSigner(text).fingerprint);
    expect(ledger.keys().map(({ fingerprint }) => fingerprint)).toEqual([before, signer().fingerprint]);
    text = 'nonsense';
    expect(() => signer()).toThrow(/^Secret default\/signing: the SSH key cannot be used/);
    ledger.close();
    const read = () => {
      throw new SluiceError('NotFound', 'there is no Secret default/signing');
    };
    const other = await openTrust(folder, { key: { ...key, read } });
    expect(() => other.signer()).toThrow('there is no Secret default/signing');
    other.ledger.close();
  });
});

test('a key that another process rotates or revokes counts at once in a running one', async () => {
  const clock = new ManualClock();
  const running = await openTrust(folder, { clock });
  const old = running.signer().fingerprint;
  const other = await openTrust(folder, { clock });
  const text = generateSshKey('new');
  const { fingerprint, publicKey } = statementSigner(text);
  replaceKeyFile(statementKeyPath(folder), text);
  other.ledger.addKey({ fingerprint, publicKey, comment: 'new', origin: 'own', addedAt: '2026-01-01T00:00:00Z' });
  clock.advance(1000);
  expect(running.signer().fingerprint).toBe(fingerprint);
  expect(await verifySignature('payload', await running.signer().sign('payload'))).toBe(fingerprint);
  other.ledger.revokeKey(old, '2026-01-02T00:00:00Z');
  clock.advance(1000);
  await running.signer().sign('payload');
  other.ledger.revokeKey(fingerprint, '2026-01-03T00:00:00Z');
  clock.advance(1000);
  expect(() => running.signer()).toThrow(/was revoked at 2026-01-03T00:00:00Z; make another one/);
  running.ledger.close();
  other.ledger.close();
  await expect(openTrust(folder)).rejects.toThrow(/was revoked at .* "sluice key rotate"/);
});

test('a ledger that is damaged is no reason for a new one', async () => {
  writeFileSync(ledgerPath(folder), 'x'.repeat(5000));
  await expect(openTrust(folder)).rejects.toThrow('bring a backup back with "sluice restore"');
});
