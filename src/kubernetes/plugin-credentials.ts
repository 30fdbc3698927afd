import { resolve } from 'node:path';
import type { Clock } from '../foundation/clock.ts';
import { messageOf, SluiceError } from '../foundation/sluice-error.ts';
import { cached } from './cached-credentials.ts';
import type { Credentials, Proof } from './cluster-access.ts';
import type { UserEntry } from './kubeconfig-file.ts';

/**
 * How long a proof is used before the plugin is asked again, in milliseconds. The library asks the plugin's program only
 * when a token has expired, but does not tell us when that is.
 */
const LIFETIME = 10_000;
/** How long a plugin may take, in milliseconds; some wait for a person at a browser. */
const PLUGIN_LIMIT = 120_000;
const LONGEST_MESSAGE = 1000;

export interface KubeconfigUser {
  readonly name: string;
  /** Undefined: a user who shows nothing. */
  readonly user: UserEntry | undefined;
  /** Where relative paths begin. */
  readonly folder: string;
  readonly source: string;
  readonly clock: Clock;
}

/** What the library fills in. */
interface FilledOptions {
  headers?: Readonly<Record<string, string>>;
  cert?: string | Buffer;
  key?: string | Buffer;
}

/**
 * Credentials that a plugin of the kubeconfig makes (`exec`, `auth-provider`). The library that knows the plugins is
 * large, so it is loaded for these users only.
 */
export function pluginCredentials(options: KubeconfigUser & { readonly user: UserEntry }): Credentials {
  const { source, clock } = options;
  let filler: Promise<(into: FilledOptions) => Promise<void>> | undefined;
  const make = async (): Promise<Proof> => {
    filler ??= loadPlugin(options);
    const filled: FilledOptions = {};
    await (await filler)(filled);
    const { headers = {}, cert, key } = filled;
    return {
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      ...(cert === undefined || key === undefined ? {} : { certificate: { cert: String(cert), key: String(key) } }),
    };
  };
  const credentials = cached(clock, LIFETIME, async () => {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const cancel = clock.schedule(PLUGIN_LIMIT, () => reject(new Error(`no answer within ${PLUGIN_LIMIT / 1000} s`)));
    try {
      return await Promise.race([make(), late]);
    } catch (error) {
      const why = messageOf(error).trim().slice(0, LONGEST_MESSAGE) || 'it failed without a word';
      throw new SluiceError('Unauthenticated', `${source}: the login plugin of user "${options.name}" failed: ${why}`);
    } finally {
      cancel();
    }
  });
  return {
    ...credentials,
    forget() {
      // The library keeps what the plugin gave it, too.
      filler = undefined;
      credentials.forget();
    },
  };
}

async function loadPlugin(
  options: KubeconfigUser & { readonly user: UserEntry },
): Promise<(into: FilledOptions) => Promise<void>> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const { name, user, folder } = options;
  const config = new KubeConfig();
  config.loadFromOptions({
    // The address is not used: only what the user shows is asked for.
    clusters: [{ name: 'cluster', server: 'https://localhost', skipTLSVerify: false }],
    users: [{ name, exec: withEnvironment(user.exec, folder), authProvider: user['auth-provider'] ?? undefined }],
    contexts: [{ name: 'context', cluster: 'cluster', user: name }],
    currentContext: 'context',
  });
  return (into) => config.applyToHTTPSOptions(into);
}

/** A program beside the kubeconfig is found from there, and every program is told what it is asked for. */
function withEnvironment(exec: UserEntry['exec'], folder: string): unknown {
  if (exec === undefined || exec === null) return undefined;
  const { command, apiVersion, env } = exec;
  const request = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
  return {
    ...exec,
    command: typeof command === 'string' && command.includes('/') ? resolve(folder, command) : command,
    env: [...(Array.isArray(env) ? env : []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(request) }],
  };
}
