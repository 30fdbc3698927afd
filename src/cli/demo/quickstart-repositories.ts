import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../foundation/time/clock.ts';
import type { GitRepository, Oid, TreeEdit } from '../../git/git-repository.ts';
import { initRepository } from '../../git/open/open-repository.ts';

const MAIN = 'refs/heads/main';
/** The repositories of the targets in examples/quickstart. */
const TARGETS = ['edge-east', 'edge-west'] as const;
const WORKSPACE = 'v1';

export interface Quickstart {
  /** Folder of examples/quickstart. */
  readonly source: URL;
  /** Folder of the bare repositories. */
  readonly folder: string;
  readonly clock: Clock;
}

/**
 * Creates the missing repositories of the quick start: one with each package as a draft branch, as a user would push it with
 * plain git, and an empty one for each edge site. Existing repositories stay unchanged. Returns the drafts that it created.
 */
export async function makeRepositories({ source, folder, clock }: Quickstart): Promise<string[]> {
  for (const target of TARGETS) await (await initRepository(join(folder, `${target}.git`))).close();
  const git = await initRepository(join(folder, 'packages.git'));
  try {
    const main = (await git.resolveRef(MAIN)) ?? (await firstCommit(git, clock));
    const refs = await git.listRefs(['refs/heads/', 'refs/tags/']);
    const packages = fileURLToPath(new URL('packages/', source));
    const made: string[] = [];
    for (const entry of await readdir(packages, { withFileTypes: true })) {
      // A package that the repository already has in any lifecycle is not pushed again.
      if (!entry.isDirectory() || refs.some(({ name }) => name.includes(`/${entry.name}/`))) continue;
      await pushDraft(git, clock, main, entry.name, await filesBelow(join(packages, entry.name)));
      made.push(entry.name);
    }
    return made;
  } finally {
    await git.close();
  }
}

async function firstCommit(git: GitRepository, clock: Clock): Promise<Oid> {
  const readme = new Map([['README.md', { data: Buffer.from('# packages\n\nThe packages of the quick start.\n') }]]);
  const oid = await commit(git, clock, await git.editTree(undefined, readme), [], 'Begin the packages repository');
  await git.transaction([{ type: 'create', ref: MAIN, new: oid }]);
  return oid;
}

async function pushDraft(
  git: GitRepository,
  clock: Clock,
  main: Oid,
  name: string,
  files: ReadonlyMap<string, Buffer>,
): Promise<void> {
  const base = (await git.readCommit(main)).tree;
  const edits = new Map<string, TreeEdit>([...files].map(([path, data]) => [`${name}/${path}`, { data }]));
  const oid = await commit(git, clock, await git.editTree(base, edits), [main], `Draft of ${name}`);
  await git.transaction([{ type: 'create', ref: `refs/heads/drafts/${name}/${WORKSPACE}`, new: oid }]);
}

function commit(git: GitRepository, clock: Clock, tree: Oid, parents: readonly Oid[], subject: string): Promise<Oid> {
  const author = { name: 'Quick Start', email: 'quickstart@localhost', time: clock.now() };
  return git.writeCommit({ tree, parents, author, committer: author, message: `${subject}\n` });
}

async function filesBelow(folder: string): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  for (const entry of await readdir(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const full = join(entry.parentPath, entry.name);
    const path = full.slice(folder.length + 1).replaceAll('\\', '/');
    files.set(path, await readFile(full));
  }
  return files;
}
