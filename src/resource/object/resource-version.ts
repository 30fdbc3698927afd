/**
 * True if a version of a storage is older than another one. Versions of one storage are compared as integers, as Kubernetes permits for
 * its own kinds and for custom resources.
 */
export function isOlder(version: string, other: string): boolean {
  return BigInt(version) < BigInt(other);
}
