import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { KubernetesTypes } from '../src/function/schema/kubernetes-schemas.ts';

export const KUBERNETES_TYPES_FILE = fileURLToPath(
  new URL('../src/function/schema/kubernetes-types.json', import.meta.url),
);

/** The client is generated from the OpenAPI document of Kubernetes, and contains its types. */
const generated = join(dirname(createRequire(import.meta.url).resolve('@kubernetes/client-node')), 'gen');

interface Attribute {
  /** As in TypeScript. */
  readonly name: string;
  /** As in YAML. */
  readonly baseName: string;
  readonly type: string;
  readonly format: string;
}
/** `V1Deployment`, `CoreV1Event`. */
const MODEL = /^(?:[A-Z][a-z]+)?V\d+(?:(?:alpha|beta)\d+)?(?=[A-Z])/;

type Models = Readonly<Record<string, { readonly attributeTypeMap?: readonly Attribute[] }>>;

/** Fields that are quantities, such as `500m`: the client knows them as texts. */
const QUANTITIES = new Set(
  [
    ...['ResourceRequirements.limits', 'ResourceRequirements.requests', 'VolumeResourceRequirements.limits'],
    ...['VolumeResourceRequirements.requests', 'EmptyDirVolumeSource.sizeLimit', 'ResourceFieldSelector.divisor'],
    ...['ResourceQuotaSpec.hard', 'ResourceQuotaStatus.hard', 'ResourceQuotaStatus.used', 'LimitRangeItem.default'],
    ...['LimitRangeItem.defaultRequest', 'LimitRangeItem.max', 'LimitRangeItem.min', 'PodSpec.overhead'],
    ...['LimitRangeItem.maxLimitRequestRatio', 'Overhead.podFixed', 'PersistentVolumeSpec.capacity'],
    ...['PersistentVolumeClaimStatus.capacity', 'PersistentVolumeClaimStatus.allocatedResources'],
    ...['NodeStatus.capacity', 'NodeStatus.allocatable', 'PodStatus.allocatedResources'],
    ...['ContainerStatus.allocatedResources', 'MetricTarget.value', 'MetricTarget.averageValue'],
    ...['MetricValueStatus.value', 'MetricValueStatus.averageValue', 'HPAScalingRules.tolerance'],
    ...['CSIStorageCapacity.capacity', 'CSIStorageCapacity.maximumVolumeSize', 'CapacityRequestPolicy.default'],
    ...['CapacityRequestPolicy.validValues', 'CapacityRequestPolicyRange.max', 'CapacityRequestPolicyRange.min'],
    ...['CapacityRequestPolicyRange.step', 'CapacityRequirements.requests', 'Counter.value', 'DeviceCapacity.value'],
    ...['DeviceRequestAllocationResult.consumedCapacity', 'NodeAllocatableResourceClaimStatus.resources'],
    ...['NodeAllocatableResourceMapping.allocationMultiplier'],
  ].map((field) => field.toLowerCase()),
);

const SCALARS: Readonly<Record<string, string>> = {
  'string:': 'string',
  'string:byte': 'string',
  'string:int-or-string': 'intOrString',
  'IntOrString:int-or-string': 'intOrString',
  'number:int32': 'int32',
  'number:int64': 'integer',
  'number:double': 'number',
  'boolean:': 'boolean',
  'Date:date-time': 'time',
  'V1MicroTime:date-time-micro': 'time',
  'any:': 'any',
};

/** All kinds of Kubernetes that can be written, and the types that they consist of. */
export async function kubernetesTypes(): Promise<string> {
  const all = pathToFileURL(join(generated, 'models', 'all.js')).href;
  const models = (await import(all)) as Models;
  const kinds = kindsOfApis(models);
  const types: Record<string, Record<string, string>> = {};
  const open = [...Object.values(kinds).map(({ type }) => type), 'V1ObjectMeta'];
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (Object.hasOwn(types, name)) continue;
    const text = readFileSync(join(generated, 'models', `${name}.d.ts`), 'utf8');
    const fields: Record<string, string> = {};
    for (const attribute of attributesOf(models, name)) {
      const type = typeOf(attribute, isQuantity(name, attribute.baseName));
      const required = text.includes(`\n    '${attribute.name}': `);
      fields[attribute.baseName] = required ? `${type}!` : type;
      const inner = type.replaceAll(/[[\]{}]/g, '');
      if (MODEL.test(inner)) open.push(inner);
    }
    types[name] = fields;
  }
  const release = /release-([\d.]+)/.exec(readFileSync(join(generated, 'models', 'V1Pod.js'), 'utf8'))?.[1] ?? '';
  const data: KubernetesTypes = { release, kinds, types: sorted(types) };
  return `${JSON.stringify(data, null, 2)}\n`;
}

function attributesOf(models: Models, name: string): readonly Attribute[] {
  const attributes = Object.hasOwn(models, name) ? models[name]?.attributeTypeMap : undefined;
  if (attributes === undefined) throw new Error(`${name} is not a model of the client`);
  return attributes;
}

/** By `apiVersion/kind`: what can be posted to a collection. */
function kindsOfApis(models: Models): KubernetesTypes['kinds'] {
  const kinds: Record<string, KubernetesTypes['kinds'][string]> = {};
  const folder = join(generated, 'apis');
  for (const file of readdirSync(folder).filter((name) => name.endsWith('Api.js'))) {
    for (const part of readFileSync(join(folder, file), 'utf8').split('const localVarPath = ').slice(1)) {
      const path = /^'\/(?:api|apis\/([^/{]+))\/([^/{]+)\/(namespaces\/\{namespace\}\/)?([^/{']+)'/.exec(part);
      const type = /serialize\(body, "(\w+)"/.exec(part)?.[1];
      if (path === null || type === undefined || !part.includes('HttpMethod.POST')) continue;
      // The client still has files of kinds that are gone.
      if (!Object.hasOwn(models, type)) continue;
      const [, group, version, namespace, plural = ''] = path;
      const apiVersion = group === undefined ? version : `${group}/${version}`;
      kinds[`${apiVersion}/${kindOf(type)}`] = { type, plural, namespaced: namespace !== undefined };
    }
  }
  return sorted(kinds);
}

function kindOf(model: string): string {
  return model.replace(MODEL, '');
}

function isQuantity(model: string, field: string): boolean {
  return QUANTITIES.has(`${kindOf(model)}.${field}`.toLowerCase());
}

/** `[T]` for lists, `{T}` for maps. */
function typeOf({ type, format, baseName }: Attribute, quantity: boolean): string {
  const list = /^Array<(.+)>$/.exec(type)?.[1];
  if (list !== undefined) return `[${typeOf({ name: '', baseName, type: list, format }, quantity)}]`;
  const map = /^\{ \[key: string\]: (.+); \}$/.exec(type)?.[1];
  if (map !== undefined) return `{${typeOf({ name: '', baseName, type: map, format }, quantity)}}`;
  if (quantity) return 'quantity';
  const scalar = SCALARS[`${type}:${format}`];
  if (scalar !== undefined) return scalar;
  if (MODEL.test(type)) return type;
  throw new Error(`${baseName}: the type ${type} with the format ${JSON.stringify(format)} is new; add it to SCALARS`);
}

function sorted<T>(record: Readonly<Record<string, T>>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([left], [right]) => (left < right ? -1 : 1)));
}
