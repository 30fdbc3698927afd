import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { parse } from 'yaml';
import { builtIns } from '../../../src/function/built-in/index.ts';
import { runFunction } from '../../../src/function/built-in/support/testing.ts';

const RUNS_WITHIN = 30_000;

const PLACE =
  /^(?:internal\.)?config\.kubernetes\.io\/(?:path|index|seqindent)$|^internal\.config\.kubernetes\.io\/(?:annotations-migration-.*|id)$/;

interface Item {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

interface Finding {
  readonly severity: string;
  readonly message: string;
}

interface ResourceListValue {
  readonly items?: readonly Item[];
  /** Older functions give a mapping with `items`. */
  readonly results?: readonly Finding[] | { readonly items?: readonly Finding[] };
}

/** The input of a function: resources as YAML documents with `---` between, and its configuration. */
export interface FunctionInput {
  readonly resources: string;
  /** YAML; none if absent. */
  readonly config?: string;
}

/** The result of a function. */
export interface FunctionOutcome {
  /** False if it fails, and the pipeline ends with it. */
  readonly passes: boolean;
  /** The content of the resources, without comments and style, in no particular order. Empty after a failure. */
  readonly values: readonly unknown[];
  /** The resources as text, to compare comments. */
  readonly text: string;
  readonly messages: readonly string[];
  readonly stderr: string;
}

/** Runs the program of a published function. */
export async function runPublished(program: string, input: FunctionInput): Promise<FunctionOutcome> {
  const child = spawn(program, [], { timeout: RUNS_WITHIN });
  const ended = new Promise<number | null>((resolve, reject) => child.once('error', reject).once('close', resolve));
  child.stdin.on('error', () => {
    // A function that fails early reads no further.
  });
  child.stdin.end(resourceList(input));
  const [stdout, stderr, exitCode] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  if (exitCode === null) throw new Error(`${program} did not end: ${stderr}`);
  const list = (parse(stdout, { version: '1.1' }) ?? {}) as ResourceListValue;
  const { items: output = [], results = [] } = list;
  const messages = findingsOf(results).map(({ severity, message }) => `${severity}: ${message}`);
  if (exitCode !== 0) return { passes: false, values: [], text: '', messages, stderr };
  return { passes: true, values: sorted(output.map(withoutPlace)), text: stdout, messages, stderr };
}

/** Runs the built-in function instead, as the version of a tag. */
export async function runBuiltIn(name: string, tag: string, input: FunctionInput): Promise<FunctionOutcome> {
  const fn = builtIns.find((each) => each.name === name);
  if (fn === undefined) throw new Error(`no built-in function ${name}`);
  try {
    const {
      files,
      results,
      messages,
      errorsPass,
      stderr = '',
    } = await runFunction(fn, input.resources, input.config, tag);
    const passes = errorsPass || !results.some(({ severity }) => severity === 'error');
    const texts = Object.values(files).flatMap((text) => text.split(/^---\n/m));
    // Functions read YAML 1.1, as Kubernetes does.
    const values = texts.map((each) => withoutPlace(parse(each, { version: '1.1' }) as Item));
    return { passes, values: passes ? sorted(values) : [], text: passes ? texts.join('---\n') : '', messages, stderr };
  } catch (error) {
    return { passes: false, values: [], text: '', messages: [], stderr: String(error) };
  }
}

function findingsOf(results: NonNullable<ResourceListValue['results']>): readonly Finding[] {
  return Array.isArray(results) ? results : ((results as { items?: readonly Finding[] }).items ?? []);
}

/** Functions order resources in ways of their own; files keep the order of the package. */
function sorted(items: readonly Item[]): readonly Item[] {
  const keyOf = ({ apiVersion, kind, metadata: { namespace = '', name } }: Item) =>
    JSON.stringify([apiVersion, kind, namespace, name]);
  return [...items].sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1));
}

/** A resource without the annotations with its place in the package. */
function withoutPlace(item: Item): Item {
  const { annotations, ...metadata } = item.metadata;
  const kept = Object.entries(annotations ?? {}).filter(([key]) => !PLACE.test(key));
  return { ...item, metadata: kept.length === 0 ? metadata : { ...metadata, annotations: Object.fromEntries(kept) } };
}

/** The documents as text, since the place of a comment matters to some functions. */
function resourceList({ resources, config }: FunctionInput): string {
  const items = resources.split(/^---\n/m).map((document) => `- ${indented(document).slice(2)}`);
  const functionConfig = config === undefined ? '' : `functionConfig:\n${indented(config)}`;
  return `apiVersion: config.kubernetes.io/v1\nkind: ResourceList\n${functionConfig}items:\n${items.join('')}`;
}

function indented(document: string): string {
  return document.replace(/^(?=.)/gm, '  ');
}
