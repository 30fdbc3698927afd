import { isMap, isScalar } from 'yaml';
import { SluiceError } from '../../../../foundation/sluice-error.ts';
import type { ResourceList } from '../../../model/function.ts';
import type { FieldPath, Resource } from '../../../resource/resource.ts';

/** API version of the configurations of the functions that kpt publishes. */
export const KPT_FUNCTIONS = 'fn.kpt.dev/v1alpha1';

/** A kind that a function takes as its configuration. */
export interface ConfigKind {
  readonly apiVersion: string;
  readonly kind: string;
}

export const CONFIG_MAP: ConfigKind = { apiVersion: 'v1', kind: 'ConfigMap' };

/** The configuration of a function. Throws InvalidInput if there is none, or one of another kind. */
export function configOf({ config }: ResourceList, name: string, kinds: readonly ConfigKind[]): Resource {
  const expected = kinds.map(({ apiVersion, kind }) => `${kind} (${apiVersion})`).join(' or ');
  if (config === undefined)
    throw new SluiceError(
      'InvalidInput',
      `${name} needs a configuration: set configMap or configPath to a ${expected}`,
    );
  if (!kinds.some((kind) => isOfKind(config, kind)))
    throw new SluiceError(
      'InvalidInput',
      `${name} cannot be configured by ${config.describe()} (${config.apiVersion}): use a ${expected}`,
    );
  return config;
}

export function isOfKind(resource: Resource, { apiVersion, kind }: ConfigKind): boolean {
  return resource.kind === kind && resource.apiVersion === apiVersion;
}

/** The error for an invalid configuration. */
export function invalidConfig(config: Resource, why: string): SluiceError {
  return new SluiceError('InvalidInput', `${config.describe()}: ${why}`);
}

/** The text of a scalar as it is written, so that `1.10` stays what it is. Undefined for an absent field, or another node. */
export function textAt(resource: Resource, path: FieldPath): string | undefined {
  const node = resource.node(path);
  return isScalar(node) && node.value !== null ? String(node.value) : undefined;
}

/** Texts by key; empty if the field is absent. Throws InvalidInput for another node. */
export function textsAt(config: Resource, path: FieldPath): ReadonlyMap<string, string> {
  const texts = new Map<string, string>();
  const node = config.node(path);
  if (node === undefined || (isScalar(node) && node.value === null)) return texts;
  if (!isMap(node)) throw invalidConfig(config, `${path.join('.')} must be texts by key`);
  for (const { key, value } of node.items) {
    const name = isScalar(key) ? String(key.value) : '';
    if (value !== null && !isScalar(value)) throw invalidConfig(config, `${[...path, name].join('.')} must be a text`);
    texts.set(name, String(value?.value ?? ''));
  }
  return texts;
}
