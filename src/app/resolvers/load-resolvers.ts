import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Resolver } from '../../package/plan/ports/resolver.ts';

/**
 * Resolvers from modules: each exports one as `default` or `resolver`, or a list of them as `resolvers`. Their code runs with all
 * rights of this process.
 */
export async function loadResolvers(files: readonly string[]): Promise<Resolver[]> {
  const resolvers: Resolver[] = [];
  for (const file of files) {
    const found = candidates(await load(file));
    if (found.length === 0) {
      throw new SluiceError(
        'InvalidInput',
        `${file} exports no resolver; export one as default, or several as "resolvers"`,
      );
    }
    for (const candidate of found) resolvers.push(expectResolver(candidate, file));
  }
  return resolvers;
}

async function load(file: string): Promise<Record<string, unknown>> {
  try {
    return (await import(pathToFileURL(resolve(file)).href)) as Record<string, unknown>;
  } catch (error) {
    throw new SluiceError('InvalidInput', `cannot load the resolver ${file}: ${messageOf(error)}`, { cause: error });
  }
}

function candidates(module: Record<string, unknown>): unknown[] {
  if (Array.isArray(module.resolvers)) return module.resolvers;
  return [module.default ?? module.resolver].filter((candidate) => candidate !== undefined);
}

function expectResolver(candidate: unknown, file: string): Resolver {
  const value = candidate as Partial<Resolver> | null;
  const isList = (list: unknown) => Array.isArray(list) && list.every((item) => typeof item === 'string');
  const problem =
    typeof value !== 'object' || value === null
      ? 'it is no object'
      : typeof value.name !== 'string' || value.name === ''
        ? 'name must be a text'
        : !isList(value.claims)
          ? 'claims must be a list of condition types'
          : typeof value.applies !== 'function' || typeof value.resolve !== 'function'
            ? 'applies and resolve must be functions'
            : undefined;
  if (problem !== undefined)
    throw new SluiceError('InvalidInput', `${file} exports something that is no resolver: ${problem}`);
  return value as Resolver;
}
