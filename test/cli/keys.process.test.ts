import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { z } from 'zod';
import { sluice } from '../support/cli.ts';
import { isInstalled } from '../support/git/signing-keys.ts';
import { skipFor } from '../support/skip.ts';
import { Up } from '../support/up.ts';

const folder = mkdtempSync(join(tmpdir(), 'sluice-keys-'));
let up: Up | undefined;
afterEach(async () => {
  await up?.end('SIGKILL');
  rmSync(folder, { recursive: true });
});

const data = join(folder, 'data');
const hosted = join(data, 'repositories', 'packages.git');
const shownSchema = z.object({ own: z.object({ fingerprint: z.string() }) });

async function run(...words: string[]): Promise<string> {
  const { code, stdout, stderr } = await sluice([...words, '--data', data]);
  expect([words.join(' '), code, stderr]).toEqual([words.join(' '), 0, expect.any(String)]);
  return stdout;
}

async function ownKey(): Promise<string> {
  return shownSchema.parse(JSON.parse(await run('key', 'show', '-o', 'json'))).own.fingerprint;
}

/** Publishes a package; returns the output of ssh-keygen for the statement in the approval commit. */
async function publish(name: string, allowedSigners: string): Promise<string> {
  await run('rpkg', 'init', name, '--repository', 'packages', '--workspace', 'v1');
  await run('rpkg', 'propose', `packages.${name}.v1`);
  await run('rpkg', 'approve', `packages.${name}.v1`, '--as', 'bob');
  const trailer = (key: string) =>
    execFileSync('git', ['--git-dir', hosted, 'log', '-1', `--format=%(trailers:key=${key},valueonly)`, `${name}/v1`], {
      encoding: 'utf8',
    }).trim();
  const signature = join(folder, 'statement.sig');
  writeFileSync(
    signature,
    `-----BEGIN SSH SIGNATURE-----\n${trailer('Sluice-Signature')}\n-----END SSH SIGNATURE-----\n`,
  );
  const allowed = join(folder, 'allowed-signers');
  writeFileSync(allowed, allowedSigners);
  const words = ['-Y', 'verify', '-f', allowed, '-I', 'sluice', '-n', 'statement@sluice.dev', '-s', signature];
  return execFileSync('ssh-keygen', words, { input: trailer('Sluice-Statement'), encoding: 'utf8' });
}

test(
  'a running server signs with a key that was rotated meanwhile, and ssh-keygen verifies both',
  skipFor(!isInstalled('ssh-keygen') && 'ssh-keygen is not installed'),
  async () => {
    up = new Up(data, '--listen', '127.0.0.1:0');
    await up.said(/Serving|kubectl --kubeconfig/);
    await run('repo', 'reg', 'sluice:///packages.git', '--create-branch');
    const before = await ownKey();
    expect(await publish('one', await run('key', 'show', '--allowed-signers'))).toContain(before);
    await run('key', 'rotate');
    const after = await ownKey();
    expect(after).not.toBe(before);
    expect(await publish('two', await run('key', 'show', '--allowed-signers'))).toContain(after);
    expect(await run('rpkg', 'get')).not.toContain('out-of-band');
    await run('key', 'revoke', before);
    expect(await up.end('SIGTERM')).toBe(0);
  },
);
