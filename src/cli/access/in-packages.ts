import type { ActorOptions, Invocation, PlaceOptions } from '../output/invocation.ts';
import type { Access } from './access.ts';
import { printFreezes } from './frozen-banner.ts';
import { inAccess } from './in-access.ts';

interface PackageOptions extends PlaceOptions, ActorOptions {
  readonly allNamespaces?: boolean;
}

/** Runs a command that reads or moves packages as `inAccess` does, after a line on stderr for each freeze in force where it works. */
export function inPackages<Result>(
  options: PackageOptions,
  invocation: Invocation,
  run: (access: Access, warnings: readonly string[]) => Promise<Result>,
  write = false,
): Promise<Result> {
  const work = async (access: Access, warnings: readonly string[]) => {
    const namespace = options.allNamespaces === true ? undefined : access.namespace;
    await printFreezes(access, invocation.terminal, namespace);
    return run(access, warnings);
  };
  return inAccess(options, invocation, work, write);
}
