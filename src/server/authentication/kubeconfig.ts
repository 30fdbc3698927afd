import { dump, load } from 'js-yaml';
import { z } from 'zod';
import { readPrivateFile, writePrivateFile } from '../certificates/private-file.ts';

export interface KubeconfigEntry {
  readonly path: string;
  /** `https://127.0.0.1:6443`. */
  readonly server: string;
  /** The certificate of the authority, PEM. */
  readonly caData: string;
  readonly token: string;
  readonly user: string;
  /** The name of the context and of its cluster; default `sluice`. */
  readonly context?: string;
}

/** The name of context and cluster in the kubeconfig that a server writes. */
export const ADMIN_CONTEXT = 'sluice';
const MAX_KUBECONFIG_BYTES = 1024 * 1024;

const content = z.looseObject({}).optional();

const kubeconfigSchema = z.looseObject({
  clusters: z.array(z.looseObject({ name: z.string(), cluster: content })).nullish(),
  users: z.array(z.looseObject({ name: z.string(), user: content })).nullish(),
  contexts: z.array(z.looseObject({ name: z.string(), context: content })).nullish(),
  'current-context': z.string().nullish(),
});

type Kubeconfig = z.infer<typeof kubeconfigSchema>;

/**
 * Writes the address and the credentials of the server into a kubeconfig, with mode 0600, in one step. What users added (other clusters,
 * the namespace of the context, another current context) stays; a file that is no kubeconfig is replaced.
 * Unavailable if it cannot be written.
 */
export async function writeKubeconfig(entry: KubeconfigEntry): Promise<void> {
  const { path, server, caData, token, user, context = ADMIN_CONTEXT } = entry;
  const old: Kubeconfig = (await readKubeconfig(path)) ?? {};
  const authority = Buffer.from(caData).toString('base64');
  const kept = old.contexts?.find(({ name }) => name === context)?.context;
  const userName = `${context}-${user}`;
  const next = {
    ...old,
    apiVersion: 'v1',
    kind: 'Config',
    clusters: withEntry(old.clusters, { name: context, cluster: { server, 'certificate-authority-data': authority } }),
    users: withEntry(old.users, { name: userName, user: { token } }),
    contexts: withEntry(old.contexts, { name: context, context: { cluster: context, user: userName, ...kept } }),
    'current-context': old['current-context'] || context,
  };
  await writePrivateFile(path, dump(next, { lineWidth: -1 }));
}

/** The token of a user in the kubeconfig; undefined if there is none. Unavailable if the file cannot be read. */
export async function tokenInKubeconfig(
  path: string,
  user: string,
  context = ADMIN_CONTEXT,
): Promise<string | undefined> {
  const config = await readKubeconfig(path);
  const found = config?.users?.find(({ name }) => name === `${context}-${user}`)?.user as
    | { token?: unknown }
    | undefined;
  return typeof found?.token === 'string' ? found.token : undefined;
}

async function readKubeconfig(path: string): Promise<Kubeconfig | undefined> {
  const text = await readPrivateFile(path, MAX_KUBECONFIG_BYTES);
  if (text === undefined) return undefined;
  try {
    const parsed = kubeconfigSchema.safeParse(load(text));
    return parsed.success ? parsed.data : undefined;
  } catch {
    return undefined;
  }
}

function withEntry<Entry extends { name: string }>(old: Entry[] | null | undefined, entry: Entry): Entry[] {
  return [...(old ?? []).filter(({ name }) => name !== entry.name), entry];
}
