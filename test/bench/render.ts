import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { builtIns } from '../../src/function/built-in/index.ts';
import { Catalog } from '../../src/function/catalog/catalog.ts';
import { DEFAULT_FUNCTION_LIMITS, type PipelineInput } from '../../src/function/model/pipeline.ts';
import { runPipeline } from '../../src/function/pipeline/run-pipeline.ts';
import { FunctionRenderer } from '../../src/function/renderer/function-renderer.ts';
import { workerPipelineRunner } from '../../src/function/worker/worker-pipeline-runner.ts';
import { isKptfilePath } from '../../src/package/merge/package-files.ts';
import { isYamlPath } from '../../src/package/model/krm/krm.ts';
import { corpusMissing, corpusPackages } from '../support/corpus.ts';
import { complexPackage, largePackage } from './synthetic-package.ts';
import { median, milliseconds, percentile, printTable, ratio } from './table.ts';

const ROUNDS = 100;
const WARM_UP = 20;
/** Concurrent renders, for the rate. */
const AT_ONCE = 200;
const { signal } = new AbortController();

interface Sample {
  readonly name: string;
  readonly files: ReadonlyMap<string, string>;
}

/** Pipelines against parsing and printing the same files once with the same YAML library. */
export async function render(): Promise<void> {
  const samples = [...corpusSamples(), ...synthetic()];
  const catalog = new Catalog(builtIns);
  const runner = workerPipelineRunner({ external: undefined });
  const rows: string[][] = [];
  try {
    for (const sample of samples) {
      const input: PipelineInput = { files: sample.files, rules: [], validatorConditions: new Map() };
      const options = { catalog, external: undefined, limits: DEFAULT_FUNCTION_LIMITS, signal };
      const first = await runPipeline(input, options);
      const floors = await times(() => floor(sample.files));
      const renders = await times(() => runPipeline(input, options));
      const inWorker = await times(() => runner.run(input, signal));
      rows.push([
        sample.name,
        `${first.steps.length}${first.failure === undefined ? '' : ', fails'}`,
        `${Math.round(bytesOf(sample.files) / 1000)} KB`,
        milliseconds(median(floors)),
        milliseconds(median(renders)),
        ratio(median(renders), median(floors)),
        milliseconds(percentile(renders, 0.99)),
        milliseconds(median(inWorker)),
        milliseconds(percentile(inWorker, 0.99)),
        (await rate(() => runner.run(input, signal))).toFixed(0),
      ]);
    }
    printTable(
      ['package', 'functions', 'YAML', 'floor', 'render', 'ratio', 'p99', 'in a worker', 'p99', 'renders/s'],
      rows,
    );
    console.log('\nfloor: parse all documents and print them, once. Aim: 4 for three functions.\n');
    await warmAnswers(samples, catalog, runner);
    for (const pid of runner.pids) console.log(`worker: ${residentMegabytes(pid)} MB resident`);
    console.log(`this process: ${residentMegabytes(process.pid)} MB resident`);
  } finally {
    await runner.close();
  }
}

/** Time until the first result of a running process, and until a cached result. */
async function warmAnswers(
  samples: readonly Sample[],
  catalog: Catalog,
  runner: ReturnType<typeof workerPipelineRunner>,
): Promise<void> {
  const sample = samples.find(({ name }) => name === 'ghost') ?? samples[0];
  if (sample === undefined) return;
  const renderer = new FunctionRenderer({ runner, catalog, rules: () => [] });
  const files = new Map([...sample.files].map(([path, text]) => [path, Buffer.from(text)]));
  const request = { files, namespace: 'default', validatorConditions: new Map<string, string>(), signal };
  const started = performance.now();
  await renderer.render(request);
  const first = performance.now() - started;
  const known = await times(() => renderer.render(request));
  console.log(`${sample.name}: first answer of a warm process ${milliseconds(first)} (aim 20 ms)`);
  console.log(`${sample.name}: unchanged, answered from memory ${milliseconds(median(known))}`);
}

function corpusSamples(): Sample[] {
  if (corpusMissing !== false) {
    console.log(`without real packages: ${corpusMissing}`);
    return [];
  }
  return corpusPackages().flatMap(({ name, files }) => {
    const texts = new Map(
      [...files]
        .filter(([path]) => isYamlPath(path) || isKptfilePath(path))
        .map(([path, data]) => [path, data.toString('utf8')]),
    );
    const hasPipeline = [...texts].some(([path, text]) => isKptfilePath(path) && /^pipeline:/m.test(text));
    return hasPipeline ? [{ name, files: texts }] : [];
  });
}

function synthetic(): Sample[] {
  return [
    { name: '15 functions', files: complexPackage() },
    { name: '30 Deployments', files: largePackage() },
  ];
}

function floor(files: ReadonlyMap<string, string>): void {
  for (const text of files.values())
    for (const document of parseAllDocuments(text)) if ('toString' in document) String(document);
}

async function times(action: () => unknown): Promise<number[]> {
  const found: number[] = [];
  for (let round = 0; round < WARM_UP + ROUNDS; round += 1) {
    const started = performance.now();
    await action();
    if (round >= WARM_UP) found.push(performance.now() - started);
  }
  return found;
}

/** Renders a second if all are requested at once. */
async function rate(action: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await Promise.all(Array.from({ length: AT_ONCE }, action));
  return AT_ONCE / ((performance.now() - started) / 1000);
}

function bytesOf(files: ReadonlyMap<string, string>): number {
  let bytes = 0;
  for (const text of files.values()) bytes += Buffer.byteLength(text);
  return bytes;
}

function residentMegabytes(pid: number): string {
  const kilobytes = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  return (Number(kilobytes) / 1000).toFixed(0);
}
