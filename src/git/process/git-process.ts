import { type ChildProcess, spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { proxyVariables } from '../network/proxies.ts';

/**
 * Settings for every call. Hooks and automatic maintenance are off; what Git writes reaches the disk. Objects that arrive by fetch
 * are hashed anyway and never checked out, so `fsckObjects` stays off: it would refuse whole repositories for flaws in old history.
 */
const SETTINGS = [
  'core.hooksPath=/dev/null',
  'core.fsync=loose-object,pack,pack-metadata,reference',
  'core.fsyncMethod=fsync',
  'core.logAllRefUpdates=false',
  'core.fsmonitor=false',
  'core.askPass=',
  'credential.helper=',
  'gc.auto=0',
  'maintenance.auto=false',
  'fetch.recurseSubmodules=false',
  'submodule.recurse=false',
] as const;

/** For a repository whose writes need not survive a crash of the machine. */
export const NOT_DURABLE: readonly string[] = ['core.fsync=none'];

/**
 * Of the caller's environment, only PATH and, for HTTP, proxies are passed on: no system or user configuration, no prompt, no replaced
 * objects.
 */
function environment(allowedProtocol: string): NodeJS.ProcessEnv {
  return {
    PATH: process.env.PATH ?? '/usr/local/bin:/usr/bin:/bin',
    HOME: '/dev/null',
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '',
    // Empty allows no protocol at all.
    GIT_ALLOW_PROTOCOL: allowedProtocol,
    GIT_PROTOCOL_FROM_USER: '0',
    GIT_NO_REPLACE_OBJECTS: '1',
    GIT_NO_LAZY_FETCH: '1',
    GIT_OPTIONAL_LOCKS: '0',
    ...(allowedProtocol === 'https' || allowedProtocol === 'http' ? proxies() : {}),
  };
}

/** The proxies that the environment of this process names, as curl reads them; never for this machine itself. */
function proxies(): NodeJS.ProcessEnv {
  const { http, https, none } = proxyVariables();
  return {
    http_proxy: http,
    https_proxy: https,
    no_proxy: [none, 'localhost', '127.0.0.1', '::1'].filter((name) => name !== '').join(','),
  };
}

/** Folders of objects, as Git names them to its hooks. */
export interface Quarantine {
  readonly objectDirectory: string;
  /** In the form of GIT_ALTERNATE_OBJECT_DIRECTORIES. */
  readonly alternates: string;
}

export interface GitCommand {
  /** Folder of objects that are not accepted yet; see `RepositoryOptions.quarantine`. */
  readonly quarantine?: Quarantine | undefined;
  /** The bare repository; without it, a command that needs none. */
  readonly gitDir?: string;
  readonly settings?: readonly string[];
  readonly arguments: readonly string[];
  /** The one transport this command may use. */
  readonly allowedProtocol?: string;
}

export interface GitRun extends GitCommand {
  /** Milliseconds after which the whole process group is ended. */
  readonly timeout: number;
  readonly clock: Clock;
  readonly signal?: AbortSignal | undefined;
  readonly input?: string;
  /** Bytes that children can read once on file descriptor 3: neither arguments nor environment show them. */
  readonly secret?: string | undefined;
  /** Bytes of standard output above which the command is killed. */
  readonly maxOutput?: number;
}

export interface GitResult {
  /** Exit code, or -1 if the process ended by a signal. */
  readonly code: number;
  readonly stdout: Buffer;
  readonly stderr: string;
}

const MAX_OUTPUT_BYTES = 256 * 1024 * 1024;
const MAX_STDERR_BYTES = 64 * 1024;

/** Milliseconds that Git may take to remove its lock files before it is killed. */
const GRACE_MS = 1_000;

/** Processes that have ended and whose pipes are closed: their ids may belong to other processes by now. */
const ended = new WeakSet<ChildProcess>();

/** Starts git without a shell, as the leader of a process group of its own, with pipes as standard streams. */
export function spawnGit(command: GitCommand, withSecret = false): ChildProcess {
  const settings = [...SETTINGS, ...(command.settings ?? [])].flatMap((setting) => ['-c', setting]);
  const place = command.gitDir === undefined ? [] : [`--git-dir=${command.gitDir}`];
  const child = spawn('git', [...place, ...settings, ...command.arguments], {
    cwd: '/',
    env: { ...environment(command.allowedProtocol ?? ''), ...quarantined(command.quarantine) },
    detached: true,
    stdio: withSecret ? ['pipe', 'pipe', 'pipe', 'pipe'] : ['pipe', 'pipe', 'pipe'],
  });
  child.once('close', () => ended.add(child));
  return child;
}

function quarantined(quarantine: Quarantine | undefined): NodeJS.ProcessEnv {
  if (quarantine === undefined) return {};
  return {
    GIT_OBJECT_DIRECTORY: quarantine.objectDirectory,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: quarantine.alternates,
  };
}

/** Kills a process that spawnGit started, and all that it started. */
export function killGroup(child: ChildProcess): void {
  signalGroup(child, 'SIGKILL');
}

/** Ends a process that may hold locks: Git removes them on SIGTERM. A process that does not end in time is killed. */
export function endGroup(child: ChildProcess, clock: Clock): void {
  signalGroup(child, 'SIGTERM');
  const cancel = clock.schedule(GRACE_MS, () => signalGroup(child, 'SIGKILL'));
  child.once('close', cancel);
}

function signalGroup(child: ChildProcess, signal: 'SIGTERM' | 'SIGKILL'): void {
  if (child.pid === undefined || ended.has(child)) return;
  try {
    process.kill(-child.pid, signal);
  } catch {
    // ESRCH: the whole group has ended already, as intended.
  }
}

/** Collects the standard error of a process, up to a limit. The returned function returns it. */
export function collectStderr(child: ChildProcess): () => string {
  let text = '';
  child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
    if (text.length < MAX_STDERR_BYTES) text += chunk.slice(0, MAX_STDERR_BYTES);
  });
  return () => {
    const taken = text;
    text = '';
    return taken;
  };
}

/** Writes and ends. If the process ended early, its exit code is the error, not the broken pipe. */
function send(stream: Writable, text: string): void {
  stream.on('error', () => {
    // EPIPE or ECONNRESET: the process ended without reading all of it; its exit code has the reason.
  });
  stream.end(text);
}

/**
 * Runs git to its end and returns its exit code. Throws Timeout, LimitExceeded, or Unavailable (git missing, call
 * cancelled); then the whole process group has ended.
 */
export function runGit(run: GitRun): Promise<GitResult> {
  const name = `git ${run.arguments[0] ?? ''}`;
  return new Promise((resolve, reject) => {
    if (run.signal?.aborted) return reject(cancelled(name));
    const child = spawnGit(run, run.secret !== undefined);
    const stderr = collectStderr(child);
    const chunks: Buffer[] = [];
    let size = 0;
    let failure: SluiceError | undefined;
    const stop = (error: SluiceError) => {
      if (failure !== undefined) return;
      failure = error;
      endGroup(child, run.clock);
    };
    const maxOutput = run.maxOutput ?? MAX_OUTPUT_BYTES;
    const onAbort = () => stop(cancelled(name));
    const cancelTimer = run.clock.schedule(run.timeout, () =>
      stop(new SluiceError('Timeout', `${name} did not end within ${run.timeout / 1000} s and was stopped`)),
    );
    run.signal?.addEventListener('abort', onAbort, { once: true });
    const settle = () => {
      cancelTimer();
      run.signal?.removeEventListener('abort', onAbort);
    };
    child.stdout?.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size > maxOutput) stop(new SluiceError('LimitExceeded', `${name} printed more than ${maxOutput} bytes`));
      else chunks.push(chunk);
    });
    child.on('error', (cause) => {
      settle();
      reject(startError(cause));
    });
    child.on('close', (code) => {
      settle();
      if (failure !== undefined) reject(failure);
      else resolve({ code: code ?? -1, stdout: Buffer.concat(chunks), stderr: stderr() });
    });
    if (child.stdin !== null) send(child.stdin, run.input ?? '');
    const secretPipe = child.stdio[3];
    if (run.secret !== undefined && secretPipe != null) send(secretPipe as Writable, run.secret);
  });
}

export function startError(cause: unknown): SluiceError {
  return new SluiceError('Unavailable', 'cannot start git: install git 2.39 or later and put it in PATH', { cause });
}

function cancelled(name: string): SluiceError {
  return new SluiceError('Unavailable', `${name} was cancelled`);
}
