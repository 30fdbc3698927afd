import type { ChildProcess } from 'node:child_process';
import type { Writable } from 'node:stream';
import { createPacer } from '../../../foundation/concurrency/in-slices.ts';
import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { Clock } from '../../../foundation/time/clock.ts';
import { type RefUpdate, ZERO_OID } from '../../git-repository.ts';
import { collectStderr, endGroup, killGroup, NOT_DURABLE, spawnGit, startError } from '../../process/git-process.ts';
import { idleProcesses, type ProcessOwner } from '../../process/idle-processes.ts';
import { updateRefError } from '../../refs/update-ref-error.ts';

/** The process keeps every commit that it read in memory, so it is replaced after this many transactions. */
const MAX_TRANSACTIONS_PER_PROCESS = 5_000;

/** Addition to the time limit for each ref of a transaction: two files and two syncs on a slow disk. */
const TIMEOUT_PER_REF_MS = 20;

interface Process {
  readonly child: ChildProcess;
  readonly stderr: () => string;
  transactions: number;
}

interface UpdateRefOptions {
  readonly gitDir: string;
  readonly clock: Clock;
  readonly timeout: number;
  readonly idleTimeout: number;
  readonly durable: boolean;
}

/**
 * A long-lived `git update-ref --stdin`: one transaction after another, each prepared and committed by Git. Git ends the process
 * when it refuses one; the next transaction starts a new process. The caller sends one transaction at a time.
 */
export class UpdateRef implements ProcessOwner {
  readonly #options: UpdateRefOptions;
  #process: Process | undefined;
  #cancelIdle: () => void = () => {};
  #closed = false;

  constructor(options: UpdateRefOptions) {
    this.#options = options;
  }

  async run(updates: readonly RefUpdate[]): Promise<void> {
    if (this.#closed) throw new SluiceError('Internal', 'the repository was used after close()');
    this.#cancelIdle();
    idleProcesses.markBusy(this);
    // A process that ended while idle has not read the transaction, so a second attempt is safe.
    if ((await this.#attempt(updates)) === 'not started' && (await this.#attempt(updates)) === 'not started')
      throw new SluiceError('Unavailable', 'git update-ref ended before it read the transaction');
    this.#cancelIdle = this.#options.clock.schedule(this.#options.idleTimeout, () => this.#stop());
    idleProcesses.markIdle(this);
  }

  /** Ends the process, which caches what it read before; the next transaction starts a new one. Not during a transaction. */
  renew(): void {
    this.releaseProcess();
  }

  releaseProcess(): void {
    this.#cancelIdle();
    this.#stop();
  }

  close(): void {
    this.#closed = true;
    this.#cancelIdle();
    this.#stop();
  }

  #attempt(updates: readonly RefUpdate[]): Promise<'done' | 'not started'> {
    this.#process ??= this.#start();
    const process = this.#process;
    const { child } = process;
    const { clock, timeout } = this.#options;
    return new Promise((resolve, reject) => {
      let output = '';
      const settle = () => {
        cancelTimer();
        child.stdout?.off('data', onData);
        child.off('close', onClose).off('error', onError);
      };
      const onData = (chunk: Buffer) => {
        output += chunk.toString('latin1');
        if (!output.endsWith('commit: ok\n')) return;
        settle();
        process.transactions += 1;
        if (process.transactions >= MAX_TRANSACTIONS_PER_PROCESS) this.#end(process);
        resolve('done');
      };
      const onClose = () => {
        settle();
        this.#forget(process);
        const text = process.stderr();
        if (text.includes('fatal:')) reject(updateRefError(text.slice(text.indexOf('fatal:')), updates));
        else if (output === '') resolve('not started');
        else reject(unknownOutcome('Unavailable', 'ended'));
      };
      const onError = (cause: Error) => {
        settle();
        this.#forget(process);
        reject(startError(cause));
      };
      const cancelTimer = clock.schedule(timeout + updates.length * TIMEOUT_PER_REF_MS, () => {
        settle();
        this.#forget(process);
        endGroup(child, clock);
        reject(unknownOutcome('Timeout', `did not answer within ${timeout / 1000} s`));
      });
      child.stdout?.on('data', onData);
      child.on('close', onClose).on('error', onError);
      // What cannot be written has its reason in the exit of the process.
      if (child.stdin !== null) sendTransaction(child.stdin, updates).catch(onError);
    });
  }

  #start(): Process {
    const child = spawnGit({
      gitDir: this.#options.gitDir,
      settings: this.#options.durable ? [] : NOT_DURABLE,
      arguments: ['update-ref', '--no-deref', '--stdin', '-z'],
    });
    const process = { child, stderr: collectStderr(child), transactions: 0 };
    child.stdin?.on('error', () => {
      // EPIPE: the process has ended; "close" follows and decides.
    });
    child.on('close', () => this.#forget(process));
    child.on('error', () => this.#forget(process));
    return process;
  }

  /** Closes the input of the process, so that it ends. */
  #end(process: Process): void {
    this.#forget(process);
    process.child.stdin?.end();
  }

  #forget(process: Process): void {
    if (this.#process === process) this.#process = undefined;
  }

  #stop(): void {
    idleProcesses.markBusy(this);
    if (this.#process === undefined) return;
    killGroup(this.#process.child);
    this.#process = undefined;
  }
}

/** In parts: a fetch may change hundreds of thousands of refs. */
async function sendTransaction(stdin: Writable, updates: readonly RefUpdate[]): Promise<void> {
  const parts = ['start\0'];
  const pause = createPacer();
  for (const update of updates) {
    parts.push(encode(update));
    const turn = pause();
    if (turn === undefined) continue;
    stdin.write(parts.splice(0).join(''));
    await turn;
    if (stdin.destroyed) return;
  }
  stdin.write(`${parts.join('')}prepare\0commit\0`);
}

function encode(update: RefUpdate): string {
  switch (update.type) {
    case 'create':
      return `create ${update.ref}\0${update.new}\0`;
    case 'update':
      return `update ${update.ref}\0${update.new}\0${update.old}\0`;
    case 'delete':
      return `delete ${update.ref}\0${update.old}\0`;
    case 'verify':
      return `verify ${update.ref}\0${update.old ?? ZERO_OID}\0`;
  }
}

function unknownOutcome(code: 'Timeout' | 'Unavailable', what: string): SluiceError {
  return new SluiceError(
    code,
    `git update-ref ${what} during a transaction: the outcome is unknown. Read the refs again`,
  );
}
