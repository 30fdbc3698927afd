import { mkdir, realpath } from 'node:fs/promises';
import { type Clock, systemClock } from '../foundation/clock.ts';
import { SluiceError } from '../foundation/sluice-error.ts';
import type { CommitSigner, GitRepository } from './git-repository.ts';
import { runGit } from './native/git-process.ts';
import type { GitTimeouts } from './native/native-options.ts';
import { NativeRepository } from './native/native-repository.ts';

export interface RepositoryOptions {
  readonly engine?: 'auto' | 'native' | 'isomorphic-git';
  readonly clock?: Clock;
  readonly signer?: CommitSigner;
  readonly timeouts?: Partial<GitTimeouts>;
  readonly allowInsecureHttp?: boolean;
}

const TIMEOUTS: GitTimeouts = {
  local: 30_000,
  listRemote: 60_000,
  fetch: 600_000,
  push: 120_000,
  maintain: 600_000,
  idle: 60_000,
};

export async function openRepository(path: string, options: RepositoryOptions = {}): Promise<GitRepository> {
  return new NativeRepository(await realpath(path), {
    clock: options.clock ?? systemClock,
    timeouts: { ...TIMEOUTS, ...options.timeouts },
    signer: options.signer,
    allowInsecureHttp: options.allowInsecureHttp,
  });
}

/** Creates an empty bare repository (or leaves an existing one as it is) and opens it. */
export async function initRepository(path: string, options: RepositoryOptions = {}): Promise<GitRepository> {
  const clock = options.clock ?? systemClock;
  await mkdir(path, { recursive: true });
  const result = await runGit({
    arguments: ['init', '--quiet', '--bare', '--initial-branch=main', '--template=', '--', path],
    timeout: 30_000,
    clock,
  });
  if (result.code !== 0) throw new SluiceError('Internal', result.stderr);
  return openRepository(path, options);
}
