import type { PackageRefusal } from '../selection/select-revisions.ts';
import type { DesiredFile } from './desired-file.ts';
import type { ManifestsOutcome } from './manifests.ts';
import type { DeliveredPackage } from './trailers.ts';

/** A revision that the target is to deliver. */
export interface DesiredRevision extends DeliveredPackage {
  /** The result of `manifestsOf` for its files; undefined if it is not in memory. */
  readonly built: ManifestsOutcome<DesiredFile> | undefined;
}

export interface Desired {
  /** By path from the root of the target's repository: new content, or null to remove the file. Empty if the branch is as desired. */
  readonly edits: ReadonlyMap<string, Uint8Array | null>;
  /** For the commit that makes the edits; empty without edits. */
  readonly message: string;
  /** The packages that are as desired after the edits. */
  readonly packages: readonly PackageState[];
  /** Packages whose folder stays as it is, and why. By repository and package. */
  readonly refused: readonly PackageRefusal[];
  /** Revisions whose contents are required and not cached: the edits are incomplete, and the caller loads these and calls again. */
  readonly missing: readonly DesiredRevision[];
  /** Folders that are not removed because no package would remain and the target does not set `allowPrune`. */
  readonly pruneBlocked: readonly string[];
}

export interface PackageState {
  readonly repository: string;
  readonly package: string;
  readonly revision: number;
  /** From the root of the target's repository. */
  readonly folder: string;
  readonly objects: number;
  /** False if the branch has all of it already. */
  readonly changed: boolean;
}
