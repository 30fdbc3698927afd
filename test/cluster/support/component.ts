import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';

/** Milliseconds that a program has to end by itself. What it would still write is in a folder that is deleted. */
const MAX_STOP_MS = 3000;

/** Milliseconds within which each program must work, on a loaded machine. */
export const MAX_START_MS = 120_000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export interface ComponentCommand {
  readonly name: string;
  readonly program: string;
  readonly flags: readonly string[];
  /** The file to which its output goes. */
  readonly log: string;
  /** Besides the environment of the tests. */
  readonly environment?: Readonly<Record<string, string>>;
}

/** One program of a control plane. It does not outlive the process that started it, however that one ends. */
export class Component {
  readonly #command: ComponentCommand;
  #child: ChildProcess;

  private constructor(command: ComponentCommand) {
    this.#command = command;
    this.#child = start(command);
  }

  static start(command: ComponentCommand): Component {
    return new Component(command);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Throws with the end of the log if the program has ended. */
  expectRunning(): void {
    const { exitCode, signalCode } = this.#child;
    if (exitCode === null && signalCode === null && this.#child.pid !== undefined) return;
    const { name, log } = this.#command;
    throw new Error(`${name} ended with ${signalCode ?? exitCode}:\n${readFileSync(log, 'utf8').slice(-4000)}`);
  }

  /** Kills the program, and resolves when it has ended. */
  async kill(): Promise<void> {
    const ended = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await ended;
  }

  /** Starts a program that has ended, with the same flags and log. */
  startAgain(): void {
    this.#child = start(this.#command);
  }

  /** Ends the program, and resolves when it has ended. */
  async stop(): Promise<void> {
    const child = this.#child;
    if (!running.has(child)) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    const kill = setTimeout(() => child.kill('SIGKILL'), MAX_STOP_MS);
    await ended;
    clearTimeout(kill);
  }
}

function start({ program, flags, log, environment = {} }: ComponentCommand): ChildProcess {
  const file = openSync(log, 'a');
  const [first = '', ...rest] = [...endsWithParent(), program, ...flags];
  const child = spawn(first, rest, { stdio: ['ignore', file, file], env: { ...process.env, ...environment } });
  closeSync(file);
  running.add(child);
  child.once('exit', () => running.delete(child)).once('error', () => running.delete(child));
  return child;
}

let parentDeath: readonly string[] | undefined;

/** The words with which the kernel of Linux ends a program together with its parent. Elsewhere only a regular exit ends it. */
function endsWithParent(): readonly string[] {
  if (parentDeath !== undefined) return parentDeath;
  const words = ['setpriv', '--pdeathsig', 'KILL'];
  try {
    execFileSync('setpriv', [...words.slice(1), 'true'], { stdio: 'ignore' });
    parentDeath = words;
  } catch {
    // macOS has no such program.
    parentDeath = [];
  }
  return parentDeath;
}
