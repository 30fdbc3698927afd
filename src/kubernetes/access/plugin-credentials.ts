import { resolve } from 'node:path';
import type { Clock } from '../../foundation/clock.ts';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
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
const NO_CREDENTIAL = 'it printed no ExecCredential with a token or a certificate as JSON';

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

export type PluginUser = KubeconfigUser & { readonly exec: NonNullable<UserEntry['exec']> };

/**
 * Credentials that a plugin of the kubeconfig makes (`exec`). The library runs it and keeps what it returns until that expires; it takes
 * half a second to load, so it is loaded for these users only. It does not interpret `interactiveMode`: a plugin is always told that
 * no terminal is there.
 */
export function pluginCredentials(options: PluginUser): Credentials {
  const { source, clock } = options;
  let filler: Promise<(into: FilledOptions) => Promise<void>> | undefined;
  const make = async (): Promise<Proof> => {
    filler ??= loadPlugin(options);
    const filled: FilledOptions = {};
    await (await filler)(filled);
    const { headers = {}, cert, key } = filled;
    // Without this the request would be made as an anonymous user.
    if (cert === undefined && Object.keys(headers).length === 0) throw new Error(NO_CREDENTIAL);
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
      const why = explain(error).trim().slice(0, LONGEST_MESSAGE) || 'it failed without a message';
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

/** The library lets the errors of JSON.parse through, which quote the credential, and those of what it did not find in it. */
function explain(error: unknown): string {
  return error instanceof SyntaxError || error instanceof TypeError ? NO_CREDENTIAL : messageOf(error);
}

async function loadPlugin(options: PluginUser): Promise<(into: FilledOptions) => Promise<void>> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const { name, exec, folder } = options;
  const config = new KubeConfig();
  config.loadFromOptions({
    // The address is not used: only what the user shows is asked for.
    clusters: [{ name: 'cluster', server: 'https://localhost', skipTLSVerify: false }],
    users: [{ name, exec: withEnvironment(exec, folder) }],
    contexts: [{ name: 'context', cluster: 'cluster', user: name }],
    currentContext: 'context',
  });
  return (into) => config.applyToHTTPSOptions(into);
}

/** A program beside the kubeconfig is found from there, and every program is told what it is asked for. */
function withEnvironment(exec: PluginUser['exec'], folder: string): unknown {
  const { command, apiVersion, env } = exec;
  const request = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
  return {
    ...exec,
    command: typeof command === 'string' && command.includes('/') ? resolve(folder, command) : command,
    env: [...(Array.isArray(env) ? env : []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(request) }],
  };
}
