import { Catalog } from '../catalog/catalog.ts';
import type { ExternalCall, ExternalResult, ExternalRunner } from '../external/external-runner.ts';
import type { KrmFunction } from '../model/function.ts';
import { resultFor } from '../model/function-result.ts';
import { DEFAULT_FUNCTION_LIMITS, type PipelineInput, type PipelineOutcome } from '../model/pipeline.ts';
import { Resource } from '../resource/resource.ts';
import { type PipelineOptions, runPipeline } from './run-pipeline.ts';

/** A short form of a function for tests. */
export function testFunction(name: string, run: KrmFunction['run']): KrmFunction {
  return { name, doc: { summary: name, description: name, examples: [], differences: [] }, run };
}

/** Functions with effects that tests can distinguish. */
export const testFunctions: readonly KrmFunction[] = [
  // Adds its `word` to the annotation `trail` of all that it gets.
  testFunction('mark', ({ items, config }) => {
    for (const item of items) {
      const path = ['metadata', 'annotations', 'trail'];
      item.set(path, `${item.annotation('trail') ?? ''}${config?.get(['data', 'word'])}`);
    }
  }),
  // Reports the files of its input, in their order.
  testFunction('report-files', ({ items, results }) => {
    results.push({ severity: 'info', message: items.map(({ file, index }) => `${file}#${index}`).join(' ') });
  }),
  testFunction('make', ({ items, config }) => {
    const name = String(config?.get(['data', 'name']));
    const place = { file: String(config?.get(['data', 'file']) ?? ''), index: 0 };
    items.push(Resource.from({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } }, place));
  }),
  testFunction('remove', (list) => {
    const name = list.config?.get(['data', 'name']);
    list.items = list.items.filter((item) => item.name !== name);
  }),
  testFunction('refuse', ({ items, results }) => {
    for (const item of items)
      if (item.kind === 'Deployment') results.push(resultFor('error', 'no deployments', item, 'kind'));
  }),
];

export interface TestRender {
  readonly functions?: readonly KrmFunction[];
  readonly external?: ExternalRunner;
  readonly input?: Partial<PipelineInput>;
  readonly options?: Partial<PipelineOptions>;
}

export function render(
  files: Readonly<Record<string, string>>,
  { functions = testFunctions, external, input = {}, options = {} }: TestRender = {},
): Promise<PipelineOutcome> {
  return runPipeline(
    { files: new Map(Object.entries(files)), rules: [], validatorConditions: new Map(), ...input },
    {
      catalog: new Catalog(functions),
      external,
      limits: DEFAULT_FUNCTION_LIMITS,
      signal: new AbortController().signal,
      ...options,
    },
  );
}

/** A Kptfile with this pipeline, which is YAML below `pipeline:`. */
export function kptfile(pipeline: string, annotations = ''): string {
  const head = `apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: test\n`;
  return `${head}${annotations === '' ? '' : `  annotations:\n    ${annotations}\n`}pipeline:\n${pipeline}`;
}

export function configMap(name: string, more = ''): string {
  return `apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: ${name}\n${more}`;
}

/** An external runner that is a function of this process. */
export function externalFunction(
  run: (call: ExternalCall) => ExternalResult | Promise<ExternalResult>,
): ExternalRunner {
  return { refusal: async () => undefined, run: async (call) => run(call) };
}
