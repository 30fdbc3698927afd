import type { ChildProcess } from 'node:child_process';
import { setImmediate } from 'node:timers/promises';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import { DamageError, HOW_TO_REPAIR } from '../../errors.ts';
import type { GitObject, ObjectStat, ObjectType } from '../../git-repository.ts';
import { batchTooLarge, MAX_BATCH_BYTES, MAX_OBJECT_BYTES, objectTooLarge } from '../../objects/object-source.ts';
import { collectStderr, killGroup, type Quarantine, spawnGit, startError } from '../../process/git-process.ts';
import { idleProcesses, type ProcessOwner } from '../../process/idle-processes.ts';
import { OutputBuffer } from '../../process/output-buffer.ts';

/** Requests that are in the pipe at once: enough to hide the round trip, few enough that other callers are served too. */
const MAX_PIPELINED = 256;
/** Number of times that a request is sent if the process ends before it responds. */
const MAX_ATTEMPTS = 2;

type Command = 'contents' | 'info';
/** A GitObject for `contents`, an ObjectStat for `info`. */
type ObjectResult = GitObject | ObjectStat | undefined;

interface Request {
  readonly command: Command;
  readonly specification: string;
  readonly resolve: (result: ObjectResult) => void;
  readonly reject: (error: SluiceError) => void;
  /** Bytes that all requests of one call may still read. */
  readonly budget: Budget;
  attempts: number;
}

interface Budget {
  bytes: number;
}

interface Process {
  readonly child: ChildProcess;
  readonly stderr: () => string;
  readonly output: OutputBuffer;
  /** The object whose header was read and whose contents are awaited. */
  awaited: ObjectStat | undefined;
}

interface CatFileOptions {
  readonly gitDir: string;
  readonly quarantine?: Quarantine | undefined;
  readonly clock: Clock;
  /** Milliseconds without any output after which a request fails. */
  readonly timeout: number;
  /** Milliseconds without a request after which the process is ended; the next request starts a new one. */
  readonly idleTimeout: number;
}

/** A long-lived `git cat-file --batch-command` with pipelining. It is started on demand, and again after it ended. */
export class CatFile implements ProcessOwner {
  readonly #options: CatFileOptions;
  #process: Process | undefined;
  #waiting: Request[] = [];
  #cancelTimer: () => void = () => {};
  #closed = false;

  constructor(options: CatFileOptions) {
    this.#options = options;
  }

  /** True while there is a process, and after `close`. */
  get isStarted(): boolean {
    return this.#process !== undefined || this.#closed;
  }

  /** Contents, in the order of the request. */
  async contents(specifications: readonly string[]): Promise<(GitObject | undefined)[]> {
    return (await this.#inSlices('contents', specifications)) as (GitObject | undefined)[];
  }

  /** Ids, types and sizes, in the order of the request. */
  info(specifications: readonly string[]): Promise<(ObjectStat | undefined)[]> {
    return this.#inSlices('info', specifications);
  }

  /** Ends the process if no request waits; the next request starts one that sees the packs as they are now. */
  renew(): void {
    this.releaseProcess();
  }

  releaseProcess(): void {
    if (this.#waiting.length === 0) this.#stop();
  }

  close(): void {
    this.#closed = true;
    this.#fail(new SluiceError('Unavailable', 'the repository was closed'));
    this.#stop();
  }

  async #inSlices(command: Command, specifications: readonly string[]): Promise<ObjectResult[]> {
    const budget = { bytes: MAX_BATCH_BYTES };
    const results: ObjectResult[] = [];
    for (let start = 0; start < specifications.length; start += MAX_PIPELINED)
      for (const result of await this.#requestWithRetry(
        command,
        specifications.slice(start, start + MAX_PIPELINED),
        budget,
      ))
        results.push(result);
    return results;
  }

  /**
   * Git reports an object that it cannot read as missing, and the reason on its standard error. A damaged object taken for an absent
   * one would look like a removal, so the request is repeated: the second time git finds a pack that another process has just replaced.
   */
  async #requestWithRetry(
    command: Command,
    specifications: readonly string[],
    budget: Budget,
  ): Promise<ObjectResult[]> {
    for (let attempt = 1; ; attempt += 1) {
      const results = await this.#enqueue(command, specifications, budget);
      if (!results.includes(undefined)) return results;
      // Output that Git wrote before its response is in the pipe by now, and is read within one turn of the event loop.
      await setImmediate();
      const output = this.#process?.stderr().trim() ?? '';
      if (output === '') return results;
      if (attempt === MAX_ATTEMPTS) throw unreadable('an object', output);
    }
  }

  /** Sends requests and returns their results. */
  #enqueue(command: Command, specifications: readonly string[], budget: Budget): Promise<ObjectResult[]> {
    if (this.#closed) throw new SluiceError('Internal', 'the repository was used after close()');
    const results = specifications.map(
      (specification) =>
        new Promise<ObjectResult>((resolve, reject) => {
          this.#waiting.push({ command, specification, resolve, reject, budget, attempts: 0 });
        }),
    );
    this.#send(this.#waiting.slice(-results.length));
    return Promise.all(results);
  }

  #send(requests: readonly Request[]): void {
    if (requests.length === 0) return;
    this.#process ??= this.#start();
    this.#watch();
    const lines = requests.map((request) => `${request.command} ${request.specification}\0`);
    // Without --buffer Git would write each response separately, which costs more than reading the objects.
    this.#process.child.stdin?.write(`${lines.join('')}flush\0`);
  }

  #start(): Process {
    const child = spawnGit({
      gitDir: this.#options.gitDir,
      quarantine: this.#options.quarantine,
      arguments: ['cat-file', '--batch-command', '--buffer', '-z'],
    });
    const process = { child, stderr: collectStderr(child), output: new OutputBuffer(), awaited: undefined };
    child.stdin?.on('error', () => {
      // EPIPE: the process has ended; "close" follows and decides about the requests.
    });
    child.stdout?.on('data', (chunk: Buffer) => {
      if (this.#process !== process) return;
      process.output.append(chunk);
      this.#read(process);
      this.#watch();
    });
    child.on('error', (cause) => {
      if (this.#process !== process) return;
      this.#process = undefined;
      this.#fail(startError(cause));
    });
    child.on('close', () => this.#onClose(process));
    return process;
  }

  #read(process: Process): void {
    for (;;) {
      if (process.awaited === undefined) {
        const line = process.output.takeLine();
        if (line === undefined) return;
        if (!this.#onHeader(process, line)) return;
      } else {
        const data = process.output.take(process.awaited.size, 1);
        if (data === undefined) return;
        const object = { ...process.awaited, data };
        process.awaited = undefined;
        this.#waiting.shift()?.resolve(object);
      }
    }
  }

  /** Handles the line that begins a response; false if the process had to be replaced. */
  #onHeader(process: Process, line: string): boolean {
    const request = this.#waiting[0];
    if (request === undefined) {
      this.#restart(new SluiceError('Internal', 'git cat-file sent a response without a request'));
      return false;
    }
    const [, oid, type, digits] = /^([0-9a-f]{40}) (commit|tree|blob|tag) (\d+)$/.exec(line) ?? [];
    if (oid === undefined) {
      this.#waiting.shift();
      if (/ (?:missing|ambiguous|submodule)$/.test(line)) request.resolve(undefined);
      else
        request.reject(
          new SluiceError(
            'Internal',
            `git cat-file sent an unexpected response: ${JSON.stringify(line.slice(0, 200))}`,
          ),
        );
      return true;
    }
    const stat = { oid, type: type as ObjectType, size: Number(digits) };
    if (request.command === 'info') {
      this.#waiting.shift()?.resolve(stat);
      return true;
    }
    request.budget.bytes -= stat.size;
    if (stat.size <= MAX_OBJECT_BYTES && request.budget.bytes >= 0) {
      process.awaited = stat;
      return true;
    }
    // Git writes the contents already; a new process is cheaper than reading and dropping them.
    const tooLarge = stat.size > MAX_OBJECT_BYTES ? objectTooLarge(request.specification, stat.size) : batchTooLarge();
    for (const other of this.#waiting) if (other.budget === request.budget) other.reject(tooLarge);
    this.#waiting = this.#waiting.filter((other) => other.budget !== request.budget);
    this.#stop();
    this.#send(this.#waiting);
    return false;
  }

  /** Fails the first request with `error` and sends the others to a new process. */
  #restart(error: SluiceError): void {
    this.#stop();
    this.#waiting.shift()?.reject(error);
    this.#send(this.#waiting);
  }

  #onClose(process: Process): void {
    if (this.#process !== process) return;
    this.#stop();
    const first = this.#waiting[0];
    if (first === undefined) return;
    first.attempts += 1;
    const output = process.stderr().trim();
    if (output.includes('fatal:') || first.attempts >= MAX_ATTEMPTS)
      this.#restart(
        output === ''
          ? new SluiceError('Unavailable', 'git cat-file ended unexpectedly')
          : unreadable(JSON.stringify(first.specification), output),
      );
    else this.#send(this.#waiting);
  }

  #fail(error: SluiceError): void {
    const requests = this.#waiting;
    this.#waiting = [];
    for (const request of requests) request.reject(error);
  }

  #stop(): void {
    this.#cancelTimer();
    idleProcesses.markBusy(this);
    const process = this.#process;
    this.#process = undefined;
    if (process !== undefined) killGroup(process.child);
  }

  /** Restarts the timer: for the response while requests wait, for idleness otherwise. */
  #watch(): void {
    this.#cancelTimer();
    const { clock, timeout, idleTimeout } = this.#options;
    if (this.#waiting.length === 0) {
      this.#cancelTimer = clock.schedule(idleTimeout, () => this.#stop());
      idleProcesses.markIdle(this);
      return;
    }
    idleProcesses.markBusy(this);
    this.#cancelTimer = clock.schedule(timeout, () => {
      this.#stop();
      this.#fail(new SluiceError('Timeout', `git cat-file did not answer within ${timeout / 1000} s`));
    });
  }
}

function unreadable(what: string, output: string): DamageError {
  return new DamageError(`${what} cannot be read: ${output.slice(0, 500)}. ${HOW_TO_REPAIR}`);
}
