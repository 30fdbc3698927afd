import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, realpathSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Clock } from '../../foundation/time/clock.ts';
import { withMemoryBound } from '../external/memory-bound.ts';
import type { FromWorker, ToWorker } from './messages.ts';

/** The folder of this installation with `src/`, or with its build output. */
const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

export interface WorkerOptions {
  readonly program: URL;
  /** Maximum size of the JavaScript objects of a worker in MiB. */
  readonly memory: number;
  readonly clock: Clock;
}

/** Memory beside JavaScript objects: 512 MiB that V8 reserves for code and that count as used, and twice as much for buffers. */
const NON_HEAP_MIB = 3 * 512;
/** Until then a worker must have loaded its functions. */
const START_TIMEOUT_MS = 30_000;
const MAX_STDERR_CHARACTERS = 16 * 1024;

/** The same module tree as this file's, as TypeScript or as JavaScript. */
export const PIPELINE_WORKER = new URL(
  `./pipeline-worker${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`,
  import.meta.url,
);

/**
 * A process that renders packages. A process and not a thread: one allocation that is too large in a thread ends the whole process
 * that it is in, even if the thread has a limit. It has an empty environment, reads only the code that it runs (see `moduleTree`), and
 * can neither write files nor start processes.
 */
export class WorkerProcess {
  /** Reason why it ended; a sentence without its subject. */
  readonly ended: Promise<string>;
  readonly #child: ChildProcess;
  readonly #ready = Promise.withResolvers<void>();
  readonly #memory: number;
  #receive: ((message: FromWorker) => void) | undefined;
  #stderr = '';
  #isEnding = false;
  #late = false;

  constructor({ program, memory, clock }: WorkerOptions) {
    this.#memory = memory;
    const command = withMemoryBound(
      {
        file: process.execPath,
        arguments: [
          ...['--permission', '--allow-worker', '--disable-warning=SecurityWarning'],
          ...moduleTree().map((path) => `--allow-fs-read=${path}`),
          `--max-old-space-size=${memory}`,
          fileURLToPath(program),
          String(process.pid),
        ],
      },
      (memory + NON_HEAP_MIB) * 1024 * 1024,
    );
    const stdio = ['ignore', 'ignore', 'pipe', 'ipc'] as const;
    const child = spawn(command.file, command.arguments, {
      cwd: '/',
      env: {},
      stdio: [...stdio],
      serialization: 'advanced',
      // Ctrl-C signals the whole process group of a terminal; Sluice finishes the work that runs and then ends its workers.
      detached: true,
    });
    this.#child = child;
    child.stderr?.setEncoding('utf8').on('data', (chunk: string) => {
      if (this.#stderr.length < MAX_STDERR_CHARACTERS) this.#stderr += chunk.slice(0, MAX_STDERR_CHARACTERS);
    });
    child.on('message', (message: FromWorker) => {
      if (message.type === 'ready') this.#ready.resolve();
      else this.#receive?.(message);
    });
    const cancelStart = clock.schedule(START_TIMEOUT_MS, () => {
      this.#late = true;
      this.kill();
    });
    const removed = Promise.withResolvers<string>();
    child.on('error', (error) => {
      // It could not be started; otherwise `close` follows.
      if (child.pid === undefined) removed.resolve(`cannot be started: ${error.message}`);
    });
    child.on('close', (code, signal) => removed.resolve(this.#explain(code, signal)));
    this.ended = removed.promise.finally(() => {
      this.#isEnding = true;
      this.#ready.resolve();
    });
    void this.#ready.promise.then(cancelStart);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** True as soon as it is killed or has ended. */
  get isEnding(): boolean {
    return this.#isEnding;
  }

  /** Resolves when it accepts messages, and when it has ended. */
  get ready(): Promise<void> {
    return this.#ready.promise;
  }

  /** Sets the handler of its messages; undefined removes it. */
  listen(receive: ((message: FromWorker) => void) | undefined): void {
    this.#receive = receive;
  }

  /** A message to a worker that has ended is lost; see `ended`. */
  send(message: ToWorker): void {
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  kill(): void {
    this.#isEnding = true;
    this.#child.kill('SIGKILL');
  }

  /** Sets whether it keeps this process alive. */
  keepAlive(value: boolean): void {
    const act = value ? 'ref' : 'unref';
    this.#child[act]();
    this.#child.channel?.[act]();
    (this.#child.stderr as Socket | null)?.[act]();
  }

  #explain(code: number | null, signal: NodeJS.Signals | null): string {
    if (this.#late) return `did not start within ${START_TIMEOUT_MS / 1000} s`;
    if (this.#stderr.includes('heap out of memory') || this.#stderr.includes('OOMErrorHandler'))
      return `needs more than ${this.#memory} MiB of memory`;
    const output = this.#stderr.split('\n').find((line) => /^\w*Error\b/.test(line));
    const how = signal === null ? `with exit code ${code}` : `by ${signal}`;
    return `ended its process ${how}${output === undefined ? '' : ` (${output.slice(0, 300)})`}`;
  }
}

/**
 * Returns the folders that a worker may read: the code of Sluice and its dependencies, with links resolved. Adjacent folders are
 * excluded: in a trial installation the data folder, with its keys and tokens, is in the folder of the code.
 */
function moduleTree(): string[] {
  const folders = ['src', 'kptfile-schema'].map((name) => join(ROOT, name));
  // Node.js searches packages in all folders above; the module type of a folder is in its package.json.
  const shared = ancestors(ROOT).flatMap((folder) => [join(folder, 'node_modules'), join(folder, 'package.json')]);
  const found = [...folders, ...shared].filter((path) => existsSync(path));
  return [...new Set(found.flatMap((path) => [path, realpathSync(path)]))];
}

function ancestors(folder: string): string[] {
  const parent = dirname(folder);
  return parent === folder ? [folder] : [folder, ...ancestors(parent)];
}
