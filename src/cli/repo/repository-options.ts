import { SluiceError } from '../../foundation/sluice-error.ts';
import { GATES_ANNOTATION } from '../../package/store/policies/effective-policy.ts';
import { readSecretFile } from './put-secret.ts';

/** Common options of `repo reg` and `repo edit`. */
export interface RepositoryOptions {
  readonly description?: string;
  readonly deployment?: boolean;
  readonly label?: readonly string[];
  readonly gates?: string;
  readonly repoBasicUsername?: string;
  readonly repoBasicPassword?: string;
  readonly repoBasicPasswordFile?: string;
  readonly repoSshKeyFile?: string;
  readonly knownHostsFile?: string;
  readonly caFile?: string;
  readonly syncSchedule?: string;
  readonly webhookSecretFile?: string;
}

/** Secrets with the credentials that these commands make are named like this. */
export const AUTH_SECRET_SUFFIX = '-auth';

/** The annotation for `--gates`; empty without. */
export function gatesAnnotation(mode: string | undefined): Record<string, string> {
  if (mode === undefined) return {};
  if (['enforce', 'warn', 'off'].includes(mode)) return { [GATES_ANNOTATION]: mode };
  throw new SluiceError('InvalidInput', `--gates must be enforce, warn or off, not ${JSON.stringify(mode)}`);
}

/** Parses labels by their key. With `removals`, `<key>-` means null, as in kubectl. */
export function labelsOf(pairs: readonly string[], removals = false): Record<string, string | null> {
  return Object.fromEntries(
    pairs.map((pair) => {
      if (removals && /^[^=]+-$/.test(pair)) return [pair.slice(0, -1), null];
      const equals = pair.indexOf('=');
      if (equals < 1) throw new SluiceError('InvalidInput', `--label ${JSON.stringify(pair)} must be <key>=<value>`);
      return [pair.slice(0, equals), pair.slice(equals + 1)];
    }),
  );
}

/** Type and content of the Secret with the credentials; undefined if none are given. */
export async function credentialsGiven(
  options: RepositoryOptions,
): Promise<{ readonly type: string; readonly stringData: Record<string, string> } | undefined> {
  const { repoBasicUsername, repoBasicPasswordFile, repoSshKeyFile, knownHostsFile, caFile } = options;
  const password = (await fileText('the password', repoBasicPasswordFile)) ?? options.repoBasicPassword;
  if (password === undefined && repoBasicUsername !== undefined)
    throw new SluiceError('InvalidInput', '--repo-basic-username needs a password: give --repo-basic-password-file');
  if ((repoSshKeyFile === undefined) !== (knownHostsFile === undefined))
    throw new SluiceError(
      'InvalidInput',
      '--repo-ssh-key-file and --known-hosts-file go together: print the keys of the host with "ssh-keyscan <host>", and compare their fingerprints with what it publishes',
    );
  const values: Record<string, string | undefined> = {
    ...(password === undefined ? {} : { username: repoBasicUsername ?? 'git', password }),
    identity: await fileText('the key', repoSshKeyFile),
    known_hosts: await fileText('the keys of the host', knownHostsFile),
    'ca.crt': await fileText('the certificates', caFile),
  };
  const stringData: Record<string, string> = {};
  for (const [key, value] of Object.entries(values)) if (value !== undefined) stringData[key] = value;
  if (Object.keys(stringData).length === 0) return undefined;
  return { type: password === undefined ? 'Opaque' : 'kubernetes.io/basic-auth', stringData };
}

async function fileText(what: string, file: string | undefined): Promise<string | undefined> {
  return file === undefined ? undefined : readSecretFile(what, file);
}
