import { SluiceError } from '../../foundation/sluice-error.ts';
import { isJsonObject } from '../../resource/own-property.ts';
import { builtIns } from '../built-in/index.ts';
import type { FunctionPack, KrmFunction } from '../function.ts';

/**
 * The built-in functions and further packs, by the URLs of modules whose default export is a FunctionPack. Throws InvalidInput for a
 * module that has none.
 */
export async function loadPacks(urls: readonly string[]): Promise<FunctionPack[]> {
  const packs: FunctionPack[] = [builtIns];
  for (const url of urls) {
    const module = (await import(url)) as { default?: unknown };
    if (!isPack(module.default))
      throw new SluiceError(
        'InvalidInput',
        `${url} is no pack of functions: its default export must have a name and a list of functions`,
      );
    packs.push(module.default);
  }
  return packs;
}

function isPack(value: unknown): value is FunctionPack {
  if (!isJsonObject(value)) return false;
  const { name, functions } = value;
  return typeof name === 'string' && Array.isArray(functions) && functions.every(isFunction);
}

function isFunction(value: unknown): value is KrmFunction {
  return isJsonObject(value) && typeof value.name === 'string' && typeof value.run === 'function';
}
