import { execFileSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bareWithCommit, writeObject } from '../../test/support/git/write-objects.ts';
import { holdFolder } from '../git/refs/held-folders.ts';
import { Terminal } from './output/terminal.ts';
import { runProgram } from './program.ts';

export interface CliResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder with a data folder and bare repositories, and commands in this process on it. */
export interface CliFixture extends AsyncDisposable {
  readonly folder: string;
  readonly data: string;
  /** Runs a command as the user anna, on the data folder of the fixture. */
  run(...words: string[]): Promise<CliResult>;
  /** Runs git in a bare repository of the fixture. */
  git(repository: string, ...words: string[]): string;
  /** Writes a tree into a bare repository from lines as `git ls-tree` prints them; returns its id. */
  tree(repository: string, lines: string): string;
  /** Writes a file into a bare repository; returns its id. */
  blob(repository: string, text: string): string;
  /** Makes a bare repository with a first commit on main; returns its path. */
  bare(name: string): string;
}

export async function cliFixture(): Promise<CliFixture> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-cli-'));
  const data = join(folder, 'data');
  // As a server holds its data folder, so that small repositories in it are written without processes.
  const release = holdFolder(folder);
  const git = (repository: string, ...words: string[]) =>
    execFileSync('git', ['--git-dir', join(folder, repository), ...words], {
      encoding: 'utf8',
      env: { ...process.env, ...identity },
    }).trim();
  return {
    folder,
    data,
    git,
    run: (...words) => runCli(words, { SLUICE_DATA: data, SLUICE_USER: 'anna', SLUICE_ALLOW_GIT_HOST: '127.0.0.1' }),
    tree: (repository, lines) =>
      execFileSync('git', ['--git-dir', join(folder, repository), 'mktree'], { input: lines, encoding: 'utf8' }).trim(),
    blob: (repository, text) => writeObject(join(folder, repository), 'blob', text),
    bare: (name) => bareWithCommit(join(folder, name)),
    [Symbol.asyncDispose]: () => {
      release();
      return rm(folder, { recursive: true, force: true });
    },
  };
}

const identity = {
  GIT_AUTHOR_NAME: 'bob',
  GIT_AUTHOR_EMAIL: 'bob@example.com',
  GIT_COMMITTER_NAME: 'bob',
  GIT_COMMITTER_EMAIL: 'bob@example.com',
};

/** Runs one command line in this process, without a terminal. */
export async function runCli(words: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<CliResult> {
  let [stdout, stderr] = ['', ''];
  const out = {
    write(text: string) {
      stdout += text;
    },
  };
  const err = {
    write(text: string) {
      stderr += text;
    },
  };
  const code = await runProgram(words, { terminal: new Terminal(out, err, environment), environment });
  return { code, stdout, stderr };
}
