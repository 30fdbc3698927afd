import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Nothing of the user's configuration, and fixed people, so that tests create the same commits everywhere. */
export const GIT_ENVIRONMENT = {
  PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
  HOME: '/dev/null',
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_TERMINAL_PROMPT: '0',
  GIT_AUTHOR_NAME: 'Test',
  GIT_AUTHOR_EMAIL: 'test@example.com',
  GIT_AUTHOR_DATE: '1700000000 +0000',
  GIT_COMMITTER_NAME: 'Test',
  GIT_COMMITTER_EMAIL: 'test@example.com',
  GIT_COMMITTER_DATE: '1700000000 +0000',
} as const;

/** Runs the git command line in a repository and returns what it prints, trimmed at the end. Throws with its words if it fails. */
export function git(gitDir: string, commandArguments: readonly string[], input: string | Buffer = ''): string {
  return execFileSync('git', [`--git-dir=${gitDir}`, ...commandArguments], {
    input,
    env: GIT_ENVIRONMENT,
    maxBuffer: 256 * 1024 * 1024,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
    .toString('utf8')
    .trimEnd();
}

/** Creates an empty bare repository with the branch `main`, as `git init` does without a template. Returns its path. */
export function initBare(gitDir: string): string {
  for (const folder of ['objects/info', 'objects/pack', 'refs/heads', 'refs/tags'])
    mkdirSync(join(gitDir, folder), { recursive: true });
  writeFileSync(join(gitDir, 'config'), '[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n');
  writeFileSync(join(gitDir, 'HEAD'), 'ref: refs/heads/main\n');
  return gitDir;
}

/** What a ref names, if it exists. Reads the files of Git: a process for each look at a branch would take most of the time of some tests. */
export function readRef(gitDir: string, ref: string): string | undefined {
  const loose = readIfPresent(join(gitDir, ref));
  if (loose !== undefined) return loose.trim();
  const packed = readIfPresent(join(gitDir, 'packed-refs'))?.split('\n') ?? [];
  return packed.find((line) => line.endsWith(` ${ref}`))?.split(' ')[0];
}

function readIfPresent(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'EISDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}

/** All refs as `name → id`. */
export function refsOf(gitDir: string): Map<string, string> {
  const lines = git(gitDir, ['for-each-ref', '--format=%(refname) %(objectname)']).split('\n');
  return new Map(lines.filter((line) => line !== '').map((line) => line.split(' ') as [string, string]));
}

/** Throws unless `git fsck` accepts every object and ref. */
export function fsck(gitDir: string): void {
  git(gitDir, ['fsck', '--strict', '--full', '--no-dangling', '--no-progress']);
}

/** A folder that `remove` deletes. */
export function temporaryFolder(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'sluice-test-'));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
