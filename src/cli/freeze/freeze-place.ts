import { SYSTEM_NAMESPACE } from '../../resource/kinds/sluice/freeze.ts';
import type { Access } from '../access/access.ts';

export interface FreezePlace {
  readonly allNamespaces?: boolean;
  readonly systemNamespace?: string;
}

/** The namespace of a Freeze: one for all namespaces is in that of the installation. */
export function freezeNamespace({ namespace }: Pick<Access, 'namespace'>, options: FreezePlace): string {
  return options.allNamespaces === true ? (options.systemNamespace ?? SYSTEM_NAMESPACE) : namespace;
}
