import { DNS_LABEL, DNS_SUBDOMAIN, followsRule } from '../../resource/object/name-rules.ts';
import { DEFAULT_NAMESPACE, type ObjectKey } from '../../resource/object/object.ts';

const PREFIX = '/webhooks/git/';
const APP_PREFIX = '/webhooks/github-app/';

/** Returns the path that the webhooks of a repository are sent to. */
export function webhookPath({ namespace = DEFAULT_NAMESPACE, name }: ObjectKey): string {
  return `${PREFIX}${namespace}/${name}`;
}

/** The repository that a path is for; undefined for every path that is for none. */
export function repositoryAt(path: string): ObjectKey | undefined {
  const key = keyAt(PREFIX, path);
  return key !== undefined && followsRule(key.name, DNS_LABEL) ? key : undefined;
}

/** The Secret of the GitHub App that a path is for; undefined for every path that is for none. */
export function appAt(path: string): ObjectKey | undefined {
  const key = keyAt(APP_PREFIX, path);
  return key !== undefined && followsRule(key.name, DNS_SUBDOMAIN) ? key : undefined;
}

function keyAt(prefix: string, path: string): (ObjectKey & { readonly namespace: string }) | undefined {
  if (!path.startsWith(prefix)) return undefined;
  const [namespace, name, ...rest] = path.slice(prefix.length).split('/');
  if (namespace === undefined || name === undefined || rest.length > 0) return undefined;
  return followsRule(namespace, DNS_LABEL) ? { namespace, name } : undefined;
}
