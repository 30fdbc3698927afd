import { SluiceError } from '../../foundation/sluice-error.ts';
import type { UpstreamAddress } from '../../package/upstream/revision-source.ts';

export interface UpstreamOptions {
  readonly directory?: string;
  readonly ref?: string;
  readonly secretRef?: string;
}

/**
 * Parses an argument as a Git address: `<address>.git[/directory][@ref]`, or an address alone with the other parts as options.
 * Undefined for the name of a package revision, which has no slash. Throws InvalidInput if argument and options contradict each
 * other.
 */
export function upstreamAddress(argument: string, options: UpstreamOptions): UpstreamAddress | undefined {
  if (!argument.includes('/')) return undefined;
  const parts = /^(.*?\.git)(?:\/([^@]*))?(?:@(.+))?$/s.exec(argument);
  const [, repo = argument, directory, ref] = parts ?? [];
  return {
    repo,
    directory: one('directory', options.directory, directory) ?? '/',
    ref: one('ref', options.ref, ref) ?? 'main',
    ...(options.secretRef === undefined ? {} : { secretRef: { name: options.secretRef } }),
  };
}

function one(name: string, option: string | undefined, written: string | undefined): string | undefined {
  const given = written === '' ? undefined : written;
  if (option !== undefined && given !== undefined && option !== given) {
    throw new SluiceError(
      'InvalidInput',
      `${name} ${option} specified by --${name} contradicts ${name} ${given} specified by the source`,
    );
  }
  return option ?? given;
}
