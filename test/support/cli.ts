import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const binary = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

export interface CliResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs the real binary to its end, as a user would. */
export async function sluice(
  args: readonly string[],
  options: { cwd?: string; timeout?: number; input?: string; environment?: Readonly<Record<string, string>> } = {},
): Promise<CliResult> {
  const child = spawn(process.execPath, [binary, ...args], {
    stdio: ['pipe', 'pipe', 'pipe'],
    ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
    env: { ...process.env, NO_COLOR: '1', SLUICE_USER: 'anna', ...options.environment },
  });
  // A command that does not read its input may have ended before it is written.
  child.stdin.on('error', () => undefined);
  child.stdin.end(options.input ?? '');
  const timer = setTimeout(() => child.kill('SIGKILL'), options.timeout ?? 120_000);
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (chunk: Buffer) => {
    stdout += chunk.toString();
  });
  child.stderr.on('data', (chunk: Buffer) => {
    stderr += chunk.toString();
  });
  const [code] = (await once(child, 'close')) as [number | null];
  clearTimeout(timer);
  return { code, stdout, stderr };
}
