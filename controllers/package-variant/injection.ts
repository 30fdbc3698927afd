import { readResources } from '../../src/function/resource/read-resources.ts';
import type { Resource } from '../../src/function/resource/resource.ts';
import { writeResources } from '../../src/function/resource/write-resources.ts';
import type { IssuedCondition } from '../../src/package/model/gates/verdict.ts';
import type { PackageVariant } from '../../src/resource/kinds/porch/package-variant.ts';
import { sameValue } from '../../src/resource/object/same-value.ts';

const INJECTION_ANNOTATION = 'kpt.dev/config-injection';
const INJECTED_ANNOTATION = 'kpt.dev/injected-resource';

type Injector = NonNullable<PackageVariant['spec']['injectors']>[number];

/** An object outside of the package, in the namespace of the variant. */
export interface SelectedObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
}

/** Returns an object; undefined if there is none. `problem` if its kind cannot be read. */
export type ReadSelected = (
  selected: SelectedObject,
) => Promise<{ readonly object?: unknown; readonly problem?: string }>;

export interface Injection {
  /** Files that change. */
  readonly files: ReadonlyMap<string, Uint8Array>;
  readonly conditions: readonly IssuedCondition[];
  /** Condition types that are gates. */
  readonly gates: readonly string[];
  /** Two resources have one condition, or an annotation is wrong; then nothing is injected. */
  readonly problem?: string;
}

/** Injects objects into the resources of a package that have the annotation. */
export async function inject(
  files: ReadonlyMap<string, Uint8Array>,
  injectors: readonly Injector[],
  read: ReadSelected,
): Promise<Injection> {
  const texts = new Map<string, string>();
  for (const [path, data] of files) {
    const text = Buffer.from(data).toString('utf8');
    // Most files have no injection point, and parsing them is expensive.
    if (/\.ya?ml$/.test(path) && text.includes(INJECTION_ANNOTATION)) texts.set(path, text);
  }
  const resources = readResources(texts);
  const points = resources.resources.filter((resource) => resource.annotation(INJECTION_ANNOTATION) !== undefined);
  const problem = problemOf(points);
  if (problem !== undefined) return { files: new Map(), conditions: [], gates: [], problem };
  const conditions: IssuedCondition[] = [];
  const gates: string[] = [];
  for (const point of points) {
    const type = typeOf(point);
    if (point.annotation(INJECTION_ANNOTATION) === 'required') gates.push(type);
    // Bound to the file: a change elsewhere does not affect what was injected.
    conditions.push({ type, ...(await injectInto(point, injectors, read)), inputs: [`file:${point.file}`] });
  }
  const edits = writeResources(resources, resources.resources);
  const changed = [...edits].flatMap(([path, text]) => (text === null ? [] : [[path, Buffer.from(text)] as const]));
  return { files: new Map(changed), conditions, gates };
}

function typeOf({ kind, name }: Resource): string {
  return `config.injection.${kind}.${name}`;
}

function problemOf(points: readonly Resource[]): string | undefined {
  const problems: string[] = [];
  const known = new Map<string, string>();
  for (const point of points) {
    const [type, mode] = [typeOf(point), point.annotation(INJECTION_ANNOTATION)];
    if (mode !== 'required' && mode !== 'optional')
      problems.push(
        `${point.describe()} has the annotation ${INJECTION_ANNOTATION} with the value ${JSON.stringify(mode)}; use required or optional`,
      );
    const other = known.get(type);
    if (other !== undefined)
      problems.push(`duplicate injection conditionType "${type}" (${other} and ${point.file}); rename one of them`);
    known.set(type, point.file);
  }
  return problems.length === 0 ? undefined : `errors in injection points: ${problems.join(', ')}`;
}

async function injectInto(
  point: Resource,
  injectors: readonly Injector[],
  read: ReadSelected,
): Promise<Pick<IssuedCondition, 'status' | 'reason' | 'message'>> {
  const { apiVersion, kind } = point;
  const missing = (message: string) => ({ status: 'False', reason: 'NoResourceSelected', message }) as const;
  if (injectors.length === 0) return missing('no injectors defined');
  const problems: string[] = [];
  for (const { name } of injectors.filter((injector) => isFor(injector, point))) {
    const { object, problem } = await read({ apiVersion, kind, name });
    if (problem !== undefined) problems.push(problem);
    if (object === undefined) continue;
    const field = point.group === '' && kind === 'ConfigMap' ? 'data' : 'spec';
    const value = (object as Readonly<Record<string, unknown>>)[field];
    if (value === undefined) return missing(`field "${field}" not found in resource "${name}"`);
    if (!sameValue(point.get([field]), value)) point.set([field], value);
    if (point.annotation(INJECTED_ANNOTATION) !== name)
      point.set(['metadata', 'annotations', INJECTED_ANNOTATION], name);
    return { status: 'True', reason: 'ConfigInjected', message: `injected resource "${name}" from cluster` };
  }
  return missing(
    [...new Set(problems)].join(', ') || 'no resource matched any injection selector for this injection point',
  );
}

function isFor({ group, version, kind }: Injector, point: Resource): boolean {
  return (
    (group === undefined || group === point.group) &&
    (version === undefined || version === point.apiVersion.slice(point.apiVersion.indexOf('/') + 1)) &&
    (kind === undefined || kind === point.kind)
  );
}
