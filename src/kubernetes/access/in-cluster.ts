import { readFile } from 'node:fs/promises';
import { isIPv6 } from 'node:net';
import { join } from 'node:path';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import type { ClusterAccess } from './cluster-access.ts';
import { fileCredentials } from './credentials.ts';

/** The folder in which Kubernetes provides the credentials of a pod. */
const SERVICE_ACCOUNT_FOLDER = '/var/run/secrets/kubernetes.io/serviceaccount';

/** The access of a pod to its cluster; undefined outside of a pod. Throws InvalidInput if its service account cannot be read. */
export async function inClusterAccess(
  environment: Readonly<Record<string, string | undefined>>,
  clock: Clock,
  folder = SERVICE_ACCOUNT_FOLDER,
): Promise<ClusterAccess | undefined> {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = environment;
  if (!host || !port) return undefined;
  const source = 'the service account of this pod';
  const tokenFile = join(folder, 'token');
  const caFile = join(folder, 'ca.crt');
  try {
    const ca = await readFile(caFile, 'utf8');
    const namespace = (await readFile(join(folder, 'namespace'), 'utf8')).trim();
    return {
      server: `https://${isIPv6(host) ? `[${host}]` : host}:${port}`,
      source,
      user: 'service account',
      namespace,
      tls: { ca, insecure: false },
      credentials: fileCredentials({ tokenFile, caFile }, source, clock),
    };
  } catch (error) {
    throw new SluiceError(
      'InvalidInput',
      `the service account of this pod cannot be read (${messageOf(error)}); set automountServiceAccountToken, or name a kubeconfig`,
      { cause: error },
    );
  }
}
