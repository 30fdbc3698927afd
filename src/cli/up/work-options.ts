import { accessSync, constants, statSync } from 'node:fs';
import { resolve } from 'node:path';
import type { FunctionSettings } from '../../app/functions/function-settings.ts';
import type { GitNetworkOptions } from '../../app/repositories/git-network.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';

/** Options of the commands that run controllers. */
export interface WorkOptions extends GitNetworkOptions {
  readonly resolver?: readonly string[];
  readonly disable?: readonly string[];
  readonly diskBudget?: string;
  readonly functionPrograms?: string;
  readonly containers?: boolean;
  readonly requireImageDigest?: boolean;
  readonly defaultImagePrefix?: string;
  readonly renderStatus?: boolean;
  readonly kustomize?: string;
  readonly helm?: string;
}

/** How functions outside of this process may run. Throws InvalidInput. */
export function functionsOf(options: WorkOptions): FunctionSettings {
  const { functionPrograms, containers, requireImageDigest, defaultImagePrefix, renderStatus, kustomize, helm } =
    options;
  return {
    containers: containers === true,
    requireDigest: requireImageDigest === true,
    renderStatus: renderStatus === true,
    ...(defaultImagePrefix === undefined ? {} : { registry: registryOf(defaultImagePrefix) }),
    ...(kustomize === undefined ? {} : { kustomize: programOf('kustomize', kustomize) }),
    ...(helm === undefined ? {} : { helm: programOf('helm', helm) }),
    ...(functionPrograms === undefined ? {} : { programs: resolve(functionPrograms) }),
  };
}

/** At the start, and not when the first package needs it. */
function programOf(name: 'kustomize' | 'helm', value: string): string {
  const path = resolve(value);
  try {
    if (!statSync(path).isFile()) throw new Error('it is not a file');
    accessSync(path, constants.X_OK);
    return path;
  } catch (cause) {
    throw new SluiceError(
      'InvalidInput',
      `--${name} (or SLUICE_${name.toUpperCase()}): ${path} is not an executable file: ${messageOf(cause)}; give the path of the program, such as /usr/local/bin/${name}`,
      { cause },
    );
  }
}

/** Porch's option of this name ends with a slash. */
function registryOf(prefix: string): string {
  const registry = prefix.replace(/\/+$/, '');
  if (/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d+)?(\/[a-z0-9]([a-z0-9._-]*[a-z0-9])?)*$/.test(registry)) return registry;
  const example = 'such as registry.example.com/functions';
  throw new SluiceError('InvalidInput', `--default-image-prefix ${JSON.stringify(prefix)} is no registry, ${example}`);
}

/** Bytes; undefined without a limit. Throws InvalidInput. */
export function diskBudgetOf({ diskBudget }: WorkOptions): number | undefined {
  if (diskBudget === undefined) return undefined;
  if (!/^[1-9]\d{0,8}$/.test(diskBudget))
    throw new SluiceError(
      'InvalidInput',
      `--disk-budget ${JSON.stringify(diskBudget)} must be a number of MiB, such as 20000`,
    );
  return Number(diskBudget) * 1024 * 1024;
}
