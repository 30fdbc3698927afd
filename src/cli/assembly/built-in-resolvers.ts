/** Name and claims of the resolvers that `sluice up` brings along. */
export const BUILT_IN_RESOLVERS: readonly { readonly name: string; readonly claims: readonly string[] }[] = [
  { name: 'ipam', claims: ['ipam.resource.nephio.org/v1alpha1.IPClaim.*'] },
];
