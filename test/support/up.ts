import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

const binary = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));

/** A running `up`, with its output so far. */
export class Up {
  readonly child: ChildProcess;
  output = '';

  constructor(data: string, ...words: string[]) {
    const args = [binary, 'up', '--data', data, ...words];
    this.child = spawn(process.execPath, args, { env: { ...process.env, NO_COLOR: '1' } });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (chunk: Buffer) => {
        this.output += chunk.toString();
      });
    }
  }

  async said(pattern: RegExp): Promise<void> {
    const end = Date.now() + 30_000;
    while (!pattern.test(this.output)) {
      if (Date.now() > end || this.child.exitCode !== null) throw new Error(`${pattern} was not said:\n${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async end(signal: NodeJS.Signals): Promise<number | null> {
    this.child.kill(signal);
    if (this.child.exitCode === null && this.child.signalCode === null) await once(this.child, 'close');
    return this.child.exitCode;
  }
}
