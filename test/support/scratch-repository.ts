import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ManualClock } from '../../src/foundation/time/manual-clock.ts';
import type { GitRepository, TreeEdit } from '../../src/git/git-repository.ts';
import { openRepository } from '../../src/git/open/open-repository.ts';
import { DEFAULT_POLICY } from '../../src/package/model/policy/policy.ts';
import { PackageRepository, type PackageRepositoryOptions } from '../../src/package/store/package-repository.ts';
import { RevisionStore } from '../../src/package/store/revision-store.ts';
import type { RequestContext } from '../../src/resource/object/request-context.ts';
import { bareWithCommit } from './git/write-objects.ts';
import { MAIN_LAYOUT, serverTrust, trustOf } from './trust.ts';

const run = promisify(execFile);

export const anna: RequestContext = { actor: { name: 'anna' }, face: 'cli' };
export const robot: RequestContext = { actor: { name: 'controller:robot' }, face: 'controller' };

/** A bare Git repository in a temporary folder, with a first commit on main. */
export interface Scratch extends AsyncDisposable {
  readonly folder: string;
  readonly path: string;
  readonly clock: ManualClock;
  /** Runs git on the bare repository and returns what it prints. */
  git(...args: string[]): Promise<string>;
  /** Opens it as a package repository in a store of its own, as another process would. */
  open(options?: Partial<PackageRepositoryOptions>): Promise<{ store: RevisionStore; repository: PackageRepository }>;
}

export async function scratchRepository(): Promise<Scratch> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-'));
  const path = join(folder, 'packages.git');
  const clock = new ManualClock(Date.parse('2026-01-02T03:04:05Z'));
  bareWithCommit(path, { 'README.md': 'packages\n' }, pusherAt(clock.now()));
  const opened: RevisionStore[] = [];
  return {
    folder,
    path,
    clock,
    git: async (...args) => {
      const result = await run('git', ['-C', path, ...args], { maxBuffer: 1 << 28 });
      return result.stdout.trimEnd();
    },
    open: async (options = {}) => {
      const store = new RevisionStore();
      opened.push(store);
      const git = options.git ?? (await openRepository(path));
      const layout = options.layout ?? MAIN_LAYOUT;
      const repository = await PackageRepository.open({
        ...(await trustOf(git, path, layout, serverTrust, undefined, clock)),
        name: 'packages',
        namespace: 'default',
        deployment: false,
        url: path,
        clock,
        policyFor: () => DEFAULT_POLICY,
        dependentsOf: () => [],
        onChange: (changes) => store.announce(changes),
        ...options,
        git,
        layout,
      });
      await store.add(repository);
      return { store, repository };
    },
    [Symbol.asyncDispose]: async () => {
      await Promise.all(opened.map((store) => store.close()));
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Who pushes without Sluice. `time` is in milliseconds since the epoch. */
export function pusherAt(time: number) {
  return { name: 'pusher', email: 'pusher@example.com', time };
}

/** Commits files on a branch without any of Sluice's marks, as a plain push would. Returns the commit. */
export async function commitFiles(
  git: GitRepository,
  files: Readonly<Record<string, string | null>>,
  time: number,
  options: { branch?: string; from?: string; message?: string; links?: Readonly<Record<string, string>> } = {},
): Promise<string> {
  const ref = `refs/heads/${options.branch ?? 'main'}`;
  const old = await git.resolveRef(ref);
  const parent = old ?? (options.from === undefined ? undefined : await git.resolveRef(options.from));
  const base = parent === undefined ? undefined : (await git.readCommit(parent)).tree;
  const edits = new Map<string, TreeEdit>(
    Object.entries(files).map(([path, text]) => [path, text === null ? null : { data: Buffer.from(text) }]),
  );
  for (const [path, target] of Object.entries(options.links ?? {}))
    edits.set(path, { oid: await git.writeBlob(Buffer.from(target)), mode: '120000' });
  const signature = pusherAt(time);
  const oid = await git.writeCommit({
    tree: await git.editTree(base, edits),
    parents: parent === undefined ? [] : [parent],
    author: signature,
    committer: signature,
    message: options.message ?? 'pushed\n',
  });
  await git.transaction([
    old === undefined ? { type: 'create', ref, new: oid } : { type: 'update', ref, old, new: oid },
  ]);
  return oid;
}
