import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { messageOf } from '../../foundation/sluice-error.ts';
import { type Finding, findingAt } from './finding.ts';
import type { LintRequest } from './lint-thread.ts';

export interface LintLimits {
  /** Milliseconds for all files. Default 20,000: a mebibyte takes less than one second. */
  readonly timeoutMs?: number;
  /** Heap size in MiB. Default 512. */
  readonly memoryMb?: number;
}

/** The same module tree as this file's, as TypeScript or as JavaScript. */
const PROGRAM = new URL(`./lint-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

/**
 * `lintFiles` for large files, each by itself, during which the server would answer no request. The thread is one for these files, so that what one
 * user writes delays and fails no others. Files that exceed the limits are mistakes, since nothing is known about them: `TooLarge`, or `Timeout` where
 * a machine with less to do may be fast enough.
 */
export async function lintInThread(
  files: ReadonlyMap<string, Buffer>,
  signal: AbortSignal,
  { timeoutMs = 20_000, memoryMb = 512 }: LintLimits = {},
): Promise<Finding[]> {
  if (files.size === 0) return [];
  const findings: Finding[] = [];
  const timeout = AbortSignal.timeout(timeoutMs);
  const end = AbortSignal.any([signal, timeout]);
  let thread: Worker | undefined;
  try {
    for (const [path, data] of files) {
      signal.throwIfAborted();
      try {
        timeout.throwIfAborted();
        thread ??= startThread(memoryMb);
        const answer = once(thread, 'message', { signal: end });
        // Buffers are parts of larger ones, which would be copied as a whole.
        const copy = new Uint8Array(data);
        const request: LintRequest = { path, data: copy };
        thread.postMessage(request, [copy.buffer]);
        const [found] = (await answer) as [Finding[]];
        findings.push(...found);
      } catch (error) {
        signal.throwIfAborted();
        const [code, why, next] = timeout.aborted
          ? ['Timeout', `large files may take ${timeoutMs} ms together`, 'try it again, or make it smaller']
          : ['TooLarge', messageOf(error), 'make it smaller'];
        const message = `it cannot be searched for mistakes: ${why}; ${next}`;
        findings.push(findingAt(path, { severity: 'error', message, code }));
        await thread?.terminate();
        thread = undefined;
      }
    }
    return findings;
  } finally {
    await thread?.terminate();
  }
}

function startThread(memoryMb: number): Worker {
  const thread = new Worker(PROGRAM, { env: {}, resourceLimits: { maxOldGenerationSizeMb: memoryMb } });
  // It can fail between its last answer and its end too.
  thread.on('error', () => undefined);
  return thread;
}
