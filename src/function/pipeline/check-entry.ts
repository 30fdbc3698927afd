import { posix } from 'node:path';
import type { KptFunction } from '../../../kptfile-schema/index.ts';
import { messageOf } from '../../foundation/sluice-error.ts';
import { checkImage } from '../external/check-image.ts';
import type { Resource } from '../resource/resource.ts';
import { readWhen } from '../resource/when.ts';
import { findByReference } from './function-config.ts';

const KNOWN_FIELDS = new Set('image tag exec configPath configMap configRef name selectors exclude when'.split(' '));
const KNOWN_SELECTOR_FIELDS = new Set('apiVersion kind name namespace labels annotations'.split(' '));

/**
 * Returns why a function of a pipeline cannot be run as specified; undefined if it can. `own` are the resources of its package,
 * without those of nested packages, with files below the package's folder.
 */
export async function entryProblem(entry: KptFunction, own: readonly Resource[]): Promise<string | undefined> {
  const { image = '', exec = '', when = '' } = entry;
  if (image === '' && exec === '') return 'it has neither image nor exec';
  if (image !== '' && exec !== '') return 'it has both image and exec; keep one of them';
  // An unknown field may be one that restricts when the function runs.
  const unknown = Object.keys(entry).find((field) => !KNOWN_FIELDS.has(field));
  if (unknown !== undefined) return `its field ${JSON.stringify(unknown)} is unknown`;
  for (const list of ['selectors', 'exclude'] as const)
    for (const [index, selector] of (entry[list] ?? []).entries()) {
      const field = Object.keys(selector).find((each) => !KNOWN_SELECTOR_FIELDS.has(each));
      if (field !== undefined) return `${list}[${index}]: the field ${JSON.stringify(field)} is unknown`;
    }
  return (
    (await problemOf(async () => {
      if (image !== '') checkImage(image);
      if (when !== '') await readWhen(when);
    })) ?? configProblem(entry, own)
  );
}

async function configProblem(
  { configPath, configMap = {}, configRef }: KptFunction,
  own: readonly Resource[],
): Promise<string | undefined> {
  const sources = [
    configPath !== undefined && configPath !== '',
    Object.keys(configMap).length > 0,
    configRef !== undefined,
  ];
  if (sources.filter(Boolean).length > 1)
    return 'it has more than one of configPath, configMap and configRef; keep one';
  if (configRef !== undefined) {
    if (!configRef.kind || !configRef.name) return 'configRef needs a kind and a name';
    return problemOf(() => findByReference(configRef, own));
  }
  if (configPath === undefined) return undefined;
  if (configPath.trim() === '') return 'configPath is empty';
  const path = posix.normalize(configPath);
  if (path.startsWith('/') || path.split('/').includes('..'))
    return `configPath ${JSON.stringify(configPath)} must be a path below the folder of the package`;
  const found = own.filter(({ file }) => file === path).length;
  if (found === 1) return undefined;
  return found === 0
    ? `configPath ${JSON.stringify(configPath)}: the package has no such file with a resource; one of a nested package does not count`
    : `configPath ${JSON.stringify(configPath)}: the file must contain exactly one resource, but contains ${found}`;
}

async function problemOf(check: () => unknown): Promise<string | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}
