import type { SluiceError } from '../../foundation/sluice-error.ts';
import type { GivenCondition } from '../../package/model/verdict.ts';
import type { PackageRevision } from '../../resource/kinds/package-revision.ts';
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

/** The files and conditions of package revisions: what a data folder can do beyond the API that all servers have. */
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
  /** Gives a condition for the content at hand, also if it has been given with the same words before. */
  give(revision: Stored<PackageRevision>, condition: GivenCondition): Promise<void>;
  withdraw(revision: Stored<PackageRevision>, type: string): Promise<void>;
}

/** The commit that a revision is at; undefined where the server does not tell. */
export function commitOf({ status }: PackageRevision): string | undefined {
  return status?.selfLock?.git?.commit;
}
