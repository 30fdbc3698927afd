import { Worker } from 'node:worker_threads';
import { messageOf } from '../../../foundation/sluice-error.ts';
import { isPrepared, isYamlPath, type KrmFile, keepPrepared } from './krm.ts';

export interface KrmRequest {
  readonly id: number;
  readonly files: readonly { readonly path: string; readonly data: Uint8Array }[];
}

export interface KrmResponse {
  readonly id: number;
  readonly files: readonly KrmFile[];
}

export interface KrmReaderOptions {
  /** Files of so many bytes together are read where they are needed, on the event loop. Default 32 KiB: 10 ms at most. */
  readonly inlineBytes?: number;
  /** Milliseconds after which the thread is terminated. Default 30,000. */
  readonly timeoutMs?: number;
  /** Heap size of the thread in MiB. Default 1024. */
  readonly memoryMb?: number;
}

/** Bytes of the files of one message: the response is handled without a pause. */
const BATCH_BYTES = 512 * 1024;

/** The same module tree as this file's, as TypeScript or as JavaScript. */
const PROGRAM = new URL(`./krm-thread${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url);

interface Waiting {
  readonly resolve: (files: readonly KrmFile[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Reads the YAML files of large packages in a separate thread: a mebibyte takes 200 ms, during which the server would answer no
 * request. `readKrmFile` then uses the results.
 */
export class KrmReader {
  readonly #options: Required<KrmReaderOptions>;
  readonly #waiting = new Map<number, Waiting>();
  #thread: Worker | undefined;
  #lastId = 0;

  constructor({ inlineBytes = 32 * 1024, timeoutMs = 30_000, memoryMb = 1024 }: KrmReaderOptions = {}) {
    this.#options = { inlineBytes, timeoutMs, memoryMb };
  }

  /** Reads what `readKrmFile` would take long for. A file whose reading fails has a problem and no objects. */
  async prepare(files: ReadonlyMap<string, Buffer>): Promise<void> {
    const unread = [...files].filter(([path, data]) => isYamlPath(path) && !isPrepared(data));
    const bytes = unread.reduce((sum, [, data]) => sum + data.length, 0);
    if (bytes <= this.#options.inlineBytes) return;
    await Promise.all(batchesOf(unread).map((batch) => this.#readBatch(batch)));
  }

  async #readBatch(batch: readonly (readonly [string, Buffer])[]): Promise<void> {
    let read: readonly KrmFile[];
    try {
      read = await this.#request(batch);
    } catch (error) {
      read = batch.map(([path]) => ({ objects: [], problem: `${path} cannot be read: ${messageOf(error)}` }));
    }
    for (const [index, [path, data]] of batch.entries()) {
      const file = read[index];
      if (file !== undefined) keepPrepared(path, data, file);
    }
  }

  #request(batch: readonly (readonly [string, Buffer])[]): Promise<readonly KrmFile[]> {
    this.#lastId += 1;
    const id = this.#lastId;
    const thread = this.#running();
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      thread.ref();
      // Buffers are parts of larger ones, which would be copied as a whole.
      const files = batch.map(([path, data]) => ({ path, data: new Uint8Array(data) }));
      const question: KrmRequest = { id, files };
      thread.postMessage(
        question,
        files.map(({ data }) => data.buffer),
      );
    });
  }

  #running(): Worker {
    if (this.#thread !== undefined) return this.#thread;
    const { memoryMb, timeoutMs } = this.#options;
    const thread = new Worker(PROGRAM, { env: {}, resourceLimits: { maxOldGenerationSizeMb: memoryMb } });
    let timer: NodeJS.Timeout | undefined;
    const end = (error: unknown) => {
      clearTimeout(timer);
      if (this.#thread === thread) this.#thread = undefined;
      for (const { reject } of this.#waiting.values()) reject(error);
      this.#waiting.clear();
      void thread.terminate();
    };
    const watch = () => {
      clearTimeout(timer);
      if (this.#waiting.size === 0) thread.unref();
      else timer = setTimeout(() => end(new Error(`it takes more than ${timeoutMs} ms`)), timeoutMs);
    };
    thread.on('message', ({ id, files }: KrmResponse) => {
      this.#waiting.get(id)?.resolve(files);
      this.#waiting.delete(id);
      watch();
    });
    thread.on('error', end);
    thread.on('online', watch);
    this.#thread = thread;
    return thread;
  }
}

/** One for the process: whatever it has read is found by all. */
const reader = new KrmReader();

/** See KrmReader. */
export function prepareKrmFiles(files: ReadonlyMap<string, Buffer>): Promise<void> {
  return reader.prepare(files);
}

function batchesOf(files: readonly [string, Buffer][]): [string, Buffer][][] {
  const batches: [string, Buffer][][] = [];
  let bytes = Number.POSITIVE_INFINITY;
  for (const file of files) {
    if (bytes + file[1].length > BATCH_BYTES) {
      batches.push([]);
      bytes = 0;
    }
    batches.at(-1)?.push(file);
    // An empty file adds to the message size too.
    bytes += file[1].length + 100;
  }
  return batches;
}
