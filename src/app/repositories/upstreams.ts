import { join } from 'node:path';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { GitNetwork } from '../../git/network/git-network.ts';
import { secretCredentials } from '../../package/upstream/credentials.ts';
import { UpstreamMirrors } from '../../package/upstream/upstream-mirrors.ts';
import type { UpstreamReader } from '../../package/upstream/upstream-reader.ts';
import type { Client } from '../../resource/client/client.ts';
import type { RequestContext } from '../../resource/object/request-context.ts';
import type { DataFolder } from '../data/data-folder.ts';

/**
 * Reads packages of repositories that are not registered. A caller on the data folder itself may name any Secret and any repository
 * on this machine, since it can read both. A network client may only name Secrets that it may read, since they are sent to an
 * address of its choice, and of local repositories only those on hosts that the operator permits.
 */
export function upstreamAddresses(
  folder: DataFolder,
  clock: Clock,
  network: GitNetwork,
  client: () => Client,
): UpstreamReader['address'] {
  const mirrors = new UpstreamMirrors({
    folder: join(folder.path, 'cache', 'upstreams'),
    clock,
    git: { network },
    allowLocal: isAtFolder,
    credentials: async (secret, context) => {
      const allowed = isAtFolder(context) || (await context.mayReadSecret?.(secret)) === true;
      if (allowed) return secretCredentials(client(), secret, 'which the upstream refers to,');
      throw new SluiceError(
        'Refused',
        `the Secret ${secret.namespace}/${secret.name} is sent to the address of the upstream, so only who may read it may name it; register the repository with it, and name a package revision`,
      );
    },
  });
  return (address, namespace, context) => mirrors.read(address, namespace, context);
}

function isAtFolder({ face }: RequestContext): boolean {
  return face === 'cli';
}
