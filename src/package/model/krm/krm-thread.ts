import { parentPort } from 'node:worker_threads';
import { parseKrmFile } from './krm.ts';
import type { KrmRequest, KrmResponse } from './krm-reader.ts';

// The thread of KrmReader: reads the YAML files that it is sent, one message after the other.
parentPort?.on('message', ({ id, files }: KrmRequest) => {
  const answer: KrmResponse = { id, files: files.map(({ path, data }) => parseKrmFile(path, data)) };
  parentPort?.postMessage(answer);
});
