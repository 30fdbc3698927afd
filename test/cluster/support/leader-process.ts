import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';

const PROGRAM = fileURLToPath(new URL('leader-candidate.ts', import.meta.url));

/** Several times as long as a lease. */
export const MAX_WAIT_MS = 90_000;

export interface CandidateSettings {
  readonly kubeconfig: string;
  /** Address of the server, if not that of the kubeconfig. */
  readonly server?: string;
  readonly namespace: string;
  readonly name: string;
  readonly identity: string;
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
}

export interface CandidateReport {
  readonly event: 'started' | 'stopped' | 'leads' | 'leader' | 'error' | 'spins' | 'woke' | 'ended';
  /** By the monotonic clock of the machine, which all its processes share. */
  readonly atMs: number;
  readonly detail: string;
}

/** A candidate in a process of its own. */
export class LeaderProcess implements AsyncDisposable {
  readonly identity: string;
  readonly reports: CandidateReport[] = [];
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;

  constructor(settings: CandidateSettings) {
    this.identity = settings.identity;
    const child = spawn(process.execPath, [PROGRAM, JSON.stringify(settings)], { stdio: ['pipe', 'pipe', 'inherit'] });
    this.#child = child;
    this.#ended = new Promise((resolve) => child.on('close', () => resolve()));
    // Standard input breaks when the process is killed.
    child.stdin.on('error', () => undefined);
    createInterface(child.stdout).on('line', (line) => this.reports.push(JSON.parse(line) as CandidateReport));
  }

  /** Reports of one event, samples excepted. */
  of(event: CandidateReport['event']): readonly CandidateReport[] {
    return this.reports.filter((report) => report.event === event);
  }

  /** True if it began to lead more often than it stopped. */
  get leads(): boolean {
    return this.of('started').length > this.of('stopped').length;
  }

  /** Waits until an event was reported so often, and returns the last report of it. */
  async until(event: CandidateReport['event'], count = 1): Promise<CandidateReport> {
    await expect.poll(() => this.of(event).length, { timeout: MAX_WAIT_MS }).toBeGreaterThanOrEqual(count);
    return this.of(event).at(-1) as CandidateReport;
  }

  kill(signal: 'SIGKILL' | 'SIGSTOP' | 'SIGCONT' | 'SIGTERM'): void {
    this.#child.kill(signal);
  }

  spin(): void {
    this.#child.stdin?.write('spin\n');
  }

  /** Resolves when the process has ended and all its reports were read. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}

/** The leaders in the order of all samples. A leader that occurs twice in a row counts once. */
export function leadersInOrder(processes: readonly LeaderProcess[]): readonly string[] {
  const samples = processes.flatMap((process) =>
    process.reports.filter(({ event }) => event === 'leads').map(({ atMs }) => ({ atMs, identity: process.identity })),
  );
  return samples
    .sort((one, other) => one.atMs - other.atMs)
    .map(({ identity }) => identity)
    .filter((identity, index, all) => identity !== all[index - 1]);
}
