import { readFileSync } from 'node:fs';
import { copyFile, cp, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { KubeApi } from '../../support/api/kube-api.ts';
import { RunningUp } from '../../support/api/running-up.ts';
import { temporaryFolder } from '../../support/git/git-cli.ts';
import { type GitServer, startGitServer } from '../../support/git/git-server.ts';
import { bareWithCommit } from '../../support/git/write-objects.ts';
import { hasKubectl } from '../../support/kubectl.ts';
import { CHECKOUT, PageShell } from '../../support/page-shell.ts';
import { sectionsOf } from '../../support/page-steps.ts';
import { skipFor } from '../../support/skip.ts';
import { ControlPlane } from '../support/control-plane.ts';
import { ArgoCd } from '../support/gitops/argocd.ts';
import { argoCdProgram } from '../support/gitops/argocd-program.ts';
import { Flux } from '../support/gitops/flux.ts';
import { fluxDefinitions } from '../support/gitops/flux-program.ts';
import { playNodes } from '../support/gitops/play-nodes.ts';
import { redisProgram } from '../support/gitops/redis-program.ts';
import { clusterPrograms } from '../support/programs.ts';

const page = readFileSync(join(CHECKOUT, 'docs/gitops-walkthrough.md'), 'utf8');
const without = inject('serverMissing') || (!hasKubectl() && 'kubectl is not installed') || '';
const argocd = without === '' ? await argoCdProgram((line) => console.log(line)) : { missing: without };
const redis = await redisProgram();
const definitions = await fluxDefinitions();
const missing =
  ('missing' in argocd && argocd.missing) ||
  ('missing' in redis && redis.missing) ||
  ('missing' in definitions && definitions.missing);
const START = 'sluice up';
const DATA = '.sluice';

/** Argo CD syncs one cluster and Flux another one, both with the objects of the page. */
describe('docs/gitops-walkthrough.md', { ...skipFor(missing), timeout: 300_000 }, () => {
  const folder = temporaryFolder();
  const sections = sectionsOf(page).filter(({ steps }) => steps.length > 0);
  const planes: ControlPlane[] = [];
  const engines: AsyncDisposable[] = [];
  let git: GitServer;
  let sluice: RunningUp | undefined;
  let shell: PageShell;
  /** Keeps the logs, of a start that failed too. */
  let failed = true;

  beforeAll(async () => {
    const cluster = await clusterPrograms(() => undefined);
    if ('missing' in cluster || 'missing' in argocd || 'missing' in redis || 'missing' in definitions)
      throw new Error('the programs are missing');
    for (const name of ['packages', 'edge-east', 'edge-west']) bareWithCommit(join(folder.path, `${name}.git`));
    git = await startGitServer({ root: folder.path });
    shell = await PageShell.create(folder.path, join(folder.path, 'work', DATA, 'kubeconfig'));
    await copyExamples(join(shell.work, 'examples/gitops'), git.url);
    const start = async (site: string) => {
      const plane = await ControlPlane.start({ programs: cluster, controllerManager: true, kwok: true });
      planes.push(plane);
      const api = await KubeApi.of(plane.kubeconfig);
      await playNodes(api).finally(() => api.close());
      await copyFile(plane.kubeconfig, join(shell.work, `${site}.kubeconfig`));
      return { kubeconfig: plane.kubeconfig, logs: join(plane.folder, 'logs') };
    };
    const [east, west] = await Promise.all([start('east'), start('west')]);
    engines.push(await ArgoCd.start({ cluster, argocd, redis }, east.kubeconfig, east.logs));
    engines.push(await Flux.start(cluster, west.kubeconfig, definitions, join(west.logs, 'kustomize-controller.log')));
    failed = false;
  });
  afterEach(({ task }) => {
    failed ||= task.result?.state === 'fail';
  });
  afterAll(async () => {
    for (const engine of engines) await engine[Symbol.asyncDispose]();
    await sluice?.end();
    await git?.close();
    for (const plane of planes) await plane.stop({ keepLogs: failed });
    if (failed) console.log(`logs: ${planes.map((plane) => `${plane.folder}/logs`).join(' ')}`);
    folder.remove();
  });

  /** Starts it with the default data folder of the page, which commands use while it runs. The Git host and the clusters of a test are on this machine. */
  async function startSluice(): Promise<void> {
    sluice = await RunningUp.start(join(shell.work, DATA), { words: ['--allow-git-host', '127.0.0.1'] });
  }

  test('has commands in its sections', () => expect(sections.length).toBeGreaterThan(6));
  for (const { title, steps } of sections)
    test(title, async ({ skip }) => {
      skip(failed, 'a section before it failed');
      for (const step of steps) {
        if (step.command === START) await startSluice();
        else await shell.follow(step);
      }
      expect(sluice?.ownFailures()).toEqual([]);
    });
});

/** Copies the examples, with the address of the Git host of a test in place of the one that the page names. */
async function copyExamples(to: string, url: string): Promise<void> {
  await cp(join(CHECKOUT, 'examples/gitops'), to, { recursive: true });
  for (const name of await readdir(to)) {
    if (!name.endsWith('.yaml')) continue;
    const text = await readFile(join(to, name), 'utf8');
    await writeFile(join(to, name), text.replaceAll('https://git.example.com', url));
  }
}
