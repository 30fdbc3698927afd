import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { RunningUp } from '../../support/api/running-up.ts';
import { bareWithCommit } from '../../support/git/write-objects.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** File of the server that is judged. */
    kubeconfig: string;
    /** A bare Git repository that the server can reach and that is ours to fill; empty if there is none. */
    gitRepository: string;
    /** The folder with the Git repository, where each test file can make another one beside it; empty if there is none. */
    gitFolder: string;
    /** Why there is no server, so that all tests are skipped; empty if there is one. */
    serverMissing: string;
  }
}

/**
 * The server that the suite judges: the one that `SLUICE_CONFORMANCE_KUBECONFIG` leads to, with a Git repository for packages
 * named by `SLUICE_CONFORMANCE_GIT`; else a `sluice up` of our own, which must not have blamed itself for anything in the end.
 */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  project.provide('serverMissing', '');
  const foreign = process.env.SLUICE_CONFORMANCE_KUBECONFIG;
  if (foreign !== undefined) {
    project.provide('kubeconfig', foreign);
    project.provide('gitRepository', process.env.SLUICE_CONFORMANCE_GIT ?? '');
    project.provide('gitFolder', '');
    return async () => undefined;
  }
  const folder = await mkdtemp(join(tmpdir(), 'sluice-conformance-'));
  const up = await RunningUp.start(join(folder, 'data'));
  project.provide('kubeconfig', up.folder.kubeconfig);
  project.provide('gitFolder', folder);
  project.provide('gitRepository', bareWithCommit(join(folder, 'packages.git')));
  return async () => {
    const code = await up.end();
    const failures = up.ownFailures();
    await rm(folder, { recursive: true });
    if (code !== 0 || failures.length > 0) throw new Error(`sluice up ended with ${code}:\n${failures.join('\n')}`);
  };
}
