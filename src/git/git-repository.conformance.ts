import { afterEach, beforeEach, describe } from 'vitest';
import type { GitRepository, NewCommit, Oid, Signature } from './git-repository.ts';
import { registerHostileInput } from './hostile-input.conformance.ts';
import { registerObjects } from './objects.conformance.ts';
import type { RepositoryOptions } from './open/open-repository.ts';
import { registerRefs } from './refs.conformance.ts';
import { registerStaging } from './staging.conformance.ts';
import { registerTrees } from './trees.conformance.ts';

/** The dependencies of the suite: a way to open the engine under test, and git itself as the reference. */
export interface ConformanceHarness {
  open(path: string, options?: RepositoryOptions): Promise<GitRepository>;
  initBare(path: string): string;
  git(gitDir: string, commandArguments: readonly string[], input?: string | Buffer): string;
  fsck(gitDir: string): void;
  refsOf(gitDir: string): Map<string, string>;
  temporaryFolder(): { readonly path: string; remove(): void };
}

/** The repository of the running test. */
export interface Subject extends ConformanceHarness {
  readonly path: string;
  readonly repository: GitRepository;
  /** Closes the repository at the end of the test. */
  reopen(options?: RepositoryOptions): Promise<GitRepository>;
}

const PERSON: Signature = { name: 'Test', email: 'test@example.com', time: 1_700_000_000_000 };

export function commitOf(tree: Oid, parents: readonly Oid[] = [], message = 'change\n'): NewCommit {
  return { tree, parents, author: PERSON, committer: PERSON, message };
}

/** Registers the tests that every implementation of GitRepository has to pass. */
export function describeGitRepository(name: string, harness: ConformanceHarness): void {
  register(name, harness, [registerObjects, registerStaging, registerTrees, registerHostileInput, registerRefs]);
}

/** Registers those of refs only. */
export function describeRefs(name: string, harness: ConformanceHarness): void {
  register(name, harness, [registerRefs]);
}

function register(name: string, harness: ConformanceHarness, suites: readonly ((subject: Subject) => void)[]): void {
  describe(`GitRepository: ${name}`, () => {
    const opened: GitRepository[] = [];
    let current: { path: string; repository: GitRepository; remove(): void };

    beforeEach(async () => {
      const folder = harness.temporaryFolder();
      const path = harness.initBare(`${folder.path}/repository.git`);
      current = { path, repository: await open(path), remove: folder.remove };
    });

    afterEach(async () => {
      for (const repository of opened.splice(0)) await repository.close();
      current.remove();
    });

    async function open(path: string, options?: RepositoryOptions): Promise<GitRepository> {
      const repository = await harness.open(path, options);
      opened.push(repository);
      return repository;
    }

    const subject: Subject = {
      ...harness,
      get path() {
        return current.path;
      },
      get repository() {
        return current.repository;
      },
      reopen: (options) => open(current.path, options),
    };
    for (const registerSuite of suites) registerSuite(subject);
  });
}
