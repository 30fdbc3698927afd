import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { delimiter, dirname, isAbsolute, join, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { type Clock, systemClock } from '../../foundation/time/clock.ts';
import type { Actor } from '../../resource/object/request-context.ts';
import type { ClusterAccess, ClusterTls } from './cluster-access.ts';
import { kubeconfigCredentials } from './credentials.ts';
import { inClusterAccess } from './in-cluster.ts';
import {
  type ClusterEntry,
  type ContextEntry,
  type KubeconfigFile,
  parseKubeconfig,
  readKubeconfigFile,
  type UserEntry,
} from './kubeconfig-file.ts';
import { serverAddress } from './server-address.ts';

export interface FindAccessOptions {
  /** The file of `--kubeconfig`; then no other file is read. */
  readonly kubeconfig?: string | undefined;
  /** The context to use instead of the current one. */
  readonly context?: string | undefined;
  /** Default: the environment and the home folder of the process. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly home?: string;
  readonly clock?: Clock;
}

/** An entry of a merged kubeconfig, and its file: relative paths in it start at that file's folder. */
interface Entry<T> {
  readonly value: T;
  readonly file: string;
}

interface MergedKubeconfig {
  readonly files: readonly string[];
  readonly currentContext: string | undefined;
  readonly clusters: ReadonlyMap<string, Entry<ClusterEntry>>;
  readonly contexts: ReadonlyMap<string, Entry<ContextEntry>>;
  readonly users: ReadonlyMap<string, Entry<UserEntry>>;
}

/**
 * Finds the server and the user as kubectl does: from the named file, else the files of `KUBECONFIG`, else `~/.kube/config`, else the
 * service account of the pod. Of several files the first that sets something wins; those of `KUBECONFIG` that do not exist are
 * ignored. Throws InvalidInput that names the file, the context and the next step, and never contains a secret.
 *
 * The kubeconfig is read here and not by `@kubernetes/client-node`, whose loader (2.0.1) differs from kubectl in important points: it
 * ignores `tokenFile`, `as-groups` and `as-uid`, the authorities of a user-less context and a current-context that does not exist,
 * prefers files to data, the last current-context of `KUBECONFIG` to the first, and refuses files of it that are missing or name the
 * same entry; its errors quote lines that can contain tokens; and it takes half a second to load. It does run login plugins, see
 * `plugin-credentials.ts`.
 */
export async function findClusterAccess(options: FindAccessOptions = {}): Promise<ClusterAccess> {
  const { kubeconfig, environment = process.env, home = homedir(), clock = systemClock } = options;
  const listed = (environment.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '');
  const paths =
    kubeconfig === undefined ? (listed.length > 0 ? listed : [join(home, '.kube', 'config')]) : [kubeconfig];
  const merged = await readKubeconfigs(paths.map((path) => resolve(path)));
  if (merged.files.length > 0) return select(merged, options.context, clock);
  const inCluster = kubeconfig === undefined ? await inClusterAccess(environment, clock) : undefined;
  if (inCluster !== undefined) return inCluster;
  throw new SluiceError(
    'InvalidInput',
    `there is no kubeconfig at ${paths.join(', ')}: name a file with --kubeconfig or KUBECONFIG, or use that of a server on this machine ("sluice up")`,
  );
}

/** Fields that run programs, read files of this machine, or weaken the connection. */
const UNSAFE_CLUSTER = ['certificate-authority', 'insecure-skip-tls-verify', 'proxy-url'] as const;
const UNSAFE_USER = ['client-certificate', 'client-key', 'tokenFile', 'exec', 'auth-provider'] as const;

/**
 * Reads a kubeconfig that a user of the API wrote, from a Secret: it must contain everything itself. Programs, files, proxies and
 * connections without verification are refused, in every entry. `source` names it in messages; errors as of `findClusterAccess`.
 */
export async function accessFromText(text: string, source: string, clock: Clock): Promise<ClusterAccess> {
  const config = parseKubeconfig(source, text);
  const refuse = (kind: string, name: string, field: string) =>
    new SluiceError(
      'InvalidInput',
      `${source}: ${field} of ${kind} "${name}" is not permitted; use a kubeconfig with certificate-authority-data, and a token or client-certificate-data and client-key-data`,
    );
  for (const { name, cluster } of config.clusters)
    for (const field of UNSAFE_CLUSTER) if (cluster[field]) throw refuse('cluster', name, field);
  for (const { name, user } of config.users)
    for (const field of UNSAFE_USER) if (user[field]) throw refuse('user', name, field);
  return select(merge(new Map([[source, config]])), undefined, clock);
}

async function readKubeconfigs(paths: readonly string[]): Promise<MergedKubeconfig> {
  const files = new Map<string, KubeconfigFile>();
  for (const path of paths) {
    const file = files.has(path) ? undefined : await readKubeconfigFile(path);
    if (file !== undefined) files.set(path, file);
  }
  return merge(files);
}

/** Merges the contents of files: the first that sets something wins. */
function merge(contents: ReadonlyMap<string, KubeconfigFile>): MergedKubeconfig {
  const clusters = new Map<string, Entry<ClusterEntry>>();
  const contexts = new Map<string, Entry<ContextEntry>>();
  const users = new Map<string, Entry<UserEntry>>();
  let currentContext: string | undefined;
  for (const [path, file] of contents) {
    currentContext ??= file['current-context'];
    addEntries(clusters, path, 'cluster', file);
    addEntries(contexts, path, 'context', file);
    addEntries(users, path, 'user', file);
  }
  return { files: [...contents.keys()], currentContext, clusters, contexts, users };
}

function addEntries<Key extends 'cluster' | 'context' | 'user', T>(
  into: Map<string, Entry<T>>,
  file: string,
  key: Key,
  content: KubeconfigFile,
): void {
  const seen = new Set<string>();
  for (const item of content[`${key}s`] as readonly ({ readonly name: string } & Record<Key, T>)[]) {
    if (seen.has(item.name))
      throw new SluiceError('InvalidInput', `${file}: ${key} "${item.name}" is duplicated; remove one`);
    seen.add(item.name);
    if (!into.has(item.name)) into.set(item.name, { value: item[key], file });
  }
}

async function select(config: MergedKubeconfig, wanted: string | undefined, clock: Clock): Promise<ClusterAccess> {
  const where = config.files.join(', ');
  const name = wanted ?? config.currentContext;
  const known = [...config.contexts.keys()].map((context) => `"${context}"`).join(', ') || 'none';
  if (name === undefined)
    throw new SluiceError(
      'InvalidInput',
      `${where}: no current-context; choose one with --context (there are: ${known})`,
    );
  const context = config.contexts.get(name);
  if (context === undefined)
    throw new SluiceError('InvalidInput', `${where}: there is no context "${name}"; choose one of: ${known}`);
  const fail = (problem: string, cause?: unknown) =>
    new SluiceError('InvalidInput', `${context.file}: context "${name}": ${problem}`, { cause });
  const cluster = config.clusters.get(context.value.cluster);
  if (cluster === undefined) throw fail(`there is no cluster "${context.value.cluster}"`);
  // A context without a user is allowed: some servers permit anonymous reads.
  const user = context.value.user === '' ? undefined : config.users.get(context.value.user);
  if (user === undefined && context.value.user !== '') throw fail(`there is no user "${context.value.user}"`);
  if (user?.value['auth-provider'])
    throw fail(
      `auth-provider of user "${context.value.user}" is not supported; use a plugin of the same service under exec`,
    );
  const proxy = cluster.value['proxy-url'];
  if (proxy !== undefined && !(/^https?:\/\//i.test(proxy) && URL.canParse(proxy)))
    throw fail('proxy-url must be an address that begins with http:// or https://; other proxies are not supported');
  const source = `context "${name}" of ${context.file}`;
  const impersonate = user === undefined ? undefined : impersonated(user.value, fail);
  return {
    server: serverAddress(cluster.value.server, fail),
    source,
    user: context.value.user,
    namespace: context.value.namespace ?? 'default',
    tls: await tlsOf(cluster, user, fail),
    ...(proxy === undefined ? {} : { proxy }),
    credentials: kubeconfigCredentials({
      name: context.value.user,
      user: user?.value,
      folder: dirname(user?.file ?? context.file),
      source,
      clock,
    }),
    ...(impersonate === undefined ? {} : { impersonate }),
  };
}

type Fail = (problem: string, cause?: unknown) => SluiceError;

function impersonated(user: UserEntry, fail: Fail): Actor | undefined {
  const { as: name, 'as-uid': uid, 'as-groups': groups, 'as-user-extra': extra } = user;
  // Ignoring these silently would mean acting with other rights than requested.
  if (uid !== undefined || (extra !== undefined && extra !== null && Object.keys(extra).length > 0))
    throw fail('as-uid and as-user-extra are not supported; remove them from the user');
  if (name === undefined) {
    if (groups !== undefined && groups !== null && groups.length > 0) throw fail('as-groups needs "as"');
    return undefined;
  }
  return { name, groups: groups ?? [] };
}

async function tlsOf(
  cluster: Entry<ClusterEntry>,
  user: Entry<UserEntry> | undefined,
  fail: Fail,
): Promise<ClusterTls> {
  const insecure = cluster.value['insecure-skip-tls-verify'];
  const names = cluster.value['certificate-authority-data'] ?? cluster.value['certificate-authority'];
  if (insecure && names !== undefined)
    throw fail('certificate-authority and insecure-skip-tls-verify exclude each other; remove one');
  const ca = await pem(cluster, 'certificate-authority', fail);
  const cert = user === undefined ? undefined : await pem(user, 'client-certificate', fail);
  const key = user === undefined ? undefined : await pem(user, 'client-key', fail);
  if ((cert === undefined) !== (key === undefined))
    throw fail(`${cert === undefined ? 'client-key needs client-certificate' : 'client-certificate needs client-key'}`);
  const serverName = cluster.value['tls-server-name'];
  const tls = {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined || key === undefined ? {} : { cert, key }),
  };
  try {
    // An authority that cannot be parsed would be ignored here, and then no server be trusted.
    if (ca !== undefined) new X509Certificate(ca);
    createSecureContext(tls);
  } catch (error) {
    throw fail(`the certificates cannot be used: ${messageOf(error)}`);
  }
  return { ...tls, insecure, ...(serverName === undefined ? {} : { serverName }) };
}

/** The content of a PEM from the kubeconfig in base64, or from a file beside it; the former has priority. */
async function pem<Name extends string>(
  entry: Entry<Readonly<Partial<Record<Name | `${Name}-data`, string | undefined>>>>,
  name: Name,
  fail: Fail,
): Promise<string | undefined> {
  const data = entry.value[`${name}-data`];
  const path = entry.value[name];
  let text: string;
  if (data !== undefined) text = Buffer.from(data, 'base64').toString('latin1');
  else if (path === undefined) return undefined;
  else {
    const absolute = isAbsolute(path) ? path : join(dirname(entry.file), path);
    try {
      text = await readFile(absolute, 'latin1');
    } catch (error) {
      throw fail(`${name} cannot be read: ${messageOf(error)}`, error);
    }
  }
  if (!text.includes('-----BEGIN '))
    throw fail(`${data === undefined ? name : `${name}-data`} is invalid PEM; create the kubeconfig again`);
  return text;
}
