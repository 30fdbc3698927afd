import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { initRepository } from '../../src/git/open/open-repository.ts';
import { type GitServer, startGitServer } from '../support/git/git-server.ts';
import { commitFiles, type Scratch, scratchRepository } from '../support/scratch-repository.ts';
import { Up } from '../support/up.ts';

const TARGETS = 100;
/** A repository behind a server with proposals that were pushed with git, and a plan of two waves: all but ten, and ten. */
async function start(): Promise<{ scratch: Scratch; server: GitServer; data: string; config: string }> {
  const scratch = await scratchRepository();
  const git = await initRepository(scratch.path);
  for (let number = 0; number < TARGETS + 10; number += 1) {
    const path = `p${number}`;
    const kptfile = `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: ${path}\n`;
    const change = { branch: `proposed/${path}/v1`, from: 'refs/heads/main' };
    await commitFiles(git, { [`${path}/Kptfile`]: kptfile }, scratch.clock.now(), change);
  }
  await git.close();
  const server = await startGitServer({ root: scratch.folder });
  const config = join(scratch.folder, 'config.yaml');
  const repository = { git: { repo: `${server.url}/packages.git` } };
  const waves = [
    { name: 'many', count: TARGETS },
    { name: 'rest', percent: 100 },
  ];
  const objects = [
    { apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name: 'edge' }, spec: repository },
    { apiVersion: 'sluice.dev/v1alpha1', kind: 'WavePlan', metadata: { name: 'plan' }, spec: { waves } },
  ];
  writeFileSync(config, objects.map((object) => JSON.stringify(object)).join('\n---\n'));
  process.env.SLUICE_ALLOW_GIT_HOST = '127.0.0.1';
  return { scratch, server, data: join(scratch.folder, 'data'), config };
}

function pushes({ requests }: GitServer): number {
  return requests.filter(({ method, url }) => method === 'POST' && url.endsWith('/git-receive-pack')).length;
}

/** Runs "sluice up" until it has nothing left to do. The Git server is in this process, which must not wait for it. */
async function finish(data: string, ...words: string[]): Promise<void> {
  const up = new Up(data, '--no-listen', '--until-idle', ...words);
  const [status] = (await once(up.child, 'close')) as [number | null];
  expect(status, up.output).toBe(0);
}

interface Recorded {
  readonly spec: { readonly package: string };
  readonly record?: { readonly phase: string; readonly wave?: string };
}

/** The records of the targets in the data folder. */
function recorded(data: string): Recorded[] {
  const database = new DatabaseSync(join(data, 'objects.db'), { readOnly: true });
  try {
    const rows = database.prepare('SELECT object FROM objects WHERE topic = ?').all('sluice.dev/v1alpha1/WaveTarget');
    return rows.map(({ object }) => JSON.parse(String(object)) as Recorded);
  } finally {
    database.close();
  }
}

/** Exactly the planned approvals are in Git, each once. Returns the number of commits that they are. */
async function expectPlanned(scratch: Scratch, data: string): Promise<number> {
  const targets = recorded(data);
  expect(targets).toHaveLength(TARGETS + 10);
  const planned = targets.filter(({ record }) => record?.wave === 'many').map(({ spec }) => spec.package);
  expect(planned).toHaveLength(TARGETS);
  expect(new Set(targets.map(({ record }) => `${record?.wave} ${record?.phase}`))).toEqual(
    new Set(['many Approved', 'undefined Pending']),
  );
  const tags = (await scratch.git('tag', '--list')).split('\n');
  expect(tags.sort()).toEqual(planned.map((path) => `${path}/v1`).sort());
  // Each commit names the packages that it publishes.
  const named = (await scratch.git('log', '--first-parent', '--format=%B', 'main')).match(/^kpt:.*$/gm) ?? [];
  const annotation = (path: string) => `kpt:${JSON.stringify({ package: path, workspaceName: 'v1', revision: '1' })}`;
  expect(named.sort()).toEqual(planned.map(annotation).sort());
  // A commit changes what it names and nothing else.
  const changed = await scratch.git('log', '--first-parent', '-m', '--name-only', '--format=', 'main');
  expect(changed.split('\n').filter(Boolean).sort()).toEqual(
    ['README.md', ...planned.map((path) => `${path}/Kptfile`)].sort(),
  );
  return Number(await scratch.git('rev-list', '--first-parent', '--count', 'main')) - 1;
}

test('the approvals of a wave in a repository are one commit and one push', async () => {
  await using cleanup = new AsyncDisposableStack();
  const { scratch, server, data, config } = await start();
  cleanup.use(scratch);
  cleanup.defer(() => server.close());
  await finish(data, '--config', config, '--disable', 'wave-plan');
  const before = pushes(server);
  const began = Date.now();
  await finish(data);
  console.log(`${TARGETS} approvals: ${pushes(server) - before} pushes, ${Date.now() - began} ms with the start`);
  expect(await expectPlanned(scratch, data)).toBe(1);
  expect(pushes(server) - before).toBe(1);
});

test('after kills in the middle of a wave of 100 exactly the planned approvals exist, none twice', {
  timeout: 480_000,
}, async () => {
  await using cleanup = new AsyncDisposableStack();
  const { scratch, server, data, config } = await start();
  cleanup.use(scratch);
  cleanup.defer(() => server.close());
  await finish(data, '--config', config, '--disable', 'wave-plan');
  const before = pushes(server);
  const tags = () => scratch.git('tag', '--list');
  const never = new Promise(() => undefined);
  // Once while records are written, and during the push, before and after it was carried out. Without its answer no process gets further.
  for (const [behaviour, isNow] of [
    [{ hang: 'push' }, async () => recorded(data).length >= TARGETS / 2],
    [{ hang: 'push' }, async () => pushes(server) > before],
    [{ hang: undefined, holdPushed: never }, async () => (await tags()) !== ''],
  ] as const) {
    Object.assign(server.behaviour, behaviour);
    const up = new Up(data, '--no-listen', '--until-idle');
    try {
      while (!(await isNow())) {
        expect(up.child.exitCode, up.output).toBeNull();
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    } finally {
      await up.end('SIGKILL');
    }
  }
  server.behaviour.holdPushed = undefined;
  await finish(data);
  await expectPlanned(scratch, data);
});
