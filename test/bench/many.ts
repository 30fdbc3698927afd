import { cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubeApi } from '../support/api/kube-api.ts';
import { RunningUp } from '../support/api/running-up.ts';
import { startServer } from './git-server-process.ts';
import { type ProcessLoad, processLoad } from './process-load.ts';
import { git, synthesize } from './synthetic-repository.ts';
import { median, milliseconds, printTable } from './table.ts';

const COUNTS = [1, 200];
const PACKAGES = 50;
const REVISIONS = 3;
const DRAFTS = 2;
/** Idle seconds that are measured, after this many without changes. */
const IDLE = 30;
const CALM = 10;
const PUBLICATIONS = 20;
const REVISIONS_PATH = '/apis/porch.kpt.dev/v1alpha1/namespaces/default/packagerevisions';

/**
 * Many repositories in one process, first started on an empty data folder and then again, and one of them active while the others
 * are idle. `--repositories=200` sets their number; `--remote` puts them behind HTTP instead of on this machine; `--idle=30` sets the
 * idle time in seconds.
 */
export async function many(options: readonly string[] = []): Promise<void> {
  const value = (name: string) => options.find((option) => option.startsWith(`--${name}=`))?.split('=')[1];
  const counts = value('repositories')?.split(',').map(Number) ?? COUNTS;
  const idle = Number(value('idle') ?? IDLE);
  const folder = await mkdtemp(join(tmpdir(), 'sluice-bench-'));
  const server = options.includes('--remote') ? await startServer(folder) : undefined;
  try {
    const first = join(folder, 'packages-0.git');
    await synthesize({ path: first, packages: PACKAGES, revisions: REVISIONS, drafts: DRAFTS });
    for (let number = 1; number < Math.max(...counts); number++)
      await cp(first, join(folder, `packages-${number}.git`), { recursive: true });
    const rows: string[][] = [];
    for (const count of counts) {
      const address = (number: number) => `${server?.url ?? folder}/packages-${number}.git`;
      const data = join(folder, `data-${count}`);
      const config = join(folder, `config-${count}.yaml`);
      await writeFile(config, Array.from({ length: count }, (_, number) => manifest(number, address(number))).join(''));
      rows.push(
        await measure(data, config, count, { name: 'cold', idle }),
        await measure(data, config, count, { name: 'warm', idle: 0 }),
      );
      rows.push(await floorOf(folder, count));
    }
    printTable(
      [
        'repositories',
        'start',
        'ready',
        'CPU',
        'memory',
        'processes, most',
        'files, most',
        'at rest',
        'CPU at rest',
        'draft to published',
      ],
      rows,
    );
  } finally {
    server?.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(
  data: string,
  config: string,
  count: number,
  { name, idle }: { readonly name: string; readonly idle: number },
): Promise<string[]> {
  const started = performance.now();
  await using up = await RunningUp.start(data, { words: ['--config', config, '--log', 'text'] });
  const pid = up.child.pid ?? 0;
  const serving = performance.now() - started;
  const most = { children: 0, openFiles: 0 };
  const look = (): ProcessLoad => {
    const load = processLoad(pid);
    most.children = Math.max(most.children, load.children);
    most.openFiles = Math.max(most.openFiles, load.openFiles);
    return load;
  };
  while (!(await allOpen(up.api, count))) {
    look();
    await sleep(50);
  }
  const ready = performance.now() - started;
  const { cpu, memory } = look();
  console.error(`${count} ${name}: serving after ${milliseconds(serving)}, ready after ${milliseconds(ready)}`);
  const figures = [
    milliseconds(ready),
    `${cpu.toFixed(1)} s`,
    `${Math.round(memory / 1e6)} MB`,
    `${most.children}`,
    `${most.openFiles}`,
  ];
  if (idle === 0) return [`${count}`, name, ...figures, '', '', ''];
  for (let output = -1; output !== up.output.length; await sleep(CALM * 1000)) output = up.output.length;
  const before = processLoad(pid);
  await sleep(idle * 1000);
  const after = processLoad(pid);
  const atRest = `${after.children} processes, ${after.openFiles} files, ${Math.round(after.memory / 1e6)} MB`;
  const times: number[] = [];
  for (let number = 0; number < PUBLICATIONS; number++) times.push(await publish(up.api, count, number));
  const code = await up.end();
  if (code !== 0) throw new Error(`sluice up ended with ${code}:\n${up.output.slice(-2000)}`);
  const atRestCpu = `${(((after.cpu - before.cpu) / idle) * 100).toFixed(1)} %`;
  return [`${count}`, name, ...figures, atRest, atRestCpu, milliseconds(median(times))];
}

/** Time that git needs to list the refs of all repositories once, one process after the other. */
async function floorOf(folder: string, count: number): Promise<string[]> {
  const before = processLoad(process.pid).cpu;
  const started = performance.now();
  for (let number = 0; number < count; number++)
    await git(['-C', join(folder, `packages-${number}.git`), 'for-each-ref']);
  const took = performance.now() - started;
  const cpu = processLoad(process.pid).cpu - before;
  return [`${count}`, 'git for-each-ref, once', milliseconds(took), `${cpu.toFixed(1)} s`, '', '1', '', '', '', ''];
}

/** True once every repository is open: all its revisions are listed. */
async function allOpen(api: KubeApi, count: number): Promise<boolean> {
  const { body } = await api.list(`${REVISIONS_PATH}?limit=1`);
  const listed = body.items.length + (body.metadata.remainingItemCount ?? 0);
  return listed >= count * (PACKAGES * (REVISIONS + 1) + DRAFTS);
}

/** Milliseconds from the request for a draft until it is published, in the first repository. */
async function publish(api: KubeApi, count: number, number: number): Promise<number> {
  const started = performance.now();
  const packageName = `bench-${count}-${number}`;
  const name = `packages-0.${packageName}.v1`;
  const spec = {
    packageName,
    workspaceName: 'v1',
    repository: 'packages-0',
    tasks: [{ type: 'init', init: {} }],
  };
  await succeed(() =>
    api.post(REVISIONS_PATH, { apiVersion: 'porch.kpt.dev/v1alpha1', kind: 'PackageRevision', spec }),
  );
  await succeed(() => api.patch(`${REVISIONS_PATH}/${name}`, { spec: { lifecycle: 'Proposed' } }));
  await succeed(() => api.patch(`${REVISIONS_PATH}/${name}/approval`, { spec: { lifecycle: 'Published' } }));
  return performance.now() - started;
}

/** Controllers write to a new draft too; after a conflict the request is repeated. */
async function succeed(send: () => ReturnType<KubeApi['post']>): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const { status, text } = await send();
    if (status < 300) return;
    if (status !== 409 || attempt > 20) throw new Error(`the server returned ${status}: ${text}`);
  }
}

function manifest(number: number, address: string): string {
  return [
    '---',
    'apiVersion: config.porch.kpt.dev/v1alpha1',
    'kind: Repository',
    'metadata:',
    `  name: packages-${number}`,
    'spec:',
    '  git:',
    `    repo: ${address}`,
    '',
  ].join('\n');
}
