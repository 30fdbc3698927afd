import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type DataFolder, dataFolder } from '../../../src/app/data/data-folder.ts';
import { KubeApi } from './kube-api.ts';

const binary = fileURLToPath(new URL('../../../bin/sluice.js', import.meta.url));
const STARTS_WITHIN = 60_000;
/** The log line of an internal error of the server. */
const OWN_FAILURE = /request [0-9a-f]{8}-[0-9a-f-]{27}|defect of sluice|Unhandled|FATAL/;

export interface UpOptions {
  /** Words for `sluice up` besides its data folder. */
  readonly words?: readonly string[];
  /** A limit of its shell, such as `-S -f 4096`. */
  readonly limit?: string;
  /** Besides the environment of the tests. */
  readonly environment?: NodeJS.ProcessEnv;
  /** Milliseconds until it has to serve. */
  readonly startsWithin?: number;
}

/** A `sluice up` of its own, in a process of its own. */
export class RunningUp implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly folder: DataFolder;
  readonly api: KubeApi;
  readonly #output: () => string;

  private constructor(child: ChildProcess, folder: DataFolder, api: KubeApi, output: () => string) {
    this.child = child;
    this.folder = folder;
    this.api = api;
    this.#output = output;
  }

  /** Starts on a data folder, and waits until it serves. */
  static async start(
    data: string,
    { words = [], limit, environment: more = {}, startsWithin = STARTS_WITHIN }: UpOptions = {},
  ): Promise<RunningUp> {
    const command = [process.execPath, binary, 'up', '--data', data, ...words];
    const environment = { ...process.env, NO_COLOR: '1', SLUICE_DEBUG: '1', ...more };
    const [program = '', ...args] =
      limit === undefined ? command : ['bash', '-c', `ulimit ${limit} && exec "$@"`, 'up', ...command];
    const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: environment });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        output += chunk.toString();
      });
    const end = Date.now() + startsWithin;
    while (!/kubectl --kubeconfig/.test(output)) {
      if (child.exitCode !== null || Date.now() > end) {
        child.kill('SIGKILL');
        throw new Error(`sluice up does not serve:\n${output}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 25));
    }
    const folder = dataFolder(data);
    return new RunningUp(child, folder, await KubeApi.of(join(data, 'kubeconfig')), () => output);
  }

  get output(): string {
    return this.#output();
  }

  /** Lines of the log about what the server did wrong. */
  ownFailures(): string[] {
    return this.output.split('\n').filter((line) => OWN_FAILURE.test(line));
  }

  /** Ends it, and waits until it has ended; the exit code, null if a signal ended it. */
  async end(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    this.api.close();
    this.child.kill(signal);
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'close');
    return this.child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
  }
}
