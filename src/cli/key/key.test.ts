import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'js-yaml';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { isInstalled } from '../../../test/support/git/signing-keys.ts';
import { skipFor } from '../../../test/support/skip.ts';
import { dataFolder } from '../../app/data/data-folder.ts';
import { Session } from '../../app/session/session.ts';
import { openTrust, statementKeyPath } from '../../app/trust/open-trust.ts';
import { generateSshKey } from '../../git/signing/generate-ssh-key.ts';
import { parseSshSignature } from '../../git/signing/ssh-signature.ts';
import { STATEMENT_NAMESPACE } from '../../package/trust/statement/statement-signature.ts';
import { statementSigner } from '../../package/trust/statement/statement-signer.ts';
import { secretKind } from '../../resource/kinds/core/secret.ts';
import { repositoryKind } from '../../resource/kinds/porch/repository.ts';
import { type CliFixture, cliFixture } from '../testing.ts';

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
  mkdirSync(cli.data);
});
afterEach(() => cli[Symbol.asyncDispose]());

const other = statementSigner(generateSshKey('other'));

interface Shown {
  readonly own: { readonly fingerprint: string; readonly publicKey: string };
  readonly keys: readonly { readonly fingerprint: string; readonly origin: string; readonly revocation?: object }[];
}

async function shown(...words: string[]): Promise<Shown> {
  const { code, stdout } = await cli.run('key', 'show', '-o', 'json', ...words);
  expect(code).toBe(0);
  return JSON.parse(stdout) as Shown;
}

describe('key show', () => {
  test('prints the own key, which it makes, and all others with their state', async () => {
    const { own, keys } = await shown();
    expect(keys).toMatchObject([{ fingerprint: own.fingerprint, origin: 'own' }]);
    await cli.run('key', 'trust', `${other.publicKey} other`);
    const { code, stdout } = await cli.run('key', 'show');
    expect(code).toBe(0);
    const [first, second, empty, header, ...rows] = stdout.trimEnd().split('\n');
    expect(first).toMatch(new RegExp(`^${own.publicKey.replaceAll('+', '\\+')} sluice@`));
    expect(second).toBe(`signs statements here: ${own.fingerprint}, from ${statementKeyPath(cli.data)}`);
    expect([empty, header?.split(/ +/)]).toEqual(['', ['FINGERPRINT', 'ORIGIN', 'ADDED', 'STATE', 'COMMENT']]);
    expect(rows.map((row) => row.split(/ {3,}/).filter((_, column) => column !== 2))).toEqual([
      [own.fingerprint, 'own', 'signs', expect.stringMatching(/^sluice@/)],
      [other.fingerprint, 'added', 'trusted', 'other'],
    ]);
    const yaml = load((await cli.run('key', 'show', '-o', 'yaml')).stdout);
    expect(yaml).toEqual(await shown());
  });

  test('without a data folder, or with a key that others may read, prints the next step', async () => {
    expect(await cli.run('key', 'show', '--data', '/nonexistent/place')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no data folder'),
    });
    await shown();
    const path = statementKeyPath(cli.data);
    chmodSync(path, 0o644);
    const { code, stdout, stderr } = await cli.run('key', 'show');
    expect([code, stderr]).toEqual([1, expect.stringContaining(`run: chmod 600 ${path}`)]);
    expect(stdout).toContain('SHA256:');
    // Which key signs is not known, so that none is shown as retired.
    expect(stdout).toMatch(/^SHA256:\S+ +own .* unknown /m);
    expect((await cli.run('key', 'show', '--no-headers')).stdout).toMatch(/^SHA256:/);
  });

  test('shows a key that is provided by an option in any position or the environment', async () => {
    const file = join(cli.folder, 'ci-key');
    const text = generateSshKey('ci');
    writeFileSync(file, text, { mode: 0o600 });
    const { fingerprint } = statementSigner(text);
    expect((await shown('--signing-key', file)).own.fingerprint).toBe(fingerprint);
    const before = await cli.run('--signing-key', file, 'key', 'show', '-o', 'json');
    expect(before.stdout).toContain(fingerprint);
    expect(readdirSync(cli.data)).not.toContain('keys');
    expect(await cli.run('key', 'rotate', '--signing-key', file)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/the signing key is provided in .*: put another key there/),
    });
    expect(await cli.run('key', 'show', '--signing-key', file, '--signing-key-secret', 'a/b')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('name one key only'),
    });
    expect(await cli.run('key', 'show', '--signing-key-secret', 'nonsense')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('<namespace>/<name>'),
    });
    expect(await cli.run('key', 'show', '--signing-key-secret', 'default/none')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('there is no Secret default/none'),
    });
  });

  test('shows a key in a Secret of the data folder, and signs with it', async () => {
    await cli.run('repo', 'reg', cli.bare('one.git'));
    const session = await Session.open({ folder: dataFolder(cli.data), actor: { name: 'anna' }, write: true });
    const text = generateSshKey('secret');
    const { fingerprint } = statementSigner(text);
    const metadata = { name: 'signing', namespace: 'default' };
    await session.client.create(secretKind, { metadata, stringData: { 'ssh-privatekey': text } });
    await session.client.create(secretKind, {
      metadata: { ...metadata, name: 'other' },
      stringData: { password: 'x' },
    });
    await session.close();
    const place = ['--signing-key-secret', 'default/signing'];
    expect((await shown(...place)).own.fingerprint).toBe(fingerprint);
    const name = 'one.web.v1';
    for (const words of [
      ['init', 'web', '--repository', 'one', '--workspace', 'v1'],
      ['propose', name],
      ['approve', name],
    ])
      expect(await cli.run('rpkg', ...words, ...place)).toMatchObject({ code: 0 });
    const signature = cli.git('one.git', 'log', '-1', '--format=%(trailers:key=Sluice-Signature,valueonly)', 'web/v1');
    expect(parseSshSignature(signature).publicKey.fingerprint).toBe(fingerprint);
    const words = ['rpkg', 'init', 'db', '--repository', 'one', '--workspace', 'v1'];
    const other = await cli.run(...words, '--signing-key-secret', 'default/other');
    expect(other).toMatchObject({
      code: expect.any(Number),
      stderr: expect.stringContaining('has neither of the keys identity and ssh-privatekey'),
    });
    expect(other.code).not.toBe(0);
  });

  test(
    'prints allowed signers with which ssh-keygen verifies statements',
    skipFor(!isInstalled('ssh-keygen') && 'ssh-keygen is not installed'),
    async () => {
      const { signer, ledger } = await openTrust(cli.data);
      const payload = '{"statement":1}';
      const signature = await signer().sign(payload);
      const { fingerprint } = signer();
      ledger.close();
      await cli.run('key', 'trust', `${other.publicKey} other`);
      const allowed = join(cli.folder, 'allowed-signers');
      const armored = join(cli.folder, 'statement.sig');
      writeFileSync(armored, `-----BEGIN SSH SIGNATURE-----\n${signature}\n-----END SSH SIGNATURE-----\n`);
      const verify = async () => {
        const { code, stdout } = await cli.run('key', 'show', '--allowed-signers');
        expect(code).toBe(0);
        writeFileSync(allowed, stdout);
        const words = ['-Y', 'verify', '-f', allowed, '-I', 'sluice', '-n', STATEMENT_NAMESPACE, '-s', armored];
        return execFileSync('ssh-keygen', words, { input: payload, encoding: 'utf8', stdio: ['pipe', 'pipe', 'pipe'] });
      };
      expect(await verify()).toContain(
        `Good "${STATEMENT_NAMESPACE}" signature for sluice with ED25519 key ${fingerprint}`,
      );
      expect((await cli.run('key', 'rotate')).code).toBe(0);
      expect(await verify()).toContain(fingerprint);
      expect((await cli.run('key', 'revoke', fingerprint)).code).toBe(0);
      await expect(verify()).rejects.toThrow();
      expect(readFileSync(allowed, 'utf8')).toMatch(
        /^# revoked at \S+: sluice namespaces="statement@sluice\.dev" ssh-ed25519 /m,
      );
    },
  );
});

describe('key rotate', () => {
  test('makes a new key, removes the private part of the old one and keeps it trusted', async () => {
    const before = await shown();
    const text = readFileSync(statementKeyPath(cli.data), 'utf8');
    const { code, stdout } = await cli.run('key', 'rotate');
    expect(code).toBe(0);
    const after = await shown();
    expect(after.own.fingerprint).not.toBe(before.own.fingerprint);
    expect(after.keys.map(({ fingerprint }) => fingerprint)).toEqual([before.own.fingerprint, after.own.fingerprint]);
    expect(stdout).toContain(`${after.own.fingerprint} signs statements from now on\n`);
    expect(stdout).toContain(
      `${before.own.fingerprint} stays trusted for what it signed; its private part is removed\n`,
    );
    expect((await cli.run('key', 'show')).stdout).toMatch(/own +\S+ +retired/);
    expect(readdirSync(join(cli.data, 'keys'))).toEqual(['statement-key']);
    expect(readFileSync(statementKeyPath(cli.data), 'utf8')).not.toBe(text);
    const again: unknown = JSON.parse((await cli.run('key', 'rotate', '-o', 'json')).stdout);
    expect(again).toMatchObject({ before: { fingerprint: after.own.fingerprint }, own: { origin: 'own' } });
  });

  test('works where the old key is damaged, and names repositories that list their keys', async () => {
    const { own } = await shown();
    await cli.run('repo', 'reg', cli.bare('one.git'));
    await cli.run('repo', 'reg', cli.bare('two.git'));
    const session = await Session.open({ folder: dataFolder(cli.data), actor: { name: 'anna' }, write: true });
    const object = await session.repositories.find('default/two');
    if (object === undefined) throw new Error('two is not registered');
    const annotations = { 'sluice.dev/trusted-keys': own.publicKey };
    await session.client.update(repositoryKind, { ...object, metadata: { ...object.metadata, annotations } });
    await session.close();
    writeFileSync(statementKeyPath(cli.data), 'damaged');
    expect((await cli.run('key', 'show')).code).toBe(1);
    const { code, stderr } = await cli.run('key', 'rotate');
    expect(code).toBe(0);
    expect(stderr).toContain('the key that signed until now cannot be read');
    expect(stderr).toContain('Repository default/two lists the keys that it trusts: add the new one');
    expect(stderr).not.toContain('default/one');
    expect((await shown()).keys).toHaveLength(2);
  });
});

describe('key revoke', () => {
  test('ends the trust in a key that was added, once', async () => {
    await cli.run('key', 'trust', other.publicKey);
    const { code, stdout } = await cli.run('key', 'revoke', other.fingerprint);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^SHA256:\S+ revoked: what it signed until now/)]);
    expect((await shown()).keys.find(({ fingerprint }) => fingerprint === other.fingerprint)?.revocation).toBeDefined();
    expect((await cli.run('key', 'show')).stdout).toMatch(/added +\S+ +revoked 20/);
    expect((await cli.run('key', 'revoke', other.fingerprint)).stdout).toMatch(/was revoked at \S+ already\n$/);
    expect(await cli.run('key', 'trust', other.publicKey)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('a revoked key stays revoked'),
    });
    expect(await cli.run('key', 'revoke', 'SHA256:x')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('"sluice key show" lists the keys'),
    });
  });

  test('refuses the key that signs, unless it is forced to make another one first', async () => {
    const { own } = await shown();
    expect(await cli.run('key', 'revoke', own.fingerprint)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('--force'),
    });
    const { code, stdout } = await cli.run('key', 'revoke', own.fingerprint, '--force', '-o', 'json');
    expect(code).toBe(0);
    const after = await shown();
    expect(JSON.parse(stdout)).toMatchObject({
      revoked: { fingerprint: own.fingerprint, revocation: { at: expect.any(String) } },
      own: { fingerprint: after.own.fingerprint },
    });
    expect(after.own.fingerprint).not.toBe(own.fingerprint);
    (await openTrust(cli.data)).ledger.close();
  });
});

describe('key trust', () => {
  test('adds keys of a file, all or none', async () => {
    const file = join(cli.folder, 'other.pub');
    const second = statementSigner(generateSshKey('second'));
    writeFileSync(file, `# keys\n${other.publicKey} other server\n${second.publicKey}\n`);
    const { code, stdout } = await cli.run('key', 'trust', file);
    expect([code, stdout]).toEqual([0, `${other.fingerprint} (other server) trusted\n${second.fingerprint} trusted\n`]);
    expect((await cli.run('key', 'trust', file)).stdout).toContain('is trusted already\n');
    const third = statementSigner(generateSshKey('third'));
    writeFileSync(file, `${third.publicKey}\nnonsense\n`);
    expect(await cli.run('key', 'trust', file)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/other\.pub: line 2: the SSH key cannot be used/),
    });
    expect((await shown()).keys.some(({ fingerprint }) => fingerprint === third.fingerprint)).toBe(false);
    const data: unknown = JSON.parse((await cli.run('key', 'trust', third.publicKey, '-o', 'json')).stdout);
    expect(data).toMatchObject({ trusted: [{ fingerprint: third.fingerprint, origin: 'added' }] });
  });

  test('refuses what is no public key without a word of it', async () => {
    const file = join(cli.folder, 'private');
    writeFileSync(file, generateSshKey('private'));
    const { code, stderr } = await cli.run('key', 'trust', file);
    expect([code, stderr]).toEqual([2, expect.stringContaining(`cannot trust ${file}: it is a private key`)]);
    writeFileSync(file, 'no key\n'.repeat(50));
    const many = await cli.run('key', 'trust', file);
    expect(many.stderr).toMatch(/: line 1: .*; line 3: .*; and 47 more lines; give public keys/);
    expect(many.stderr).not.toContain('line 4:');
    expect(stderr).not.toContain('b3BlbnNzaC1rZXkt');
    expect((await cli.run('key', 'trust', '/nonexistent')).code).toBe(2);
    expect((await cli.run('key', 'trust', 'ssh-rsa AAAA')).stderr).toContain('the public key: line 1:');
  });
});

test('the namespace of a ledger in a cluster is refused for a data folder', async () => {
  expect(await cli.run('key', 'show', '--ledger-namespace', 'sluice-two')).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('name its kubeconfig with --kubeconfig'),
  });
});
