import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { dataFolder } from '../../app/data/data-folder.ts';
import { ProcessLock } from '../../foundation/files/process-lock.ts';
import { runCli } from '../testing.ts';

let cache = '';
beforeEach(async () => {
  cache = await mkdtemp(join(tmpdir(), 'sluice-serve-'));
});
afterEach(() => rm(cache, { recursive: true }));

/** Runs it in a folder without access to a cluster, so that it ends before a replica starts. */
async function serve(...words: string[]) {
  const kubeconfig = join(cache, 'missing.kubeconfig');
  return runCli(['serve', '--kubeconfig', kubeconfig, '--cache-dir', cache, ...words]);
}

test('a cache folder that another process uses is refused with its holder, and that of a dead process is taken over', async () => {
  const { replicaLock } = dataFolder(cache);
  const lock = await ProcessLock.acquire(replicaLock, { holder: { since: '2026-01-01T00:00:00Z' } });
  const refused = await serve('--log', 'text');
  expect(refused.code).toBe(1);
  expect(refused.stderr).toContain(
    `another replica uses the cache folder ${cache}: process ${process.pid} holds ${replicaLock} since 2026-01-01T00:00:00Z; wait until it has ended, or stop it, or give each replica a folder of its own with --cache-dir`,
  );
  await lock.release();
  // A process that was killed leaves its statement behind, and no lock.
  await mkdir(cache, { recursive: true });
  await writeFile(`${replicaLock}.json`, JSON.stringify({ host: 'gone', pid: 7, since: '2026-01-01T00:00:00Z' }));
  expect((await serve('--log', 'text')).stderr).toContain('missing.kubeconfig');
  // It releases the lock, whatever it ended with.
  await (await ProcessLock.acquire(replicaLock, { timeoutMs: 0 })).release();
});

test.each([
  [['--lease-duration', 'soon'], 2, '--lease-duration "soon" must be a duration, such as 15s'],
  [['--namespace', 'A B'], 2, '--namespace "A B" is no name of a namespace'],
  [['--resolver', '/nowhere/resolver.ts'], 2, '/nowhere/resolver.ts'],
  [['--disable', 'garbage-collection'], 2, 'controller "garbage-collection" does not run in a cluster'],
  [
    ['--disable', 'reviewer'],
    2,
    'there are repository, package-variant-set, package-variant, revision, proposal, approval',
  ],
  [[], 2, 'missing.kubeconfig'],
])('with --log json, what ends it before a replica starts is one object a line: %s', async (words, code, message) => {
  const result = await serve('--log', 'json', ...words);
  expect(result).toMatchObject({ code, stderr: '' });
  const lines = result.stdout.trimEnd().split('\n');
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    ...{ level: 'warn', event: 'Failed', subject: 'sluice' },
    message: expect.stringContaining(message),
  });
});

test('the help of import and export names the default of -n', async () => {
  for (const command of ['import', 'export']) {
    const { stdout } = await runCli([command, '--help']);
    expect(stdout.replaceAll(/\s+/g, ' ')).toContain(
      'only the objects of this namespace, and the namespace itself (default: all)',
    );
  }
});
