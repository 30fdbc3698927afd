import { readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { load } from 'js-yaml';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { ledgerPath } from '../../app/trust/open-trust.ts';
import { ProcessLock } from '../../foundation/files/process-lock.ts';
import { systemClock } from '../../foundation/time/clock.ts';
import { SqliteTrustLedger } from '../../package/trust/sqlite/sqlite-trust-ledger.ts';
import { parseTokenFile } from '../../server/authentication/token-file.ts';
import { type CliFixture, cliFixture } from '../testing.ts';

let cli: CliFixture;
beforeEach(async () => {
  cli = await cliFixture();
});
afterEach(() => cli[Symbol.asyncDispose]());

test('objects are backed up and restored; packages do not change', async () => {
  const file = join(cli.folder, 'backup.db');
  expect(await cli.run('backup', file)).toMatchObject({ code: 1, stderr: expect.stringContaining('no data folder') });
  await cli.run('repo', 'reg', cli.bare('one.git'));
  const backup = await cli.run('backup', file);
  expect(backup).toMatchObject({ code: 0, stdout: expect.stringMatching(/backup\.db written \(\d+ bytes\)\n$/) });
  expect((await stat(file)).mode & 0o777).toBe(0o600);
  expect(await cli.run('backup', file)).toMatchObject({ code: 1, stderr: expect.stringContaining('--force') });
  expect((await cli.run('backup', file, '--force')).code).toBe(0);
  await cli.run('repo', 'reg', cli.bare('two.git'));
  await cli.run('rpkg', 'init', 'web', '--repository', 'one', '--workspace', 'v1');
  const restored = await cli.run('restore', file);
  expect(restored).toMatchObject({ code: 0, stderr: expect.stringContaining('objects.db.before-restore-') });
  expect((await cli.run('repo', 'get', '-o', 'name')).stdout).toBe('repository.config.porch.kpt.dev/one\n');
  expect((await cli.run('rpkg', 'get', '-o', 'name')).stdout).toBe('packagerevision.porch.kpt.dev/one.web.v1\n');
  const aside = (await readdir(cli.data)).find((name) => /\.before-restore-\d+T\d+\.\d+Z$/.test(name));
  await cli.run('restore', join(cli.data, aside ?? ''));
  expect((await cli.run('repo', 'get', '-o', 'name')).stdout).toContain('two\n');
});

test('the trust ledger is part of a backup, and a restore loses no entry', async () => {
  const ledgerOf = () => SqliteTrustLedger.open({ path: ledgerPath(cli.data) });
  const file = join(cli.folder, 'backup.db');
  await cli.run('repo', 'reg', cli.bare('one.git'));
  const before = ledgerOf();
  before.addKey({ fingerprint: 'SHA256:a', publicKey: 'ssh-ed25519 A', comment: '', origin: 'added', addedAt: '' });
  const keys = before.keys();
  expect((await cli.run('backup', file)).code).toBe(0);
  before.revokeKey('SHA256:a', '2026-01-01T00:00:00Z');
  before.close();
  expect((await cli.run('restore', file)).code).toBe(0);
  const after = ledgerOf();
  expect(after.keys().map(({ fingerprint }) => fingerprint)).toEqual(keys.map(({ fingerprint }) => fingerprint));
  expect(after.keys().find(({ fingerprint }) => fingerprint === 'SHA256:a')?.revocation).toBeDefined();
  after.close();
  for (const name of ['trust.sqlite', 'trust.sqlite-wal', 'trust.sqlite-shm'])
    await rm(join(cli.data, name), { force: true });
  expect((await cli.run('restore', file)).code).toBe(0);
  const restored = ledgerOf();
  expect(restored.keys()).toEqual(keys);
  restored.close();
  const objects = new DatabaseSync(dataFolder(cli.data).database, { readOnly: true });
  expect(objects.prepare("SELECT count(*) AS n FROM sqlite_master WHERE name = 'attachments'").get()).toEqual({ n: 0 });
  objects.close();
  await writeFile(join(cli.data, 'trust.sqlite'), 'x'.repeat(5000));
  const damaged = await cli.run('restore', file);
  expect(damaged).toMatchObject({ code: 0, stderr: expect.stringContaining('trust.sqlite.before-restore-') });
  expect((await cli.run('repo', 'get', '-o', 'name')).stdout).toBe('repository.config.porch.kpt.dev/one\n');
});

test('nothing is restored that is no backup, nor while an up works', async () => {
  await cli.run('repo', 'reg', cli.bare('one.git'));
  const file = join(cli.folder, 'backup.db');
  expect(await cli.run('restore', file)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('there is no file'),
  });
  await writeFile(file, 'something else');
  expect(await cli.run('restore', file)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('nothing was changed'),
  });
  await cli.run('backup', file, '--force');
  const lock = await ProcessLock.acquire(dataFolder(cli.data).upLock, { holder: { since: '2026-01-01T00:00:00Z' } });
  expect(await cli.run('restore', file)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/stop "sluice up" on/),
  });
  await lock.release();
  expect((await cli.run('restore', file)).code).toBe(0);
});

test('a token is shown once, and its hash is kept', async () => {
  await cli.run('repo', 'reg', cli.bare('one.git'));
  const create = (...words: string[]) => cli.run('token', 'create', 'ci', '--group', 'deployers', ...words);
  expect(await create()).toMatchObject({ code: 1, stderr: expect.stringContaining('start "sluice up" once') });
  expect(await create('--expires', 'soon')).toMatchObject({ code: 2, stderr: expect.stringContaining('such as 720h') });
  const { stdout } = await create('-o', 'token', '--expires', '720h');
  expect(stdout).toMatch(/^sluice_\S+\n$/);
  const { tokens, kubeconfig } = dataFolder(cli.data);
  const kept = await readFile(tokens, 'utf8');
  expect(kept).not.toContain(stdout.trim());
  const [entry, ...others] = parseTokenFile(tokens, kept, () => undefined);
  expect(others).toEqual([]);
  expect(entry?.user).toEqual({ name: 'ci', groups: ['deployers'] });
  expect(entry?.expires).toBeGreaterThan(systemClock.now());
  const cluster = { name: 'sluice', cluster: { server: 'https://127.0.0.1:1', 'certificate-authority-data': 'eA==' } };
  await writeFile(
    kubeconfig,
    JSON.stringify({ clusters: [cluster], users: [{ name: 'admin', user: { token: 's' } }] }),
  );
  const config = load((await create()).stdout);
  expect(config).toMatchObject({
    clusters: [cluster],
    users: [{ name: 'ci', user: { token: expect.stringMatching(/^sluice_/) } }],
    'current-context': 'sluice',
  });
});
