import { resolve } from 'node:path';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import type { Clock } from '../../foundation/time/clock.ts';
import { cacheCredentials } from './cached-credentials.ts';
import type { Credentials, Proof } from './cluster-access.ts';
import type { UserEntry } from './kubeconfig-file.ts';

/**
 * Milliseconds for which a proof is used before the library is called again. The library runs the plugin only when a
 * token has expired, but does not expose the time of expiry.
 */
const LIFETIME_MS = 10_000;
/** Milliseconds that a plugin may take; some wait for a user at a browser. */
const PLUGIN_TIMEOUT_MS = 120_000;
const MAX_MESSAGE_CHARACTERS = 1000;
const NO_CREDENTIAL = 'it printed no ExecCredential with a token or a certificate as JSON';

export interface KubeconfigUser {
  readonly name: string;
  /** Undefined for a user without credentials. */
  readonly user: UserEntry | undefined;
  /** The folder that relative paths start at. */
  readonly folder: string;
  readonly source: string;
  readonly clock: Clock;
}

/** The options that the library fills in. */
interface FilledOptions {
  headers?: Readonly<Record<string, string>>;
  cert?: string | Buffer;
  key?: string | Buffer;
}

export type PluginUser = KubeconfigUser & { readonly exec: NonNullable<UserEntry['exec']> };

/**
 * Credentials from a plugin of the kubeconfig (`exec`). The library runs the plugin and caches the result until
 * that expires. Loading the library takes half a second, so it is loaded for these users only. The library ignores
 * `interactiveMode`, so each plugin is informed that there is no terminal.
 */
export function pluginCredentials(options: PluginUser): Credentials {
  const { source, clock } = options;
  let fillOptions: Promise<(into: FilledOptions) => Promise<void>> | undefined;
  const runPlugin = async (): Promise<Proof> => {
    fillOptions ??= loadPlugin(options);
    const filled: FilledOptions = {};
    await (await fillOptions)(filled);
    const { headers = {}, cert, key } = filled;
    // Without this the request would be made as an anonymous user.
    if (cert === undefined && Object.keys(headers).length === 0) throw new Error(NO_CREDENTIAL);
    return {
      headers: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value])),
      ...(cert === undefined || key === undefined ? {} : { certificate: { cert: String(cert), key: String(key) } }),
    };
  };
  const credentials = cacheCredentials(clock, LIFETIME_MS, async () => {
    const { promise: timeout, reject } = Promise.withResolvers<never>();
    const cancel = clock.schedule(PLUGIN_TIMEOUT_MS, () =>
      reject(new Error(`no result within ${PLUGIN_TIMEOUT_MS / 1000} s`)),
    );
    try {
      return await Promise.race([runPlugin(), timeout]);
    } catch (error) {
      const why = explain(error).trim().slice(0, MAX_MESSAGE_CHARACTERS) || 'it failed without a message';
      throw new SluiceError('Unauthenticated', `${source}: the login plugin of user "${options.name}" failed: ${why}`);
    } finally {
      cancel();
    }
  });
  return {
    ...credentials,
    forget() {
      // The library caches the result of the plugin, too.
      fillOptions = undefined;
      credentials.forget();
    },
  };
}

/** The library passes on errors of JSON.parse, which quote the credential, and errors about missing fields of it. */
function explain(error: unknown): string {
  return error instanceof SyntaxError || error instanceof TypeError ? NO_CREDENTIAL : messageOf(error);
}

async function loadPlugin(options: PluginUser): Promise<(into: FilledOptions) => Promise<void>> {
  const { KubeConfig } = await import('@kubernetes/client-node');
  const { name, exec, folder } = options;
  const config = new KubeConfig();
  config.loadFromOptions({
    // The address is not used: only the credentials of the user are requested.
    clusters: [{ name: 'cluster', server: 'https://localhost', skipTLSVerify: false }],
    users: [{ name, exec: withEnvironment(exec, folder) }],
    contexts: [{ name: 'context', cluster: 'cluster', user: name }],
    currentContext: 'context',
  });
  return (into) => config.applyToHTTPSOptions(into);
}

/** Resolves the path of a program from the folder of the kubeconfig, and adds the variable with the request to the plugin. */
function withEnvironment(exec: PluginUser['exec'], folder: string): unknown {
  const { command, apiVersion, env } = exec;
  const request = { apiVersion, kind: 'ExecCredential', spec: { interactive: false } };
  return {
    ...exec,
    command: typeof command === 'string' && command.includes('/') ? resolve(folder, command) : command,
    env: [...(Array.isArray(env) ? env : []), { name: 'KUBERNETES_EXEC_INFO', value: JSON.stringify(request) }],
  };
}
