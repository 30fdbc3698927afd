import { yieldToEventLoop } from '../../foundation/concurrency/in-slices.ts';
import { isSluiceError, SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import { checkRepository, createRepository } from '../disk/repository-format.ts';
import { checkUsable } from '../engines/isomorphic/check-usable.ts';
import { NativeRepository } from '../engines/native/native-repository.ts';
import type { GitRepository, ObjectSigner } from '../git-repository.ts';
import { DEFAULT_NETWORK, type GitNetwork } from '../network/git-network.ts';
import { DEFAULT_TIMEOUTS, type EngineOptions, type GitTimeouts } from '../process/engine-options.ts';
import { type Quarantine, runGit } from '../process/git-process.ts';
import { releaseLeftLocks } from '../refs/held-folders.ts';

const ENGINES = ['auto', 'native', 'isomorphic-git'] as const;

export interface RepositoryOptions {
  /**
   * `auto` uses the system's git if it is new enough. Default: the value of the environment variable
   * SLUICE_GIT_ENGINE, or `auto`.
   */
  readonly engine?: (typeof ENGINES)[number];
  readonly clock?: Clock;
  /** Milliseconds that this process has been running; default `performance.now()`. Set by tests. */
  readonly runningTime?: () => number;
  readonly signer?: ObjectSigner;
  readonly timeouts?: Partial<GitTimeouts>;
  /** Hosts that Sluice may connect to, and authorities that it trusts. Default: public hosts and this machine. */
  readonly network?: GitNetwork;
  /** How Sluice connects to remotes: `auto` (the default) uses git only where the built-in client cannot be used. */
  readonly transport?: 'auto' | 'git';
  /** Ref transactions of this many updates and more are written as one new `packed-refs`. Lowered by tests. */
  readonly packRefsFrom?: number;
  /** False if writes need not survive a crash of the machine: for mirrors that are repaired when they are damaged. */
  readonly durable?: boolean;
  /** Objects of a push that is not accepted yet, for a hook; only the native engine reads them. */
  readonly quarantine?: Quarantine;
  /** No writes: the repository may have a work tree. */
  readonly readOnly?: boolean;
}

/** The oldest version of git whose `cat-file --batch-command -z` and atomic `fetch --prune` this code relies on. */
const OLDEST_GIT = [2, 39] as const;

const LIMITS =
  'repositories on this machine and remotes over HTTP(S) can be used up to some 1,000 packages; ssh remotes, remotes without version 2 of the protocol, maintenance and repair cannot. Install git 2.39 or later for these';

/**
 * Opens a bare repository. Where `auto` falls back to the isomorphic-git engine, `engineNote` of the result has the reason and
 * the limits. Throws NotFound, Unsupported (see checkRepository), or Unavailable if the selected engine is missing.
 */
export async function openRepository(path: string, options: RepositoryOptions = {}): Promise<GitRepository> {
  // A start opens hundreds, which must not delay timers and requests.
  await yieldToEventLoop();
  const realPath = await checkRepository(path, options.readOnly);
  await releaseLeftLocks(realPath);
  const engineOptions: EngineOptions = {
    clock: options.clock ?? systemClock,
    runningTime: options.runningTime,
    timeouts: { ...DEFAULT_TIMEOUTS, ...options.timeouts },
    signer: options.signer,
    network: options.network ?? DEFAULT_NETWORK,
    transport: options.transport,
    packRefsFrom: options.packRefsFrom,
    durable: options.durable,
    quarantine: options.quarantine,
  };
  // Only git knows the objects of a push that is not accepted yet.
  const engine = options.quarantine === undefined ? (options.engine ?? engineOfEnvironment()) : 'native';
  const problem = engine === 'isomorphic-git' ? undefined : await nativeProblem(engineOptions.clock);
  if (engine !== 'isomorphic-git' && problem === undefined) return new NativeRepository(realPath, engineOptions);
  if (engine === 'native') throw new SluiceError('Unavailable', `the native Git engine cannot be used: ${problem}`);
  const slow = await checkUsable(realPath);
  // Loaded only when needed: it is large.
  const { IsomorphicRepository } = await import('../engines/isomorphic/isomorphic-repository.ts');
  const note = `${problem ?? 'the engine isomorphic-git was selected'}: ${LIMITS}`;
  return new IsomorphicRepository(realPath, engineOptions, slow === undefined ? note : `${note}. Also, ${slow}`);
}

function engineOfEnvironment(): (typeof ENGINES)[number] {
  const value = process.env.SLUICE_GIT_ENGINE ?? '';
  const engine = value === '' ? 'auto' : ENGINES.find((name) => name === value);
  if (engine !== undefined) return engine;
  throw new SluiceError(
    'InvalidInput',
    `SLUICE_GIT_ENGINE is ${JSON.stringify(value)}: set it to ${ENGINES.join(', ')}`,
  );
}

/** Creates an empty bare repository with `main` as its default branch, or leaves an existing one, and opens it. */
export async function initRepository(path: string, options: RepositoryOptions = {}): Promise<GitRepository> {
  await createRepository(path);
  return await openRepository(path, options);
}

/** The version of the system's git, for example `2.39.5`, or undefined if there is none. */
export async function gitVersion(clock: Clock = systemClock): Promise<string | undefined> {
  try {
    const { code, stdout } = await runGit({ arguments: ['version'], clock, timeout: 10_000 });
    return code === 0 ? /^git version (\S+)/.exec(stdout.toString('utf8'))?.[1] : undefined;
  } catch (error) {
    if (isSluiceError(error, 'Unavailable')) return undefined;
    throw error;
  }
}

/**
 * The checks of git by the value of PATH. Repositories that are opened at the same time share one: to start a process blocks the event
 * loop, the longer the more memory this process has.
 */
const checks = new Map<string | undefined, Promise<string | undefined>>();

/** Returns why the native engine cannot be used, or undefined. Only a git that can be used is not checked again. */
async function nativeProblem(clock: Clock): Promise<string | undefined> {
  const path = process.env.PATH;
  const check = checks.get(path) ?? versionProblem(clock);
  checks.set(path, check);
  let problem: string | undefined = 'not checked';
  try {
    problem = await check;
  } finally {
    if (problem !== undefined && checks.get(path) === check) checks.delete(path);
  }
  return problem;
}

async function versionProblem(clock: Clock): Promise<string | undefined> {
  const version = await gitVersion(clock);
  if (version === undefined) return 'git is not installed (not found in PATH)';
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const [oldestMajor, oldestMinor] = OLDEST_GIT;
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return undefined;
  return `git ${version} is older than ${OLDEST_GIT.join('.')}`;
}
