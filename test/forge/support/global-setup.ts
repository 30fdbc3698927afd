import type { TestProject } from 'vitest/node';
import { startGitea } from './gitea.ts';
import { giteaProgram } from './gitea-program.ts';

declare module 'vitest' {
  interface ProvidedContext {
    giteaUrl: string;
    giteaFolder: string;
    /** Why there is no server; empty if there is one. */
    giteaMissing: string;
  }
}

/** One Gitea for all tests of the project; each creates a repository of its own in it. */
export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const program = await giteaProgram();
  const missing = 'missing' in program;
  const gitea = missing ? undefined : await startGitea(program);
  project.provide('giteaMissing', missing ? `no Gitea: ${program.missing}` : '');
  project.provide('giteaUrl', gitea?.url ?? '');
  project.provide('giteaFolder', gitea?.folder ?? '');
  return async () => gitea?.close();
}
