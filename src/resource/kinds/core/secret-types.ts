import { type FieldCause, requiredValue } from '../../object/invalid-object.ts';

const ACCOUNT_ANNOTATION = 'kubernetes.io/service-account.name';

interface TypedSecret {
  readonly type: string;
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> | undefined };
  readonly data?: Readonly<Record<string, string>> | undefined;
}

/** The keys that the programs which read a Secret of a type count on. */
const REQUIRED_KEYS: Readonly<Record<string, readonly string[]>> = {
  'kubernetes.io/tls': ['tls.crt', 'tls.key'],
  'kubernetes.io/ssh-auth': ['ssh-privatekey'],
  'kubernetes.io/dockercfg': ['.dockercfg'],
  'kubernetes.io/dockerconfigjson': ['.dockerconfigjson'],
};

/** Returns what a Secret lacks of the content that Kubernetes requires for its type. */
export function typeCauses({ type, metadata, data = {} }: TypedSecret): FieldCause[] {
  const missing = (keys: readonly string[]) => keys.filter((key) => !Object.hasOwn(data, key));
  const required = (keys: readonly string[]) =>
    keys.map((key) => ({ ...requiredValue(['data', key]), field: `data[${key}]` }));
  if (type === 'kubernetes.io/service-account-token')
    return (metadata.annotations?.[ACCOUNT_ANNOTATION] ?? '') === ''
      ? [requiredValue(['metadata', 'annotations', ACCOUNT_ANNOTATION])]
      : [];
  if (type === 'kubernetes.io/basic-auth') {
    // One of them is enough: a token is a password without a user.
    const keys = ['username', 'password'];
    return missing(keys).length === keys.length ? required(keys) : [];
  }
  return Object.hasOwn(REQUIRED_KEYS, type) ? required(missing(REQUIRED_KEYS[type] ?? [])) : [];
}
