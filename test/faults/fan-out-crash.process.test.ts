import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { KubeApi, KubeObject } from '../support/api/kube-api.ts';
import { RunningUp } from '../support/api/running-up.ts';

const TARGETS = 200;
const REPOSITORIES = 10;
const NAMES = Array.from({ length: REPOSITORIES }, (_, index) => `edge-${index}`);
const PACKAGES = Array.from({ length: TARGETS / REPOSITORIES }, (_, index) => `site-${index}`);
const REVISIONS = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';
const RESOURCES = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisionresources';
const VARIANTS = '/apis/config.porch.kpt.dev/v1alpha1/namespaces/default/packagevariants';
const SETS = '/apis/config.porch.kpt.dev/v1alpha2/namespaces/default/packagevariantsets';
const WAIT = { timeout: 240_000, interval: 100 };

const git = (path: string, ...args: string[]) => execFileSync('git', ['-C', path, ...args], { encoding: 'utf8' });

async function makeRepositories(folder: string): Promise<string> {
  const manifests = ['blueprints', ...NAMES].map((name) => {
    const path = join(folder, `${name}.git`);
    execFileSync('git', ['init', '--quiet', '--bare', '--initial-branch=main', path]);
    const commit = 'commit refs/heads/main\ncommitter a <a@example.com> 1767225600 +0000\ndata 5\nfirst\n';
    execFileSync('git', ['-C', path, 'fast-import', '--quiet'], {
      input: `${commit}M 100644 inline README.md\ndata 3\nabc\n`,
    });
    const spec = { git: { repo: path } };
    return `---\n${JSON.stringify({ apiVersion: 'config.porch.kpt.dev/v1alpha1', kind: 'Repository', metadata: { name }, spec })}\n`;
  });
  const config = join(folder, 'config.yaml');
  await writeFile(config, manifests.join(''));
  return config;
}

async function succeed(send: () => ReturnType<KubeApi['post']>): Promise<void> {
  // Repositories that are not open yet, and controllers that write at the same time.
  await expect.poll(async () => (await send()).status, WAIT).toBeLessThan(300);
}

async function publish(api: KubeApi, workspaceName: string, task: object, text: string): Promise<void> {
  const spec = { packageName: 'web', workspaceName, repository: 'blueprints', tasks: [task] };
  const name = `blueprints.web.${workspaceName}`;
  await succeed(() => api.post(REVISIONS, { apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', spec }));
  await succeed(() => api.patch(`${RESOURCES}/${name}`, { spec: { resources: { 'a.yaml': text } } }));
  await succeed(() => api.patch(`${REVISIONS}/${name}`, { spec: { lifecycle: 'Proposed' } }));
  await succeed(() => api.patch(`${REVISIONS}/${name}/approval`, { spec: { lifecycle: 'Published' } }));
}

/** `<repository>/<branch> <commits>` of all drafts. */
function drafts(folder: string): string[] {
  return NAMES.flatMap((name) => {
    const path = join(folder, `${name}.git`);
    const branches = git(path, 'for-each-ref', '--format=%(refname:short)', 'refs/heads/drafts').split('\n');
    return branches
      .filter(Boolean)
      .map((branch) => `${name}/${branch} ${git(path, 'rev-list', '--count', branch, '^main').trim()}`);
  }).sort();
}

function draftsWith(commits: number): string[] {
  return NAMES.flatMap((name) => PACKAGES.map((path) => `${name}/drafts/${path}/packagevariant-1 ${commits}`)).sort();
}

function isReady({ status }: KubeObject): boolean {
  const { conditions = [] } = (status ?? {}) as { conditions?: { type: string; status: string }[] };
  return conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True');
}

test('a fan-out that is killed at any moment makes each draft and each change of it once', {
  timeout: 900_000,
}, async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-fan-out-'));
  let up: RunningUp | undefined;
  try {
    const words = ['--config', await makeRepositories(folder)];
    const start = async () => {
      const started = await RunningUp.start(join(folder, 'data'), { words });
      up = started;
      return started;
    };
    let running = await start();
    const { api } = running;
    await publish(api, 'v1', { type: 'init', init: {} }, 'a: 1\n');
    const targets = [{ repositories: NAMES.map((name) => ({ name, packageNames: PACKAGES })) }];
    await succeed(() =>
      api.post(SETS, {
        ...{ apiVersion: 'config.porch.kpt.dev/v1alpha2', kind: 'PackageVariantSet', metadata: { name: 'fleet' } },
        spec: { upstream: { repo: 'blueprints', package: 'web' }, targets },
      }),
    );
    // At different moments: before all variants exist, with some drafts, and with most.
    for (const least of [1, 40, 150]) {
      await expect.poll(() => drafts(folder).length, WAIT).toBeGreaterThanOrEqual(least);
      await running.end('SIGKILL');
      running = await start();
    }
    await expect.poll(() => drafts(folder), WAIT).toEqual(draftsWith(1));

    await publish(running.api, 'v2', { type: 'edit', edit: { sourceRef: { name: 'blueprints.web.v1' } } }, 'a: 2\n');
    await expect.poll(() => drafts(folder).filter((one) => one.endsWith(' 2')).length, WAIT).toBeGreaterThan(20);
    await running.end('SIGKILL');
    const last = await start();
    await expect.poll(() => drafts(folder), WAIT).toEqual(draftsWith(2));
    await expect
      .poll(async () => (await last.api.list(VARIANTS)).body.items.filter(isReady).length, WAIT)
      .toBe(TARGETS);
    expect(drafts(folder)).toEqual(draftsWith(2));
    expect(last.ownFailures()).toEqual([]);
  } finally {
    await up?.end('SIGKILL');
    await rm(folder, { recursive: true, force: true });
  }
});
