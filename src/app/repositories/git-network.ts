import { readFileSync } from 'node:fs';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { certificatesOf } from '../../git/network/certificate-authorities.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import { HostRules } from '../../git/network/host-rules.ts';

export interface GitNetworkOptions {
  /** `HOST` or `HOST:PORT`. */
  readonly allowGitHost?: readonly string[];
  /** A file of certificates in PEM. */
  readonly gitCa?: string;
}

/**
 * Reads the operator's settings for Git hosts: from options of `sluice up`, and for every command from SLUICE_ALLOW_GIT_HOST
 * (comma-separated) and SLUICE_GIT_CA. Throws InvalidInput for a host or a file that cannot be used.
 */
export function gitNetworkOf(options: GitNetworkOptions, environment: NodeJS.ProcessEnv): GitNetwork {
  const { allowGitHost = [], gitCa = environment.SLUICE_GIT_CA || undefined } = options;
  const byEnvironment = (environment.SLUICE_ALLOW_GIT_HOST ?? '').split(',').map((host) => host.trim());
  const hosts = new HostRules([...allowGitHost, ...byEnvironment.filter((host) => host !== '')]);
  return gitCa === undefined ? { hosts } : { hosts, authorities: readAuthorities(gitCa) };
}

function readAuthorities(path: string): string {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    const message = `cannot read the authorities of Git hosts (--git-ca): ${messageOf(error)}; name a file with certificates in PEM`;
    throw new SluiceError('InvalidInput', message, { cause: error });
  }
  if (certificatesOf(text) === undefined)
    throw new SluiceError(
      'InvalidInput',
      `the authorities of Git hosts (--git-ca ${path}) cannot be used: the file must contain certificates in PEM, at most 1 MiB`,
    );
  return text;
}
