import type { KrmFunction, ResourceList } from '../../model/function.ts';
import type { FunctionResult } from '../../model/function-result.ts';
import { parseVersion } from '../../model/function-version.ts';
import { Resource } from '../../resource/resource.ts';

export interface TestRun {
  /** The package afterwards, by file; documents of one file with `---` between. */
  readonly files: Readonly<Record<string, string>>;
  readonly results: readonly FunctionResult[];
  /** `severity: message` of every result. */
  readonly messages: readonly string[];
  /** Its human-readable output. */
  readonly stderr: string | undefined;
  /** True if errors among the results do not end the pipeline. */
  readonly errorsPass: boolean;
}

/** Runs a function on YAML texts by file. `config` is YAML, or the data of a ConfigMap; `tag` pins a version, the newest if absent. */
export async function runFunction(
  { run }: KrmFunction,
  files: string | Readonly<Record<string, string>>,
  config?: string | Readonly<Record<string, unknown>>,
  tag = 'latest',
): Promise<TestRun> {
  const all = typeof files === 'string' ? { 'resources.yaml': files } : files;
  const list: ResourceList = {
    items: Object.entries(all).flatMap(([file, text]) =>
      text.split(/^---\n/m).map((document, index) => Resource.parse(document, { file, index })),
    ),
    config: configFrom(config),
    results: [],
  };
  const version = parseVersion(tag);
  const { signal } = new AbortController();
  await run(list, { signal, ...(version === undefined ? {} : { version }) });
  const texts: Record<string, string[]> = {};
  for (const item of list.items) {
    texts[item.file] ??= [];
    texts[item.file]?.push(item.toText());
  }
  return {
    files: Object.fromEntries(Object.entries(texts).map(([file, documents]) => [file, documents.join('---\n')])),
    results: list.results,
    messages: list.results.map(({ severity, message }) => `${severity}: ${message}`),
    stderr: list.stderr,
    errorsPass: list.errorsPass === true,
  };
}

function configFrom(config: string | Readonly<Record<string, unknown>> | undefined): Resource | undefined {
  if (config === undefined) return undefined;
  if (typeof config === 'string') return Resource.parse(config, { file: 'config.yaml', index: 0 });
  return Resource.from({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'function-input' }, data: config });
}
