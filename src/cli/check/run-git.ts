import { execFile } from 'node:child_process';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';

const MAX_LIST_BYTES = 64 * 1024 * 1024;
const GIT_TIMEOUT_MS = 60_000;
/** Settings of the user that would change a list, or run a program. */
const PLAIN = ['--no-optional-locks', '-c', 'core.fsmonitor=false', '-c', 'diff.ignoreSubmodules=all'];

interface GitFailure extends Error {
  readonly code?: unknown;
}

/** Runs git of the user in a working tree. Throws InvalidInput where it fails with an exit code that is not `permitted`. */
export async function runGit(
  folder: string,
  args: readonly string[],
  { permitted = [] }: { readonly permitted?: readonly number[] } = {},
): Promise<string> {
  const { stdout, stderr, error } = await start(folder, args, '', MAX_LIST_BYTES);
  if (error === null || permitted.some((code) => code === error.code)) return stdout.toString('utf8');
  if (error.code === 'ENOENT') throw new SluiceError('Unavailable', 'git is not installed');
  const said = stderr.trim() === '' ? messageOf(error) : stderr.trim();
  throw new SluiceError('InvalidInput', `git ${args[0]} failed: ${said}`);
}

/** Reads blobs, in this order. Throws LimitExceeded if they have more bytes together. */
export async function readGit(folder: string, oids: readonly string[], maxBytes: number): Promise<readonly Buffer[]> {
  if (oids.length === 0) return [];
  const sizes = await start(folder, ['cat-file', '--batch-check=%(objectsize)'], lines(oids), MAX_LIST_BYTES);
  const all = sizes.stdout.toString('utf8').trim().split('\n').map(Number);
  const bytes = all.reduce((sum, size) => sum + size, 0);
  if (!(bytes <= maxBytes))
    throw new SluiceError('LimitExceeded', `its files have ${bytes} bytes, at most ${maxBytes} are checked`);
  const { stdout, error } = await start(folder, ['cat-file', '--batch'], lines(oids), bytes + oids.length * 100 + 1024);
  if (error !== null) throw new SluiceError('Unavailable', `git cat-file failed: ${messageOf(error)}`);
  const blobs: Buffer[] = [];
  for (let at = 0; blobs.length < oids.length; ) {
    const end = stdout.indexOf('\n', at);
    const size = Number(stdout.toString('utf8', at, end).split(' ')[2]);
    if (end < 0 || Number.isNaN(size)) throw new SluiceError('Unavailable', 'git cat-file returned no object');
    blobs.push(stdout.subarray(end + 1, end + 1 + size));
    at = end + 1 + size + 1;
  }
  return blobs;
}

function lines(oids: readonly string[]): string {
  return `${oids.join('\n')}\n`;
}

function start(
  folder: string,
  args: readonly string[],
  input: string,
  maxBuffer: number,
): Promise<{ readonly stdout: Buffer; readonly stderr: string; readonly error: GitFailure | null }> {
  return new Promise((resolve) => {
    // What it prints is read by its users and by callers.
    const env = { ...process.env, LC_ALL: 'C' };
    const options = { maxBuffer, timeout: GIT_TIMEOUT_MS, encoding: 'buffer', env } as const;
    const child = execFile('git', [...PLAIN, '-C', folder, ...args], options, (error, stdout, stderr) =>
      resolve({ stdout, stderr: stderr.toString('utf8'), error }),
    );
    // A git that ends before it has read everything reports why by its exit code.
    child.stdin?.on('error', () => undefined);
    child.stdin?.end(input);
  });
}
