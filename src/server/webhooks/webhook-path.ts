import { DNS_LABEL, followsRule } from '../../resource/object/name-rules.ts';
import { DEFAULT_NAMESPACE, type ObjectKey } from '../../resource/object/object.ts';

const PREFIX = '/webhooks/git/';

/** Returns the path that the webhooks of a repository are sent to. */
export function webhookPath({ namespace = DEFAULT_NAMESPACE, name }: ObjectKey): string {
  return `${PREFIX}${namespace}/${name}`;
}

/** The repository that a path is for; undefined for every path that is for none. */
export function repositoryAt(path: string): ObjectKey | undefined {
  if (!path.startsWith(PREFIX)) return undefined;
  const [namespace, name, ...rest] = path.slice(PREFIX.length).split('/');
  if (namespace === undefined || name === undefined || rest.length > 0) return undefined;
  return [namespace, name].every((text) => followsRule(text, DNS_LABEL)) ? { namespace, name } : undefined;
}
