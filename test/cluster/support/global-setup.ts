import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { startGitServer } from '../../support/git/git-server.ts';
import { bareWithCommit } from '../../support/git/write-objects.ts';
import { ControlPlane } from './control-plane.ts';
import { installDefinitions } from './install-definitions.ts';
import { clusterPrograms } from './programs.ts';
import { Installation } from './sluice-serve.ts';

/**
 * One control plane for all tests of the project, which work in namespaces of their own; a test that breaks one starts another. It has the
 * definitions of `deploy/crds`, and Sluice, which serves the package kinds through aggregation, with a Git repository for them.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const programs = await clusterPrograms((line) => console.log(`cluster: ${line}`));
  const missing = 'missing' in programs;
  const start = Date.now();
  let sluice: StartedSluice | undefined;
  const plane = missing ? undefined : await ControlPlane.start({ programs, controllerManager: true, kwok: true });
  if (plane !== undefined) {
    console.log(`cluster: the control plane started in ${Date.now() - start} ms`);
    try {
      await installDefinitions(plane.kubeconfig);
      sluice = await startSluice(plane);
      console.log(`cluster: Sluice served after ${Date.now() - start} ms`);
    } catch (error) {
      await plane.stop();
      throw error;
    }
  }
  project.provide('serverMissing', missing ? `no control plane: ${programs.missing}` : '');
  project.provide('kubeconfig', plane?.kubeconfig ?? '');
  project.provide('gitRepository', sluice?.gitRepository ?? '');
  project.provide('gitFolder', sluice?.gitFolder ?? '');
  return async () => {
    const keepLogs = project.vitest.state.getCountOfFailedTests() > 0;
    if (keepLogs && plane !== undefined && sluice !== undefined)
      await writeFile(join(plane.folder, 'logs', 'sluice.log'), sluice.log());
    await sluice?.[Symbol.asyncDispose]();
    await plane?.stop({ keepLogs });
    if (keepLogs) console.log(`cluster: logs of the control plane: ${plane?.folder}/logs`);
  };
}

interface StartedSluice extends AsyncDisposable {
  /** The address of a repository of a Git host. */
  readonly gitRepository: string;
  /** The folder of the repositories of that host. */
  readonly gitFolder: string;
  log(): string;
}

async function startSluice(plane: ControlPlane): Promise<StartedSluice> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-git-'));
  bareWithCommit(join(folder, 'packages.git'));
  const git = await startGitServer({ root: folder });
  const installation = await Installation.create(plane);
  const replica = await installation.start();
  const dispose = async () => {
    await installation[Symbol.asyncDispose]();
    await git.close();
    await rm(folder, { recursive: true, force: true });
  };
  try {
    await installation.served();
  } catch (error) {
    await dispose();
    throw error;
  }
  return {
    gitRepository: `${git.url}/packages.git`,
    gitFolder: folder,
    log: () => replica.lines.join('\n'),
    [Symbol.asyncDispose]: dispose,
  };
}
