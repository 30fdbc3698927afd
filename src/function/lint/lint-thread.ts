import { parentPort } from 'node:worker_threads';
import { lintFiles } from './lint-files.ts';

export interface LintRequest {
  readonly path: string;
  readonly data: Uint8Array;
}

// The thread of `lintInThread`: answers each file with its findings.
parentPort?.on('message', ({ path, data }: LintRequest) => {
  parentPort?.postMessage(lintFiles(new Map([[path, Buffer.from(data).toString('utf8')]])));
});
