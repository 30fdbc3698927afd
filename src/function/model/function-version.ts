/** The version of a published function that a package pins by the tag of its image. */
export interface FunctionVersion {
  readonly major: number;
  /** Infinity is the newest one. */
  readonly minor: number;
  /** Infinity is the newest one: `v0.1` names the last `v0.1.x`. */
  readonly patch: number;
}

/**
 * Reads a tag (`v0.1.5`, `0.2`, `~0.1.1`). Undefined for one that names no version, such as `latest`, `unstable` or a build of
 * another project: the newest version is meant then.
 */
export function parseVersion(tag: string): FunctionVersion | undefined {
  const found = /^([~^]?)v?(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}|x|\*))?$/.exec(tag);
  if (found === null) return undefined;
  const [, range, major = '', minor = '', patch] = found;
  const version = { major: Number(major), minor: Number(minor), patch: patch === undefined ? NaN : Number(patch) };
  if (range === '^' && version.major > 0) return { ...version, minor: Infinity, patch: Infinity };
  return range !== '' || Number.isNaN(version.patch) ? { ...version, patch: Infinity } : version;
}

/** True if the pinned version is older than `release`, written as `0.1.2`. No version is the newest one. */
export function isBefore(version: FunctionVersion | undefined, release: `${number}.${number}.${number}`): boolean {
  if (version === undefined) return false;
  const [major = 0, minor = 0, patch = 0] = release.split('.').map(Number);
  if (version.major !== major) return version.major < major;
  if (version.minor !== minor) return version.minor < minor;
  return version.patch < patch;
}
