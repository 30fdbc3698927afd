import type { Source } from '../../controller/source.ts';
import type { Resolver } from '../../package/resolver.ts';
import type { ObjectKey } from '../../resource/object.ts';
import type { Session } from './session.ts';

/** Name and claims of the resolvers that `sluice up` brings along. */
export const BUILT_IN_RESOLVERS: readonly { readonly name: string; readonly claims: readonly string[] }[] = [
  { name: 'ipam', claims: ['ipam.resource.nephio.org/v1alpha1.IPClaim.*'] },
];

/** All resolvers, and what of the outside world wakes the drafts that they look at. */
export function builtInResolvers(
  _session: Session,
  others: readonly Resolver[],
): { resolvers: readonly Resolver[]; sources: readonly Source<ObjectKey>[] } {
  return { resolvers: others, sources: [] };
}
