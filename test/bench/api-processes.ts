import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { parse } from 'yaml';
import { BenchClient } from './api-client.ts';
import { NODE_FLAGS } from './node-flags.ts';

const sluice = fileURLToPath(new URL('../../bin/sluice.js', import.meta.url));
const floor = fileURLToPath(new URL('api-floor.ts', import.meta.url));

const reportMemory = new URL('report-memory.ts', import.meta.url).href;

/** A server in a process of its own, and a client of it. */
export interface BenchServer {
  readonly client: BenchClient;
  /** Milliseconds from the start of the process until it served. */
  readonly startTime: number;
  /** Resident memory in bytes, after a collection of garbage. */
  memory(): Promise<number>;
  stop(): Promise<void>;
}

/** Runs `sluice up` on a data folder until it serves. */
export async function startSluice(data: string): Promise<BenchServer> {
  const started = performance.now();
  const child = start(sluice, 'up', '--data', data, '--log', 'json');
  const url = await firstLine(child, (line) => {
    const { event, url: found } = JSON.parse(line) as { event: string; url: string };
    return event === 'Serving' ? found : undefined;
  });
  const startTime = performance.now() - started;
  const { authority, token } = await readAccess(data);
  return server(child, new BenchClient(url, authority, token), startTime);
}

/** Runs the floor with the certificate of a data folder that was served before. */
export async function startFloor(data: string): Promise<BenchServer> {
  const started = performance.now();
  const child = start(floor, join(data, 'pki'));
  const url = await firstLine(child, (line) => line);
  const { authority, token } = await readAccess(data);
  return server(child, new BenchClient(url, authority, token), performance.now() - started);
}

/** Runs a command of the CLI to its end. */
export async function runSluice(...args: string[]): Promise<void> {
  await promisify(execFile)(process.execPath, [sluice, ...args]);
}

function start(...args: string[]): ChildProcess {
  const child = spawn(process.execPath, [...NODE_FLAGS, '--expose-gc', '--import', reportMemory, ...args], {
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  });
  // Its normal end is not reported; other output is.
  child.stderr?.on('data', (chunk: Buffer) => {
    if (!chunk.toString().startsWith('stopping:')) process.stderr.write(chunk);
  });
  return child;
}

function server(child: ChildProcess, client: BenchClient, startTime: number): BenchServer {
  return {
    ...{ client, startTime },
    memory: async () => {
      child.send('memory');
      const [bytes] = await once(child, 'message');
      return Number(bytes);
    },
    stop: async () => {
      await client.close();
      if (child.exitCode !== null) return;
      child.kill('SIGTERM');
      await once(child, 'close');
    },
  };
}

/** The first matching line; the rest of the output is read and dropped. */
async function firstLine(child: ChildProcess, find: (line: string) => string | undefined): Promise<string> {
  const { stdout } = child;
  if (stdout === null) throw new Error('the output of the server is not read');
  const lines = createInterface({ input: stdout });
  const found = await new Promise<string>((resolve, reject) => {
    lines.on('line', (line) => {
      const text = find(line);
      if (text !== undefined) resolve(text);
    });
    child.once('close', (code) => reject(new Error(`the server ended with ${code} before it served`)));
  });
  lines.removeAllListeners('line').on('line', () => undefined);
  return found;
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: { readonly 'certificate-authority-data': string } }[];
  readonly users: readonly { readonly user: { readonly token: string } }[];
}

async function readAccess(data: string): Promise<{ readonly authority: string; readonly token: string }> {
  const { clusters, users } = parse(await readFile(join(data, 'kubeconfig'), 'utf8')) as Kubeconfig;
  const [cluster, user] = [clusters[0]?.cluster, users[0]?.user];
  if (cluster === undefined || user === undefined) throw new Error(`the kubeconfig of ${data} names no server`);
  return { authority: Buffer.from(cluster['certificate-authority-data'], 'base64').toString(), token: user.token };
}
