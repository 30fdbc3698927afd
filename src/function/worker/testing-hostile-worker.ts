import { builtIns } from '../built-in/index.ts';
import type { KrmFunction } from '../model/function.ts';
import { serveWorker } from './serve-worker.ts';

/** Functions that do what functions must not do. */
const hostile: Readonly<Record<string, KrmFunction['run']>> = {
  fine: () => {},
  'never-ends': () => {
    for (;;);
  },
  'never-settles': () => new Promise(() => {}),
  throws: () => {
    throw new Error('it went wrong');
  },
  rejects: () => Promise.reject(new Error('it went wrong later')),
  'throws-nothing': () => {
    throw undefined;
  },
  exits: () => process.exit(7),
  'kills-itself': () => {
    process.kill(process.pid, 'SIGSEGV');
    for (;;);
  },
  'fails-behind-our-back': async () => {
    setTimeout(() => {
      throw new Error('too late');
    }, 1);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  },
  recurses: () => {
    const deeper = (depth: number): number => deeper(depth + 1) + 1;
    deeper(0);
  },
  'many-objects': () => {
    const kept: unknown[] = [];
    for (;;) kept.push({ value: Math.random() });
  },
  'one-huge-array': () => {
    const kept: unknown[] = [];
    for (;;) kept.push(new Array(30_000_000).fill({}));
  },
  'one-huge-map': () => {
    const kept = new Map<number, number>();
    for (let at = 0; ; at += 1) kept.set(at, at);
  },
  buffers: () => {
    const kept: Buffer[] = [];
    for (;;) kept.push(Buffer.alloc(100_000_000, 1));
  },
  prints: () => {
    for (let line = 0; line < 100_000; line += 1) console.log('x'.repeat(1_000));
  },
  'writes-a-file': async () => {
    const { writeFileSync } = await import('node:fs');
    writeFileSync('/tmp/sluice-hostile', 'x');
  },
  'reads-a-file': async () => {
    const { readFileSync } = await import('node:fs');
    throw new Error(`it read ${readFileSync('/etc/passwd', 'utf8').length} bytes`);
  },
  // The data folder of `npm start`, with keys and tokens.
  'reads-the-data-folder': async () => {
    const { readdirSync } = await import('node:fs');
    throw new Error(`there are ${readdirSync(new URL('../../../.sluice', import.meta.url)).length} files`);
  },
  'imports-a-file': async () => {
    const module: string = 'file:///etc/hostname';
    await import(module);
  },
  'starts-a-process': async () => {
    const { spawnSync } = await import('node:child_process');
    spawnSync('true');
  },
  'says-a-function': ({ results }) => {
    results.push({ severity: 'info', message: (() => 'a text') as unknown as string });
  },
  'reads-the-environment': () => {
    throw new Error(`the environment is ${JSON.stringify(process.env)}`);
  },
};

const functions = Object.entries(hostile).map(([name, run]) => ({
  name,
  doc: { summary: name, description: name, examples: [], differences: [] },
  run,
}));

serveWorker([...builtIns, ...functions]);
