import type { Access } from '../access/access.ts';

export interface FreezePlace {
  readonly allNamespaces?: boolean;
  readonly systemNamespace?: string;
}

/** The namespace of a Freeze: one for all namespaces is in that of the installation. */
export function freezeNamespace(
  { namespace, systemNamespace }: Pick<Access, 'namespace' | 'systemNamespace'>,
  options: FreezePlace,
): string {
  return options.allNamespaces === true ? (options.systemNamespace ?? systemNamespace) : namespace;
}
