import type { SluiceError } from '../../foundation/sluice-error.ts';
import type { PackageRevision } from '../../resource/kinds/porch/package-revision.ts';
import type { Stored } from '../../resource/object/object.ts';

/** Says in a pulled folder which revision it is, and in which state. The name and form are kpt's; it is no file of the package. */
export const METADATA_FILE = '.KptRevisionMetadata';

/** The state of a package that a folder was pulled from. */
export interface PulledState {
  /** As the server gave it; in a data folder the commit. */
  readonly resourceVersion: string;
  /** Undefined where it is not known. */
  readonly commit: string | undefined;
}

export interface PackageFiles {
  readonly files: ReadonlyMap<string, Buffer>;
  /** What is in the package and not among the files, with the reason. */
  readonly leftOut: readonly string[];
  readonly state: PulledState;
}

/** What a push came to. */
export interface Replaced {
  readonly state: PulledState;
  /** What was done besides, as lines. */
  readonly notes: readonly string[];
  /** The files are saved, and could not be rendered. */
  readonly failure?: SluiceError;
}

/** All files of package revisions: a data folder has binary files too, which the API does not carry. */
export interface PackageContents {
  read(revision: Stored<PackageRevision>): Promise<PackageFiles>;
  /**
   * Makes the files of a draft those given, if it is still in the state that they were made from; Conflict otherwise. Undefined if
   * nothing differs. Throws RenderFailed, with nothing saved, for files that cannot be rendered, unless an annotation allows that.
   */
  replace(
    revision: Stored<PackageRevision>,
    files: ReadonlyMap<string, Buffer>,
    from: PulledState,
    reason: string | undefined,
  ): Promise<Replaced | undefined>;
}

/** The commit that a revision is at; undefined if the server does not report it. */
export function commitOf({ status }: PackageRevision): string | undefined {
  return status?.selfLock?.git?.commit;
}
