import { readFile, stat } from 'node:fs/promises';
import { loadAll, YAMLException } from 'js-yaml';
import { z } from 'zod';
import { messageOf, SluiceError } from '../../foundation/sluice-error.ts';
import { causesOf } from '../../resource/object/invalid-object.ts';

const MAX_FILE_BYTES = 4 * 1024 * 1024;

const EXPECTED = 'name the kubeconfig of a cluster, or the file "kubeconfig" in the data folder of "sluice up"';

/** Kubeconfigs written by Go programs have empty strings and null for fields that are not set. */
const text = z
  .string()
  .nullish()
  .transform((value) => value || undefined);
const flag = z
  .boolean()
  .nullish()
  .transform((value) => value ?? false);
const plugin = z.record(z.string(), z.unknown()).nullish();

const cluster = z.object({
  server: z.string().min(1),
  'certificate-authority': text,
  'certificate-authority-data': text,
  'insecure-skip-tls-verify': flag,
  'tls-server-name': text,
  'proxy-url': text,
});

const user = z.object({
  'client-certificate': text,
  'client-certificate-data': text,
  'client-key': text,
  'client-key-data': text,
  token: text,
  tokenFile: text,
  username: text,
  password: text,
  as: text,
  'as-uid': text,
  'as-groups': z.array(z.string()).nullish(),
  'as-user-extra': z.record(z.string(), z.array(z.string())).nullish(),
  exec: plugin,
  'auth-provider': plugin,
});

const context = z.object({ cluster: z.string(), user: z.string(), namespace: text });

const named = <Key extends string, Value extends z.ZodType>(key: Key, value: Value) =>
  z
    .array(z.object({ name: z.string(), [key]: value } as { name: z.ZodString } & Record<Key, Value>))
    .nullish()
    .transform((list) => list ?? []);

const schema = z.object({
  'current-context': text,
  clusters: named('cluster', cluster),
  contexts: named('context', context),
  users: named('user', user),
});

export type KubeconfigFile = z.output<typeof schema>;
export type ClusterEntry = z.output<typeof cluster>;
export type UserEntry = z.output<typeof user>;
export type ContextEntry = z.output<typeof context>;

/**
 * Reads one kubeconfig; undefined if there is no such file. Unknown fields are ignored. Throws
 * InvalidInput that names the file and the line or the field, and never contains a value, which may be a secret.
 */
export async function readKubeconfigFile(path: string): Promise<KubeconfigFile | undefined> {
  const content = await readBounded(path);
  return content === undefined ? undefined : parseKubeconfig(path, content);
}

/** Reads the text of a kubeconfig; `source` names it in messages. Errors as of `readKubeconfigFile`. */
export function parseKubeconfig(source: string, content: string): KubeconfigFile {
  const value = parseYaml(source, content);
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [cause] = causesOf(result.error.issues, value, true);
  const problem = cause?.field ? `${cause.field}: ${cause.message}` : 'it is not a mapping of fields';
  throw new SluiceError('InvalidInput', `${source} is not a kubeconfig: ${problem}; ${EXPECTED}`);
}

async function readBounded(path: string): Promise<string | undefined> {
  try {
    const stats = await stat(path);
    if (!stats.isFile()) throw new SluiceError('InvalidInput', `${path} is not a file; ${EXPECTED}`);
    if (stats.size > MAX_FILE_BYTES)
      throw new SluiceError('LimitExceeded', `${path} has ${stats.size} bytes, at most ${MAX_FILE_BYTES} are read`);
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw new SluiceError('InvalidInput', `${path} cannot be read: ${messageOf(error)}`, { cause: error });
  }
}

function parseYaml(path: string, content: string): unknown {
  try {
    const [document, second] = loadAll(content, { maxAliases: 100 });
    if (second !== undefined)
      throw new SluiceError('InvalidInput', `${path} has several documents; a kubeconfig is one`);
    const { kind = 'Config' } = (document ?? {}) as { kind?: unknown };
    if (kind !== 'Config')
      throw new SluiceError('InvalidInput', `${path} is not a kubeconfig: its kind is not Config; ${EXPECTED}`);
    return document ?? {};
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    // The message and the cause of the library quote the text around the place, which may contain tokens.
    if (!(error instanceof YAMLException))
      throw new SluiceError('InvalidInput', `${path} is not a kubeconfig: it is not valid YAML; ${EXPECTED}`);
    const line = error.mark === undefined ? '' : `:${error.mark.line + 1}`;
    throw new SluiceError('InvalidInput', `${path}${line}: ${error.reason}; ${EXPECTED}`);
  }
}
