import type { YAMLMap } from 'yaml';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { fail, type Machine } from '../../starlark/machine/machine.ts';
import type { StarlarkErrorDetails } from '../../starlark/machine/starlark-error.ts';
import { runStarlark } from '../../starlark/run-starlark.ts';
import { Dict } from '../../starlark/values/hash-table.ts';
import { List } from '../../starlark/values/sequence.ts';
import { Struct } from '../../starlark/values/struct.ts';
import type { Value } from '../../starlark/values/value.ts';
import {
  CONFIG_MAP,
  configOf,
  invalidConfig,
  isOfKind,
  KPT_FUNCTIONS,
  textAt,
} from '../built-in/support/fields/function-config.ts';
import type { ResourceList } from '../model/function.ts';
import type { FunctionResult } from '../model/function-result.ts';
import type { Resource } from '../resource/resource.ts';
import { withPlace } from '../resource-list/place-annotations.ts';
import { readListNode } from '../resource-list/resource-list-text.ts';
import { createNode } from '../yaml/node-value.ts';
import { loadModule } from './load-module.ts';
import { plainFrom, valueFrom } from './yaml-values.ts';

const STARLARK_RUN = { apiVersion: KPT_FUNCTIONS, kind: 'StarlarkRun' };
const API_VERSION = 'config.kubernetes.io/v1';

/** Limits of the output of a script: lines, and characters of each. */
const MAX_PRINTED = { lines: 100, characters: 2000 };

/** Runs the script of the configuration on the resources. Throws InvalidInput for a configuration without one. */
export function runOnResources(list: ResourceList): void {
  const config = configOf(list, 'starlark', [STARLARK_RUN, CONFIG_MAP]);
  const source = textAt(config, isOfKind(config, CONFIG_MAP) ? ['data', 'source'] : ['source']);
  if (source === undefined || source === '')
    throw invalidConfig(config, `it has no script: ${config.kind === 'ConfigMap' ? 'data.source' : 'source'} is empty`);
  const lines: string[] = [];
  try {
    const { items, results } = runScript(source, config, list, (text) => printed(lines, text));
    list.items = items;
    list.results.push(...results);
  } catch (error) {
    list.results.push(...failureOf(error, config));
  } finally {
    if (lines.length > 0) list.stderr = lines.map((line) => `${line}\n`).join('');
  }
}

function runScript(
  source: string,
  config: Resource,
  { items }: ResourceList,
  print: (text: string) => void,
): Pick<ResourceList, 'items' | 'results'> {
  const resourceList = new Dict();
  let tree: YAMLMap | undefined;
  runStarlark(source, {
    name: config.name || 'starlark',
    load: loadModule,
    print,
    predeclare: (machine) => {
      fillResourceList(machine, resourceList, items, config);
      return new Map([['ctx', new Context(resourceList)]]);
    },
    collect: (machine) => {
      tree = treeOf(machine, resourceList);
    },
  });
  return readListNode(tree as YAMLMap, { sent: items });
}

/** The variable `ctx` of a script. */
class Context extends Struct {
  constructor(resourceList: Dict) {
    const environment = new Dict();
    environment.frozen = true;
    super(
      new Map([
        ['resource_list', resourceList],
        ['environment', environment],
      ]),
    );
  }

  override attribute(name: string): Value | undefined {
    if (name === 'open_api') fail('ctx.open_api is not supported: a package renders without the schema of a cluster');
    return super.attribute(name);
  }
}

function fillResourceList(machine: Machine, list: Dict, items: readonly Resource[], config: Resource): void {
  list.set('apiVersion', API_VERSION);
  list.set('kind', 'ResourceList');
  list.set('items', new List(items.map((item) => valueFrom(machine, withPlace(item)))));
  list.set('functionConfig', valueFrom(machine, config.root));
}

/** The result of the script, as the ResourceList that an external function would return. */
function treeOf(machine: Machine, list: Dict): YAMLMap {
  const fields = new Map([
    ['apiVersion', API_VERSION],
    ['kind', 'ResourceList'],
    ...['items', 'results'].map((name) => [name, plainFrom(machine, list.get(name) ?? null, name)] as const),
  ]);
  return createNode(fields) as YAMLMap;
}

function printed(lines: string[], text: string): void {
  const { lines: most, characters } = MAX_PRINTED;
  if (lines.length >= most) return;
  if (lines.length === most - 1) lines.push(`the script printed more than ${most} lines; the rest is omitted`);
  else lines.push(text.length > characters ? `${text.slice(0, characters)}…` : text);
}

/** The finding of a script that called `fail`. Throws other errors. */
function failureOf(error: unknown, config: Resource): FunctionResult[] {
  if (!(error instanceof SluiceError) || error.details === undefined) throw error;
  const { phase, reason, backtrace } = error.details as StarlarkErrorDetails;
  if (phase !== 'evaluation')
    throw new SluiceError(error.code, `${config.describe()}: ${error.message}`, { cause: error });
  // The message of the script itself is for users who do not know its code.
  if (reason.startsWith('fail: ')) return [{ severity: 'error', message: reason }];
  const message = backtrace.split('\n').length > 2 ? `${error.message}\n${backtrace}` : error.message;
  return [{ severity: 'error', message }];
}
