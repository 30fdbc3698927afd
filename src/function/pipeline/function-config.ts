import { posix } from 'node:path';
import type { KptFunction } from '../../../kptfile-schema/index.ts';
import { SluiceError } from '../../foundation/sluice-error.ts';
import { readResources } from '../resource/read-resources.ts';
import { Resource } from '../resource/resource.ts';

/** Requests a separate condition for the results of a validator. */
const VALIDATOR_CONDITION = 'sluice.dev/validator-condition';

/** A package's own resources, with files below its folder. */
export interface OwnResources {
  /** As they are now. */
  readonly now: () => readonly Resource[];
  /** Texts by path, as they were before any function ran. */
  readonly before: (path: string) => string | undefined;
}

/**
 * The configuration of a function, as a copy: what a function reads stays the same while it changes the package. A file that an earlier
 * function removed is read as it was. Undefined if the function has none; throws InvalidInput for a reference that names no
 * resource or several.
 */
export function functionConfig(
  { configPath, configMap, configRef }: KptFunction,
  own: OwnResources,
): Resource | undefined {
  if (configRef !== undefined) return findByReference(configRef, own.now()).clone();
  if (configPath !== undefined && configPath !== '') {
    const file = posix.normalize(configPath);
    const found = own.now().find((resource) => resource.file === file);
    return found?.clone() ?? readResources(new Map([[file, own.before(file) ?? '']])).resources[0];
  }
  if (configMap === undefined || Object.keys(configMap).length === 0) return undefined;
  return Resource.from({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'function-input' }, data: configMap });
}

/** The one resource that `configRef` names; throws InvalidInput if there is none, or more than one. */
export function findByReference(reference: NonNullable<KptFunction['configRef']>, own: readonly Resource[]): Resource {
  const { apiVersion, kind, name, namespace } = reference;
  const [found, ...others] = own.filter(
    (resource) =>
      resource.kind === kind &&
      resource.name === name &&
      (!apiVersion || resource.apiVersion === apiVersion) &&
      (!namespace || resource.namespace === namespace),
  );
  const wanted = `configRef ${kind} ${namespace ? `${namespace}/` : ''}${name}`;
  if (found === undefined)
    throw new SluiceError(
      'InvalidInput',
      `${wanted}: the package has no such resource; one of a nested package does not count`,
    );
  if (others.length > 0)
    throw new SluiceError(
      'InvalidInput',
      `${wanted}: the package has ${others.length + 1} such resources; name apiVersion and namespace, too`,
    );
  return found;
}

/** The condition type that a configuration requests. Throws InvalidInput if it cannot be one. */
export function requestedCondition(config: Resource | undefined): string | undefined {
  const type = config?.annotation(VALIDATOR_CONDITION);
  if (config === undefined || type === undefined) return undefined;
  const isType = type.length <= 316 && /^[a-z0-9][\w./-]*$/i.test(type);
  // Rendered is about the whole package, which no validator knows.
  if (isType && type !== 'Rendered') return type;
  throw new SluiceError(
    'InvalidInput',
    `${config.describe()}: the annotation ${VALIDATOR_CONDITION} cannot be ${JSON.stringify(type.slice(0, 100))}: it takes a condition type of letters, digits and ./-_ other than Rendered`,
  );
}
