import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/foundation/time/clock.ts';
import { initRepository } from '../../src/git/open/open-repository.ts';
import type { Answer, KubeApi } from '../support/api/kube-api.ts';
import { RunningUp } from '../support/api/running-up.ts';
import { sluice } from '../support/cli.ts';
import { refsOf } from '../support/git/git-cli.ts';
import { type GitServerBehaviour, startGitServer } from '../support/git/git-server.ts';
import { processesWith } from '../support/git/processes.ts';
import { commitFiles } from '../support/scratch-repository.ts';

const GOOD = Array.from({ length: 9 }, (_, number) => `good-${number}`);
const REPOSITORIES = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/repositories';
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const KPTFILE = 'apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: there\n';

test('a hanging, a slow and a non-responding repository do not affect the others', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-many-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const serve = async (names: readonly string[], behaviour: GitServerBehaviour = {}) => {
    for (const name of names) await push(join(folder, `${name}.git`), { 'there/Kptfile': KPTFILE });
    const server = await startGitServer({ root: folder, ...behaviour });
    onTestFinished(() => server.close());
    const documents = names.map((name) => repository(name, `${server.url}/${name}.git`));
    return { ...server, documents };
  };
  const good = await serve(GOOD);
  const silent = await serve(['silent'], { hang: 'all' });
  const slow = await serve(['slow'], { delayMs: 1_500 });
  const stopping = await serve(['stopping']);
  const config = join(folder, 'config.yaml');
  await writeFile(config, [good, silent, slow, stopping].flatMap(({ documents }) => documents).join(''));
  await using up = await RunningUp.start(join(folder, 'data'), {
    words: ['--allow-git-host', '127.0.0.1', '--config', config],
  });
  const { api } = up;

  await expect.poll(() => readiness(api, [...GOOD, 'slow', 'stopping']), { timeout: 120_000 }).not.toContain('False');
  expect(await readiness(api, ['silent'])).toContain('False');
  stopping.behaviour.hang = 'push';
  // Nothing waits for this one, until the end.
  const stuck = create(api, 'stopping').catch((error: unknown) => error);

  await Promise.all(GOOD.map((name) => publish(api, name)));
  for (const name of GOOD) expect([...refsOf(join(folder, `${name}.git`)).keys()]).toContain('refs/tags/web/v1');
  await push(join(folder, 'good-3.git'), { 'later/Kptfile': KPTFILE }, 'drafts/later/w1');
  await succeed(() =>
    api.patch(`${REPOSITORIES}/good-3`, { metadata: { annotations: { 'sluice.dev/sync-requested-at': 'now' } } }),
  );
  await expect.poll(async () => (await api.get(`${REVISIONS}/good-3.later.w1`)).status).toBe(200);

  const list = await sluice(['rpkg', 'get', '--data', join(folder, 'data'), '-o', 'name']);
  // Exit code 1: the list has nothing of a repository that was never read.
  expect({ code: list.code, stderr: list.stderr }).toEqual({
    code: 1,
    stderr: expect.stringMatching(/^warning: repository silent: .*\n$/),
  });
  for (const name of [...GOOD, 'slow', 'stopping']) expect(list.stdout).toContain(`/${name}.there.main\n`);
  expect(stopping.requests.filter(({ status }) => status === undefined)).not.toHaveLength(0);

  // Well within the timeout of one request.
  const ended = await Promise.race([up.end('SIGTERM'), sleep(60_000, 'still running')]);
  expect(ended, up.output.slice(-2_000)).toBe(0);
  expect(await stuck).not.toBe('created');
  expect(up.ownFailures()).toEqual([]);
  expect(processesWith(folder)).toEqual([]);
  // It includes the ten seconds that a start waits for repositories that do not respond.
});

/** The status of the condition Ready of each. */
async function readiness(api: KubeApi, names: readonly string[]): Promise<string[]> {
  const { body } = await api.list(REPOSITORIES);
  return names.map((name) => {
    const status = (body.items.find(({ metadata }) => metadata.name === name)?.status ?? {}) as {
      conditions?: readonly { type: string; status: string }[];
    };
    return status.conditions?.find(({ type }) => type === 'Ready')?.status ?? 'False';
  });
}

async function create(api: KubeApi, name: string): Promise<'created'> {
  const spec = { packageName: 'web', workspaceName: 'v1', repository: name, tasks: [{ type: 'init', init: {} }] };
  await succeed(() => api.post(REVISIONS, { apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', spec }));
  return 'created';
}

async function publish(api: KubeApi, name: string): Promise<void> {
  await create(api, name);
  const place = `${REVISIONS}/${name}.web.v1`;
  await succeed(() => api.patch(place, { spec: { lifecycle: 'Proposed' } }));
  await succeed(() => api.patch(`${place}/approval`, { spec: { lifecycle: 'Published' } }));
}

/** Controllers write too; after a conflict the request is repeated. */
async function succeed(send: () => Promise<Answer>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    const { status, text } = await send();
    if (status < 300) return;
    if (status !== 409 || attempt > 20) throw new Error(`the server returned ${status}: ${text}`);
    await sleep(50);
  }
}

/** Commits into a bare repository, which is created if it does not exist, without Sluice. */
async function push(path: string, files: Readonly<Record<string, string>>, branch = 'main'): Promise<void> {
  const git = await initRepository(path);
  try {
    await commitFiles(git, files, systemClock.now(), { branch, from: 'refs/heads/main' });
  } finally {
    await git.close();
  }
}

function repository(name: string, repo: string): string {
  const spec = { git: { repo } };
  return `---\n${JSON.stringify({ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name }, spec })}\n`;
}
