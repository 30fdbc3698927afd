import { execFileSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import { temporaryFolder } from '../../../test/support/git/git-cli.ts';
import { isInstalled } from '../../../test/support/git/signing-keys.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { isSluiceError } from '../../foundation/sluice-error.ts';
import { allowsSigning, parseAllowedSigners } from './allowed-signers.ts';
import { sshSigner, sshSigningKey } from './ssh-signer.ts';

const privateKey = `${generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' })}`;
const key = sshSigningKey(privateKey, 'x').publicKey;
const NAMESPACE = 'statement@sluice.dev';
const AT = Date.UTC(2026, 5, 15, 12);

test('principals, options and keys are read, with their line', () => {
  const text = [
    '# who may sign',
    '',
    `anna@example.com,*@ops.example.com ${key.line} laptop`,
    `"two words" namespaces="git,statement@sluice.dev",valid-after="20260101Z",valid-before="202606301200Z" ${key.line}`,
    `eve\tVALID-AFTER="20260101"\t${key.line}\r`,
  ].join('\n');
  const [first, second, third, ...others] = parseAllowedSigners(text);
  expect(others).toEqual([]);
  expect(first).toMatchObject({ principals: 'anna@example.com,*@ops.example.com', line: 3, namespaces: undefined });
  expect(first?.publicKey.fingerprint).toBe(key.fingerprint);
  expect(second).toMatchObject({
    ...{ principals: 'two words', line: 4, namespaces: 'git,statement@sluice.dev' },
    ...{ validAfter: Date.UTC(2026, 0, 1), validBefore: Date.UTC(2026, 5, 30, 12) },
  });
  expect(third?.validAfter).toBe(new Date(2026, 0, 1).getTime());
});

/** Options of a line, and whether they let the key sign. */
const CASES: readonly (readonly [options: string, allowed: boolean])[] = [
  ['', true],
  ['namespaces="statement@sluice.dev"', true],
  ['namespaces="git"', false],
  ['namespaces="git,statement@*"', true],
  ['namespaces="*,!statement@sluice.dev"', false],
  ['namespaces="!git,*"', true],
  ['namespaces="!git"', false],
  ['namespaces="statement@sluice.de?"', true],
  ['namespaces="*@*.dev"', true],
  ['namespaces="*@*.devel"', false],
  ['valid-after="20260615Z"', true],
  ['valid-after="202606151201Z"', false],
  ['valid-before="20260615120000Z"', true],
  ['valid-before="20260615115959Z"', false],
  ['valid-after="20260101",valid-before="20261231",namespaces="statement@sluice.dev"', true],
];

test.each(CASES)('the options %s let sign: %s', (options, allowed) => {
  const [signer] = parseAllowedSigners(`sluice ${options} ${key.line}`);
  expect(signer && allowsSigning(signer, NAMESPACE, AT)).toBe(allowed);
});

describe('ssh-keygen', skipFor(!isInstalled('ssh-keygen') && 'ssh-keygen is not installed'), () => {
  const folder = temporaryFolder();
  afterAll(() => folder.remove());

  test.each(CASES)('agrees on %s', async (options, allowed) => {
    const file = join(folder.path, 'allowed');
    writeFileSync(file, `sluice ${options} ${key.line}\n`);
    writeFileSync(`${file}.sig`, await sshSigner(privateKey, NAMESPACE)(Buffer.from('payload')));
    const words = ['-Y', 'verify', '-f', file, '-I', 'sluice', '-n', NAMESPACE, '-s', `${file}.sig`];
    const verify = () =>
      execFileSync('ssh-keygen', [...words, '-O', 'verify-time=20260615120000Z'], {
        ...{ input: 'payload', env: { ...process.env, TZ: 'UTC' }, stdio: ['pipe', 'ignore', 'ignore'] },
      });
    if (allowed) verify();
    else expect(verify).toThrow();
  });
});

test.each([
  [`ca cert-authority ${key.line}`, 'cert-authority is not supported'],
  [`ca CERT-AUTHORITY,namespaces="git" ${key.line}`, 'cert-authority is not supported'],
  [`eve no-touch-required ${key.line}`, 'the option no-touch-required is unknown'],
  [`eve namespaces=git ${key.line}`, 'it has neither options nor a type of key'],
  [`eve namespaces ${key.line}`, 'the option namespaces needs a value in quotes'],
  [`eve namespaces="a",namespaces="b" ${key.line}`, 'occurs twice'],
  [`eve valid-after="yesterday" ${key.line}`, '"yesterday" is no time'],
  [`eve valid-after="20261301Z" ${key.line}`, '"20261301Z" is no time'],
  [`eve valid-after="20260231Z" ${key.line}`, '"20260231Z" is no time'],
  [`eve valid-after="20260301Z",valid-before="20260201Z" ${key.line}`, 'valid-before is not after valid-after'],
  [key.line, 'it has neither options nor a type of key'],
  ['eve', 'it has no principals, or no key'],
  ['eve ssh-ed25519', 'it is no line of the form'],
  ['"eve ssh-ed25519 AAAA', 'it has no principals, or no key'],
  [`eve ssh-rsa ${key.line.split(' ')[1]}`, 'its first word is not its type'],
])('%s is refused with its line', (line, message) => {
  const parse = () => parseAllowedSigners(`# comment\n${line}\n`);
  expect(parse).toThrow(/^line 2 of the allowed-signers file: /);
  expect(parse).toThrow(message);
});

test('hostile files are refused and nothing else, and in time', () => {
  const parse = (text: string) => {
    try {
      parseAllowedSigners(text);
    } catch (error) {
      if (!isSluiceError(error, 'InvalidInput')) throw error;
    }
  };
  const words = fc.constantFrom(
    'eve',
    ' ',
    '"',
    '\\',
    ',',
    'namespaces="',
    '*',
    'valid-after="2026',
    key.line,
    '\n',
    '=',
  );
  fc.assert(fc.property(fc.array(words, { maxLength: 30 }), (list) => parse(list.join(''))));
  for (const text of [
    '"'.repeat(1_000_000),
    '\\"'.repeat(500_000),
    `a ${'a'.repeat(1_000_000)}`,
    `a ${'namespaces="",'.repeat(90_000)}`,
  ])
    expect(() => parseAllowedSigners(text)).toThrow(/^line 1 /);
  expect(() => parseAllowedSigners('x'.repeat(5_000_000))).toThrow('too long');
  const [signer] = parseAllowedSigners(`a namespaces="${'*a'.repeat(1000)}b" ${key.line}`);
  expect(signer && allowsSigning(signer, 'a'.repeat(4000), AT)).toBe(false);
});
