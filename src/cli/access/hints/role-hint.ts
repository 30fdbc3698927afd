const REFUSAL =
  /User "[^"]*" cannot (?<verb>\w+) resource "(?<resource>[a-z]+)(?:\/(?<subResource>[a-z]+))?" in API group "(?<group>[^"]*)" (?:in the namespace "(?<namespace>[^"]+)"|at the cluster scope)/;

/** The roles of our own server with the right that a refusal names, in the words of Kubernetes; empty for other messages. */
export async function roleHint(message: string): Promise<string> {
  const { verb, resource, subResource = '', group, namespace } = REFUSAL.exec(message)?.groups ?? {};
  if (verb === undefined) return '';
  // The roles are read for refusals only.
  const { rolesWith } = await import('../../../server/authorization/roles-with.ts');
  const roles = rolesWith(verb, { group: group ?? '', resource: resource ?? '', subResource });
  const names = roles.length === 0 ? ['cluster-admin'] : roles;
  const binding = namespace === undefined ? 'clusterrolebinding' : 'rolebinding';
  return `; roles with this right: ${names.join(', ')} ("kubectl create ${binding}" binds a user to one)`;
}
